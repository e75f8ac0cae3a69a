"""Each rule against cases made by hand: what it must catch, and what it must leave alone."""

from pathlib import Path

import pytest

from quit.stages.leaks.number_words import dates_in, numbers_in
from quit.stages.leaks.rules import RULES, lexical_leaks, rules_only

CASES = [tuple(line.split("\t")) for line in Path(__file__).with_name("rules.tsv").read_text("utf-8").splitlines()[1:]]
"""Rule (none for a hint without a leak), hint, answer, question."""


@pytest.mark.parametrize(("rule", "hint", "answer", "question"), CASES)
def test_leaks_are_found_by_the_rule_for_them_and_innocent_hints_left_alone(rule, hint, answer, question) -> None:
    hits = lexical_leaks(hint, answer, question)
    assert (rule in [hit.rule for hit in hits]) if rule else hits == []
    assert all(hit.span and hit.span in hint for hit in hits)


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, *_ in CASES} == {*RULES, ""}


@pytest.mark.parametrize(
    ("span", "answer", "alone"),
    [
        ("Moore", "Bobby Moore", True),  # the rule for parts of a name knows
        ("Bobby", "Bobby Moore", False),
        ("planet", "Plane", True),  # begins as the answer, and is a word of its own
        ("planex", "Plane", False),
        ("cat", "Plane", False),
        ("bowl", "punch bowl", False),  # no name
    ],
)
def test_a_name_s_last_word_and_a_word_that_begins_as_the_answer_are_for_rules(span, answer, alone) -> None:
    assert rules_only(span, answer) is alone


NUMBERS = {
    "one hundred and five": [105], "two million three hundred thousand": [2_300_000], "in 1969, twelve men": [1969, 12],
    "a dozen": [12], "two dozen": [24], "3.5 million": [3_500_000], "one two three": [1, 2, 3], "forty-two": [42],
    "the first of many": [1], "the twenty-first king": [21], "Louis XIV, a thousand men": [14, 1000],
    "in nineteen forty-five": [1945], "four score and seven": [87], "": [],
}  # fmt: skip
DATES = {
    "on September 11, 2001": [(9, 11, 2001)], "the 4th of July": [(7, 4, None)], "25 Dec": [(12, 25, None)],
    "1944-06-06": [(6, 6, 1944)], "on 9/11": [(9, 11, None), (11, 9, None)], "in May 1968": [],
    "24/7 and 1/2": [(24, 7, None), (7, 24, None), (1, 2, None), (2, 1, None)],
    "12 men came in May": [], "9" * 400 + " May": [], "won 3-2": [],
}  # fmt: skip


@pytest.mark.parametrize(("text", "values"), NUMBERS.items())
def test_numbers_are_read_in_words_and_digits(text: str, values: list[float]) -> None:
    numbers = numbers_in(text)
    assert [value for value, _, _ in numbers] == values
    assert all(text[start:end].strip() == text[start:end] for _, start, end in numbers)


@pytest.mark.parametrize(("text", "days"), DATES.items())
def test_dates_are_read_in_any_notation(text: str, days: list[tuple[int, int, int | None]]) -> None:
    assert [(month, day, year) for month, day, year, _, _ in dates_in(text)] == days
