"""How people's decisions and the rules' findings meet in one hint. The model is a stub: it must not decide these
cases."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from quit.settings import Leakage
from quit.stages.leaks.find import Override, candidate_spans, find_leaks, overrides_by_hint

HINT = "The Nile crocodile and the White Nile are named after it."
QUESTION = "Which river flows through Khartoum?"


class Says:
    """An equivalence model that calls the given spans equivalent to anything."""

    identity = "says"

    def __init__(self, *spans: str) -> None:
        self.spans = spans
        self.asked: list[str] = []

    def probability(self, pairs):
        assert pairs  # it is not asked about nothing
        self.asked += [pair.candidate for pair in pairs]
        return np.array([0.5 * (pair.candidate in self.spans) for pair in pairs])  # as much as it takes


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
    assert model.asked == ["crocodile", "White", "named"]


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
    rules = [flag for span, method, flag in found if span == "Nile" and method in ("exact", "person")]
    assert rules[0] is overridden


def test_a_person_finds_what_no_rule_does() -> None:
    said = [("White Nile", "person", False), ("Nile", "exact", False)]
    assert sorted(_find(Says(), Override(True, span="White Nile"))) == sorted(said)
    assert (HINT, "person", False) in _find(Says(), Override(True))  # the whole hint
    person = [Override(True, "it", "Congo")]
    [[leak, _]] = find_leaks(QUESTION, ["Nile", "Congo"], [HINT], None, None, Leakage(), [person])
    assert (leak.span, leak.answer, leak.method) == ("it", "Congo", "person")


def test_overrides_are_read_by_hint() -> None:
    rows = [
        {"hint_id": hint_id, "decision": decision, "span": span, "answer": answer}
        for hint_id, decision, span, answer in (
            ("a", "leak", "it", "Nile"),
            ("b", "no_leak", None, None),
            ("a", "leak", None, "x"),
        )
    ]
    expected = {"a": [Override(True, "it", "Nile"), Override(True, None, "x")], "b": [Override(False)]}
    assert overrides_by_hint(pa.Table.from_pylist(rows)) == expected
    assert overrides_by_hint(None) == {}


class Near:
    """An encoder by which a text has a given cosine with every answer; remembers what it encodes."""

    def __init__(self, **cosines: float) -> None:
        self.cosines, self.batches = cosines, []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.batches.append(list(texts))
        return np.array([[self.cosines.get(text.replace(" ", "_"), 0.0), 0.0] for text in texts])


@pytest.mark.parametrize(
    ("settings", "asked", "encoded"),
    [
        ({}, ["Orange", "Orange River"], ["blue Orange", "Orange River"]),
        ({"spans": False}, ["Orange"], []),
        ({"screen": -1}, ["Orange", "blue Orange", "Orange River"], None),
    ],
)
def test_the_model_is_asked_about_spans_near_an_answer_that_neither_it_nor_the_question_says(settings, asked, encoded):
    hint = "The blue Orange River of Khartoum flows on."
    near = Near(Blue_Nile=1.0, Orange=0.4, Orange_River=0.8, blue_Orange=0.3, River=0.9, Khartoum=0.9, blue=0.9)
    model = Says("Orange River")
    [found] = find_leaks(QUESTION, ["Blue Nile"], [hint], model, near, Leakage(**settings))
    assert [leak.span for leak in found] == (["Orange River"] if "Orange River" in asked else [])
    assert model.asked == asked
    words = ["Blue Nile", "blue", "Orange", "River", "Khartoum", "flows"]
    assert near.batches == ([] if encoded is None else [words, encoded] if encoded else [words])


def test_a_word_that_only_begins_as_the_answer_is_not_asked_about() -> None:
    model, settings = Says("planet"), Leakage(screen=-1, contained=False)
    assert find_leaks("Which machine flies?", ["Plane"], ["The planet is far."], model, None, settings) == [[]]
    assert model.asked == ["far"]


def test_spans_neither_begin_nor_end_with_a_stop_word() -> None:
    spans = ["White", "Nile", "Egypt", "White Nile", "Egypt, Nile", "Nile of Egypt"]
    assert candidate_spans("The White Nile of Egypt, Nile", 3) == spans


def test_what_does_not_fit_the_hints_is_refused_not_joined_by_position() -> None:
    silent = SimpleNamespace(identity="", probability=lambda pairs: [], encode=lambda texts: [])
    for models, overrides in (
        ((None, None), [[], []]),
        ((silent, Near(Nile=1.0, river=1.0)), []),
        ((Says(), silent), []),
    ):
        with pytest.raises(ValueError, match="zip"):
            find_leaks("Who?", ["Nile"], ["A river."], *models, Leakage(), overrides)


def test_the_papers_method_has_the_model_judge_every_word_that_is_no_stop_word_with_every_answer() -> None:
    asked: list[tuple[str, str]] = []

    class Judges(Says):
        def probability(self, pairs):
            asked.extend((pair.candidate, pair.reference) for pair in pairs)
            return super().probability(pairs)

    settings, hint = Leakage(method="bem"), "The river, in US maps, flows through Khartoum; it is US property, Nile."
    [found] = find_leaks(QUESTION, ["Nile", "Blue Nile"], [hint], Judges("flows"), None, settings)
    words = ["river", "US", "maps", "flows", "Khartoum", "property"]  # of the question too; US is no "us"
    pairs = [(word, answer) for word in words for answer in ("Nile", "Blue Nile")]
    assert asked == [*pairs, ("Nile", "Blue Nile")]  # that it is the Nile need not be asked
    leaks = [("Nile", "Nile", "exact"), ("flows", "Nile", "equivalence"), ("flows", "Blue Nile", "equivalence")]
    assert [(leak.span, leak.answer, leak.method) for leak in found] == leaks


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
    assert _contained("new york", *hints) == [[], [("new york", "contained", False)], []]
    assert _contained("New Yorker", *hints) == [[], [], []]


def test_what_a_rule_found_is_not_found_twice() -> None:
    assert _contained("Nile", HINT) == [[("Nile", "exact", False)]]
