"""Words of vendors and marks of models, against texts as they are seen."""

import random
from itertools import product
from pathlib import Path

import pytest

from quit.models.readers.cleaning import clean_answer
from quit.text import vendors
from quit.text.vendors import meaning, parted, refusal

THOUGHT = "It may be Lyon.\nBut wait"
PAIRS = [
    ("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<THINK>", "</THINK>"), ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"), ("<seed:think>", "</seed:think>"), ("<longcat_think>", "</longcat_think>"),
    ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"), ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"), ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"), ("<|channel>thought\n", "<channel|>"),
    ("<unused94>thought\n", "<unused95>"), ("Here is my thought process: ", "Here is my response: "),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ('<details type="reasoning" done="true">', "</details>"),
]  # fmt: skip
"""Opening and closing marks of DeepSeek-R1, Qwen 3, Seed-OSS, LongCat, Magistral, Kimi, Sky-T1, Command A, Apertus,
Gemma, Granite, gpt-oss and Open WebUI."""
ENDS = ["", "<|im_end|>", "<|eot_id|>", "</s>", "<end_of_turn>", "<|return|>", "<｜end▁of▁sentence｜>", "<|endoftext|>"]


@pytest.mark.parametrize(("opening", "closing"), PAIRS)
def test_no_thought_is_in_an_answer_whole_or_cut(opening: str, closing: str) -> None:
    texts = {
        f"{opening}{THOUGHT}{closing}Paris": "Paris",
        f"{THOUGHT}{closing}\n\nParis": "Paris",  # the template had opened it
        f"{opening}{THOUGHT}": "",
        f"Paris\n{opening}{THOUGHT}": "Paris",
        f"{opening}{THOUGHT}{opening}{THOUGHT}{closing}Paris": "Paris",
        f"{opening}{THOUGHT}{closing}\n{opening}{THOUGHT}{closing}\nParis{opening}{THOUGHT}": "Paris",
    }
    for (text, answer), end in product(texts.items(), ENDS):
        said, thoughts = parted(text + end)
        assert said == answer and "Lyon" in thoughts, text
        assert clean_answer(text + end) == (answer or "NO ANSWER")


def test_of_any_marks_in_any_order_no_thought_gets_out() -> None:
    draw = random.Random(7)
    for _ in range(2000):
        pieces = []
        for opening, closing in draw.choices(PAIRS[:-3], k=draw.randint(1, 4)):
            pieces += [draw.choice(ENDS), opening, "Lyon", closing]
        cut = draw.randint(1, len(pieces))
        text = "".join(pieces[:cut])
        assert "Lyon" not in parted(text)[0], text
        if cut == len(pieces):
            said, thoughts = parted(text + "Paris")
            assert (said, thoughts.count("Lyon")) == ("Paris", len(pieces) // 4), text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("analysisWe need the city.assistantfinalParis", "Paris"),  # gpt-oss, where special tokens are left out
        ("analysisWe need the city", ""),
        ("<think>\n\n</think>\n\nParis", "Paris"),
        ("Paris<|im_end|>\n<|im_start|>user\nAnd Chad?<|im_end|>\n<|im_start|>assistant\nN'Djamena", "Paris"),
        ("<|im_start|>user\nWhich city?<|im_end|>\n<|im_start|>assistant\nParis<|im_end|>", "Paris"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nParis<|eot_id|>", "Paris"),
        ("[INST] Which city? [/INST] Paris</s>", "Paris"),
        ("Lake<|eot_id|>Baikal", "Lake"),
        ("<think>It may be</think><answer>Paris</answer>", "Paris"),
        ("<|channel|>final<|message|>Paris", "Paris"),
    ],
)
def test_turns_are_apart_and_the_models_own_counts(text: str, answer: str) -> None:
    assert parted(text)[0] == answer


@pytest.mark.parametrize(
    "text", ["Paris", " a <b>bold</b> guess\n", "analysis of variance", "5 < 6 > 4", "[1]", "assistant"]
)
def test_a_text_without_marks_stays_as_it_is(text: str) -> None:
    assert parted(text) == (text, "")


def test_every_word_has_a_meaning_and_a_source() -> None:
    lines = Path(vendors.__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    meanings = {
        "finish": {"stop", "length", "withheld", "again"},
        "batch": {"running", "ended"},
        "refusal": {"withheld", "long", "loading", "waiting"},
        "family": {row[2] for row in rows if row[0] == "family" and row[1] == row[2]},
        "mark": {"open", "close", "thought", "turn", "other"},
    }
    assert all(len(row) == 4 and row[2] in meanings[row[0]] and len(row[3]) > 5 for row in rows)
    assert len({(row[0], row[1]) for row in rows}) == len(rows) > 150


@pytest.mark.parametrize(
    ("kind", "word", "what"),
    [("finish", "STOP", "stop"), ("finish", "eos", "stop"), ("finish", "FINISH_REASON_MAX_TOKENS", "length"),
     ("finish", "content_filter: RECITATION", "withheld"), ("finish", "end-turn", "stop"), ("finish", "COOKED", None),
     ("batch", "COMPLETED", "ended"), ("batch", "BATCH_STATE_SUCCEEDED", "ended"), ("batch", "In Progress", "running"),
     ("batch", "stop", None)],
)  # fmt: skip
def test_words_are_compared_without_case_and_punctuation(kind: str, word: str, what: str | None) -> None:
    assert meaning(kind, word) == what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Content Exists Risk", "withheld"),
        ("<400> InternalError.Algo.DataInspectionFailed: Input text data may contain ...", "withheld"),
        ("The request was rejected because it was considered high risk", "withheld"),
        ("the request exceeds the available context size, try increasing it", "long"),
        ("This model's maximum context length is 4096 tokens.", "long"),
        ("prompt is too long: 210000 tokens > 200000 maximum", "long"),
        ("Loading model", "loading"),
        ("Model org/m is currently loading", "loading"),
        ("Enqueued token limit reached for m. Limit: 60,000 enqueued tokens.", "waiting"),
        ("Unsupported parameter: 'top_p' is not supported with this model.", None),
        ("Rate limit exceeded", None),
        ("You exceeded your current quota, please check your plan and billing details.", None),
        ("max_tokens is too large: 5000", None),
        ("The model `m` does not exist", None),
    ],
)  # fmt: skip
def test_refusals_are_known_by_their_shape(text: str, what: str | None) -> None:
    assert refusal(text) == what


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama"), ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen"),
        ("o3-mini", "gpt"), ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mistral"), ("/models/Qwen2.5-7B/", "qwen"),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude"), ("chat/x/Unheard-7B+1f|judge@a|8", "unheard"),
        ("minilm-late@1/pool+all-MiniLM-L6-v2@5/whole-1", "minilm"), ("17", "17"),
    ],
)  # fmt: skip
def test_families_of_models(model: str, name: str) -> None:
    assert vendors.family(model) == name
