"""Replies by hand, as the spec's rules have them (section 8)."""

import pytest

from quit.models.cleaning import clean_answer, is_sentence


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ("Paris", "Paris"),
        ("  Paris \n", "Paris"),
        ("Let me see.\n\nParis\n\n", "Paris"),
        ("(Paris", "Paris"),
        ("(Paris)", "Paris"),
        ("Georgia (country)", "Georgia (country)"),
        ('"Paris"', "Paris"),
        ("“Paris”", "Paris"),
        ("*China*", "China"),
        ("**Barack Obama**", "Barack Obama"),
        ("Answer: Paris", "Paris"),
        ("The answer: Paris", "Paris"),
        ("A: Paris", "Paris"),
        ("A Tale of Two Cities", "A Tale of Two Cities"),
        ("", "NO ANSWER"),
        (" \n ", "NO ANSWER"),
        ("NO ANSWER", "NO ANSWER"),
        ("no answer.", "NO ANSWER"),
        ("(No answer)", "NO ANSWER"),
        ("There is no answer in the context", "NO ANSWER"),
        ("...", "NO ANSWER"),
        ("The capital of France is Paris.", "NO ANSWER"),
        ("I don't know who that was.", "NO ANSWER"),
        ("He was the first president of his country.", "NO ANSWER"),
        ("It's impossible to say from this.", "NO ANSWER"),
        ("Washington D.C.", "Washington D.C."),
        ("Who Wants to Be a Millionaire?", "Who Wants to Be a Millionaire?"),
        ("Martin Luther King Jr.", "Martin Luther King Jr."),
        ("42", "42"),
        ("5.5", "5.5"),
    ],
)
def test_replies_become_answers(raw: str, answer: str) -> None:
    assert clean_answer(raw) == answer


def test_a_phrase_with_a_verb_and_no_full_stop_is_no_sentence() -> None:
    assert not is_sentence("the one that was found first")
    assert is_sentence("the one that was found first is here.")
