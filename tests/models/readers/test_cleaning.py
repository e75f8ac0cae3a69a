"""Replies by hand, as the spec's rules have them (section 8), and replies of SmolLM2-135M-Instruct as it gave them."""

import json
from pathlib import Path

import pytest

from quit.models.protocols import NO_ANSWER
from quit.models.readers.cleaning import clean_answer, is_sentence

ANSWERS = {
    "Paris": [
        "Paris", "  Paris \n", "Let me see.\n\nParis\n\n", "(Paris", "(Paris)", '"Paris"', "“Paris”", "Answer: Paris",
        "1. Answer: Paris", "The answer: Paris", "A: Paris", "\x1b\x00\x7f\x9b\u202ePar\x08is\u2069",
    ],
    "NO ANSWER": [
        "", " \n ", "NO ANSWER", "NO  ANSWER", "No\u00a0answer", "ＮＯ　ＡＮＳＷＥＲ", "NO_ANSWER", "(no-answer)",
        "N/A", "n/a.", "Ｎ／Ａ", "\x07\x1b[0m", "no answer.", "(No answer)", "There is no answer in the context", "...",
    ],
    "Georgia (country)": ["Georgia (country)"], "China": ["*China*"], "Barack Obama": ["**Barack Obama**"],
    "A Tale of Two Cities": ["A Tale of Two Cities"], "N/A Ltd": ["N/A Ltd"], "Nona": ["Nona"],
    "OWNED link": ["\x1b[2J\x1b[31mOWNED\x1b]8;;http://evil\x07 link\x1b]8;;\x1b\\"],
    "Curaçao\tÅland – 東京 👩‍🚀": ["Curaçao\tÅland – 東京 👩‍🚀"], "می\u200cخواهم": ["می\u200cخواهم"], "42": ["42"],
    "5.5": ["5.5"],
}  # fmt: skip


@pytest.mark.parametrize(("raw", "answer"), [(raw, answer) for answer in ANSWERS for raw in ANSWERS[answer]])
@pytest.mark.parametrize("sentences", ["drop", "judge"])
def test_replies_become_answers(raw: str, answer: str, sentences: str) -> None:
    assert clean_answer(raw, "stop", sentences) == answer


REPLIES = [line.split("\t") for line in Path(__file__).with_name("replies.tsv").read_text("utf-8").splitlines()[1:]]
"""By hand, and of SmolLM2-135M-Instruct, cut at 32 tokens or whole: whether a sentence or a phrase, and the reply."""


@pytest.mark.parametrize(("kind", "text"), REPLIES)
def test_a_sentence_is_dropped_or_kept_whole_for_the_judge_and_a_phrase_is_an_answer_cut_or_not(kind, text) -> None:
    if kind == "phrase":
        assert clean_answer(text, "length") == clean_answer(text) == text
    else:
        whole = text if text.endswith(".") else f"{text}."
        assert clean_answer(text, "length") == clean_answer(whole) == NO_ANSWER
        assert clean_answer(whole, sentences="judge") == whole
        assert clean_answer(text, "length", "judge") == text


def test_a_stop_string_may_take_the_full_stop_and_without_one_a_phrase_with_a_verb_is_no_sentence() -> None:
    assert clean_answer("The capital of France is Paris", stop=[". "]) == NO_ANSWER
    assert clean_answer("All I Want for Christmas is My Two Front Teeth", stop=["\n"]).startswith("All I Want")
    assert not is_sentence("the one that was found first")
    assert is_sentence("the one that was found first is here.")


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ("Marcus Furius Calpurninus, a Roman general and statesman\n\nThe Rubicon River was a river that separated the "
         "Roman Republic from the Roman Empire", "Marcus Furius Calpurninus, a Roman general and statesman"),
        ("Moses, the first leader of the Israelites, was Moses. He was the first leader of the Israelites to receive "
         "the Ten Commandments from God.\n\nM", "NO ANSWER"),
        ("The band The Beatles is famous for their songs like 'The Beatles'\n\nThe band has been around since the ",
         "NO ANSWER"),
        ("Paris\n", "Paris"),
        ("Paris\n\n", "Paris"),
    ],
)  # fmt: skip
def test_the_last_line_of_a_cut_reply_counts_only_if_it_is_whole_or_the_only_one(raw: str, answer: str) -> None:
    assert clean_answer(raw, "length") == answer


def test_what_people_know_for_an_answer_is_hardly_ever_taken_for_a_sentence(data: Path) -> None:
    """EVOUNA: 28,964 gold answers, of which some are sentences; what three language models wrote instead mostly is."""
    records = [row for name in ("NQ", "TQ") for row in json.loads((data / "evouna" / f"{name}.json").read_text())]
    gold = {answer.strip() for row in records for answer in (row["golden_answer"] or "").split("/")}
    cut = [answer for answer in gold if len(answer.split()) >= 4]
    assert sum(is_sentence(answer, cut=True) for answer in cut) / len(cut) < 0.02
    long = [" ".join((row[f"answer_{system}"] or "").split()) for row in records for system in ("gpt35", "gpt4")]
    whole = [text for text in long if len(text.split()) > 12 and text[-1] in ".!?"]
    assert sum(map(is_sentence, whole)) / len(whole) > 0.85
    assert sum(is_sentence(" ".join(text.split()[:12]), cut=True) for text in whole) / len(whole) > 0.7


@pytest.mark.parametrize(
    "raw",
    [
        *("\u200bLake\u2060 Baikal\u200b", "```\nLake Baikal\n```", "```text\nLake Baikal\n```"),
        *("<think>Is it\n\nNO ANSWER?</think>Lake Baikal", "It is deep.</think>\nLake Baikal", "Lake Baikal</s>"),
        *("Lake Baikal<|im_end|>", r"\boxed{Lake Baikal}", r"Answer: $\boxed{\text{Lake Baikal}}$"),
        "Lake Baikal\n\nExplanation: it is a lake",
    ],
)
def test_what_models_wrap_an_answer_in_is_left_out(raw: str) -> None:
    assert clean_answer(raw) == "Lake Baikal"


@pytest.mark.parametrize("raw", ["No\u200banswer", "NO\u2011ANSWER", "NOANSWER", "<think>Paris</think>", "```\n```"])
def test_disguised_ways_to_say_nothing(raw: str) -> None:
    assert clean_answer(raw) == NO_ANSWER


def test_words_that_end_in_no_are_answers() -> None:
    assert clean_answer("Casino answers") == "Casino answers"
    assert clean_answer("Explanation: x") == "Explanation: x"
