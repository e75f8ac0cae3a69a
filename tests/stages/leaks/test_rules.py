"""Each rule against cases made by hand: what it must catch, and what it must leave alone."""

from itertools import permutations

import pytest

from quit.stages.leaks.rules import RULES, lexical_leaks, rules_only
from tests.rows import cases
from tests.text.test_answers import KINDS

CASES = cases(__file__, "rules.tsv")
"""Rule (none for a hint without a leak), hint, answer, question."""


@pytest.mark.parametrize(("rule", "hint", "answer", "question"), CASES)
def test_leaks_are_found_by_the_rule_for_them_and_innocent_hints_left_alone(rule, hint, answer, question) -> None:
    hits = lexical_leaks(hint, answer, question)
    assert (rule in [hit.rule for hit in hits]) if rule else hits == []
    assert all(hit.span and hit.span in hint for hit in hits)


@pytest.mark.parametrize("kind", KINDS, ids=[kind["kind"] for kind in KINDS])
def test_a_hint_that_holds_the_same_answer_leaks(kind) -> None:
    """A reply with an answer's key is right, so a hint must not hold one. A letter or a name needs its capital."""
    for group in kind["answers"]:
        for answer, other in permutations(group, 2):
            if answer[0].isupper() == other[0].isupper():
                assert lexical_leaks(f"Everybody there knew of {other} at that time.", answer, ""), (answer, other)


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
