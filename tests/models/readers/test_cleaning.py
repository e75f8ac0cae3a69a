"""Replies by hand, as the spec's rules have them (section 8), and replies of SmolLM2-135M-Instruct as it gave them."""

import json
from pathlib import Path

import pytest

from quit.models.protocols import NO_ANSWER
from quit.models.readers.cleaning import clean_answer, is_sentence
from tests.rows import cases


@pytest.mark.parametrize(("raw", "ended", "answer"), cases(__file__, "answers.jsonl"))
@pytest.mark.parametrize("sentences", ["drop", "judge"])
def test_replies_become_answers(raw: str, ended: str, answer: str, sentences: str) -> None:
    """Disguises and wrappings of answers and of none; of a reply that was cut, the last line counts only if it is whole
    or the only one."""
    assert clean_answer(raw, ended, sentences if ended == "stop" else "drop") == answer


REPLIES = cases(__file__, "replies.tsv")
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
