"""How people's decisions and the rules' findings meet in one hint. The model is a stub: it must not decide these
cases."""

from __future__ import annotations

import numpy as np
import pytest

import schemas
from quit.settings import Leakage
from quit.stages.filter import filter_leaks
from quit.stages.leaks.find import Override, find_leaks

HINT = "The Nile crocodile and the White Nile are named after it."
QUESTION = "Which river flows through Khartoum?"


class Says:
    """An equivalence model that calls the given spans equivalent to anything."""

    identity = "says"

    def __init__(self, *spans: str) -> None:
        self.spans = spans
        self.asked: list[str] = []

    def probability(self, pairs):
        self.asked += [pair.candidate for pair in pairs]
        return np.array([float(pair.candidate in self.spans) for pair in pairs])


def _find(model: Says, *overrides: Override, answers: tuple[str, ...] = ("Nile",)):
    settings = Leakage(screen=-1)  # every span is asked about: no encoder
    [found] = find_leaks(QUESTION, answers, [HINT], model, None, settings, [overrides])
    return [(leak.span, leak.method, leak.overridden) for leak in found]


def test_without_a_person_the_rule_stands_and_the_model_is_not_asked() -> None:
    model = Says()
    assert _find(model) == [("Nile", "exact", False)] and model.asked == []


def test_no_leak_silences_the_rule_and_opens_the_hint_to_the_model() -> None:
    model = Says("crocodile")
    assert _find(model, Override(False, span="Nile")) == [("crocodile", "equivalence", False), ("Nile", "exact", True)]


def test_no_leak_without_span_silences_the_model_too() -> None:
    assert _find(Says("crocodile"), Override(False)) == [("Nile", "exact", True), ("crocodile", "equivalence", True)]


@pytest.mark.parametrize(
    ("overrides", "overridden"),
    [
        ([Override(False), Override(True, span="Nile")], False),  # the more specific one counts
        ([Override(True), Override(False, span="Nile")], True),
        ([Override(False, span="Nile"), Override(True, answer="Nile")], False),  # equally specific: the leak
        ([Override(False, span="nile"), Override(True, answer="Congo")], True),  # case does not count; another answer
        ([Override(False, answer="Congo")], False),
    ],
)
def test_which_of_several_overrides_counts(overrides: list[Override], overridden: bool) -> None:
    found = _find(Says(), *overrides, answers=("Nile", "Congo"))
    # A person who calls the very span a leak takes the place of the rule that found it.
    assert [flag for span, method, flag in found if span == "Nile" and method in ("exact", "person")][:1] == [
        overridden
    ]


def test_a_person_finds_what_no_rule_does() -> None:
    said = [("White Nile", "person", False), ("Nile", "exact", False)]
    assert sorted(_find(Says(), Override(True, span="White Nile"))) == sorted(said)
    assert (HINT, "person", False) in _find(Says(), Override(True))  # the whole hint


def test_the_papers_method_has_the_model_judge_every_word_that_is_no_stop_word_with_every_answer() -> None:
    asked: list[tuple[str, str]] = []

    class Judges(Says):
        def probability(self, pairs):
            asked.extend((pair.candidate, pair.reference) for pair in pairs)
            return super().probability(pairs)

    settings, hint = Leakage(method="bem"), "The river, in US maps, flows through Khartoum; it is US property."
    [found] = find_leaks(QUESTION, ["Nile", "Blue Nile"], [hint], Judges("flows"), None, settings)
    words = ["river", "US", "maps", "flows", "Khartoum", "property"]  # of the question too; US is no "us"
    assert asked == [(word, answer) for word in words for answer in ("Nile", "Blue Nile")]
    assert [(leak.span, leak.answer, leak.method) for leak in found] == [
        ("flows", "Nile", "equivalence"),
        ("flows", "Blue Nile", "equivalence"),
    ]


def test_the_papers_method_has_no_rules_spans_or_containment() -> None:
    def spans(answer: str, hint: str) -> list[str]:
        [found] = find_leaks(QUESTION, [answer], [hint], Says(), None, Leakage(method="bem"))
        return [leak.span for leak in found]

    assert spans("Ra", "Egyptians portrayed it as a falcon.") == []
    assert spans("Australia", "Australian rules are played there.") == []
    assert spans("New York", "New York never sleeps.") == []
    assert spans("Nile", "The Nile's mouth is a delta.") == ["Nile's"]  # the answer itself


def _contained(answer: str, *hints: str, contained: bool = True, said: list[Override] | None = None):
    settings = Leakage(screen=-1, contained=contained)
    found = find_leaks(QUESTION, [answer], hints, Says(), None, settings, [said or []] * len(hints))
    return [[(leak.span, leak.method, leak.overridden) for leak in leaks] for leaks in found]


def test_an_answer_inside_another_word_is_contained_and_so_leaks() -> None:
    """By the paper's definition (a valid answer as a substring of a passage), whatever the words mean."""
    hints = ("Egyptians portrayed it as a falcon.", "It is a god.")
    assert _contained("Ra", *hints) == [[("Ra", "contained", False)], []]
    assert _contained("Ra", *hints, contained=False) == [[], []]
    assert _contained("Ra", *hints, said=[Override(False)]) == [[("Ra", "contained", True)], []]


def test_an_answer_across_the_border_of_two_hints_is_contained() -> None:
    hints = ("York minster is far away.", "It was once called New", "It has five boroughs.")
    assert _contained("New York", *hints)[1] == [("New York", "contained", False)]
    assert _contained("New Yorker", *hints) == [[], [], []]


def test_what_a_rule_found_is_not_found_twice() -> None:
    assert _contained("Nile", HINT) == [[("Nile", "exact", False)]]


def _filtered(mode: str, keep: int, *leaking: int) -> tuple[list[str], list[tuple]]:
    """Return the usable hints of a question of four, those at ``leaking`` with its answer in them, and the rejects."""
    texts = [f"The Nile, seen from side {n}." if n in leaking else f"It floods in month {n}." for n in range(4)]
    question = {"question_id": "q", "question": QUESTION, "answers": ["Nile"], "source": "jsonl", "content_key": "k"}
    hints = [
        {"hint_id": f"q-h0{n}", "question_id": "q", "position": n, "hint": text, "source": "jsonl", "file": "f"}
        for n, text in enumerate(texts)
    ]
    questions, hints = schemas.table("questions").from_rows([question]), schemas.table("hints").from_rows(hints)
    tables = filter_leaks(questions, hints, Says(), None, Leakage(screen=-1, mode=mode), keep)
    assert [row["hint_id"] for row in tables["leak_findings"].to_pylist()] == [f"q-h0{n}" for n in leaking]
    rejects = [(row["kind"], row["reason"], row["hint_id"]) for row in tables["rejects"].to_pylist()]
    return tables["usable_hints"]["hint_id"].to_pylist(), rejects


def test_by_question_a_leaking_hint_takes_the_question_with_it() -> None:
    assert _filtered("question", 3, 1) == ([], [("question", "answer_leak", None)])
    assert _filtered("question", 3) == (["q-h00", "q-h01", "q-h02", "q-h03"], [])


def test_by_hint_the_question_stays_while_enough_hints_are_left() -> None:
    hint_1, hint_3 = ("hint", "answer_leak", "q-h01"), ("hint", "answer_leak", "q-h03")
    assert _filtered("hint", 3, 1) == (["q-h00", "q-h02", "q-h03"], [hint_1])
    assert _filtered("hint", 2, 1, 3) == (["q-h00", "q-h02"], [hint_1, hint_3])
    assert _filtered("hint", 3, 1, 3) == ([], [hint_1, hint_3, ("question", "too_few_hints_left", None)])
    assert _filtered("hint", 5) == (["q-h00", "q-h01", "q-h02", "q-h03"], [])  # too few from the start: not this rule's
