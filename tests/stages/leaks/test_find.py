"""How people's decisions and the rules' findings meet in one hint. The model is a stub: it must not decide these
cases."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from quit.settings import Leakage
from quit.stages.leaks.find import candidate_spans, find_leaks, overrides_by_hint

HINT = "The Nile crocodile and the White Nile are named after it."
QUESTION = "Which river flows through Khartoum?"


class Says:
    """An equivalence model that calls the given spans equivalent to anything."""

    identity = "says"

    def __init__(self, *spans: str) -> None:
        self.spans = spans
        self.pairs: list[tuple[str, str]] = []

    @property
    def candidates(self) -> list[str]:
        return [candidate for candidate, _ in self.pairs]

    def probability(self, pairs):
        assert pairs  # it is not asked about nothing
        self.pairs += [(pair.candidate, pair.reference) for pair in pairs]
        return np.array([0.5 * (pair.candidate in self.spans) for pair in pairs])  # as much as it takes


def _find(model: Says, ruling: bool | None = None, answers=("Nile",), hints=(HINT,), **settings):
    """Return the leaks of each hint, to all of which the override applies; every span is asked about: no encoder."""
    options = Leakage(screen=-1, **settings)
    leaks_of = find_leaks(QUESTION, answers, hints, model, None, options, [ruling] * len(hints))
    return [[(leak.span, leak.method, leak.overridden) for leak in leaks] for leaks in leaks_of]


@pytest.mark.parametrize(
    ("ruling", "expected", "candidates"),
    [
        (None, [("Nile", "exact", False)], []),  # the rule stands, and the model is not asked
        # silences the rule, and the model
        (False, [("Nile", "exact", True), ("crocodile", "equivalence", True)], ["crocodile", "White", "named"]),
    ],
)  # fmt: skip
def test_what_people_say_of_a_leak_counts_for_rule_and_model(ruling, expected, candidates) -> None:
    model = Says("crocodile")
    assert _find(model, ruling) == [expected] and model.candidates == candidates


def test_a_person_finds_what_no_rule_does() -> None:
    """The whole hint, with the first answer."""
    assert sorted(*_find(Says(), True)) == [("Nile", "exact", False), (HINT, "person", False)]
    [[leak, *_]] = find_leaks(QUESTION, ["Congo", "Nile"], ["A river."], None, None, Leakage(), [True])
    assert (leak.span, leak.answer, leak.method) == ("A river.", "Congo", "person")


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_a_blank_answer_is_in_no_hint(blank: str) -> None:
    assert find_leaks(QUESTION, [blank], ["x", "a b", f"a{blank}b"], None, None, Leakage()) == [[], [], []]


def test_overrides_are_of_a_hint_of_their_question_with_the_same_text() -> None:
    rows = [("q", "A.", "leak"), ("q", "B.", "no_leak")]
    names = ("question_id", "hint", "decision")
    decisions = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    texts = {"q-h00": "B.", "q-h01": "C.", "q-h02": "A.", "p-h00": "A."}
    hints = pa.table({"question_id": [name[0] for name in texts], "hint_id": [*texts], "hint": [*texts.values()]})
    assert overrides_by_hint(decisions, hints) == {"q-h02": True, "q-h00": False}
    assert overrides_by_hint(None, hints) == {}


class Near:
    """An encoder by which a text has a given cosine with every answer; remembers what it encodes."""

    def __init__(self, **cosines: float) -> None:
        self.cosines, self.batches = cosines, []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.batches.append(list(texts))
        return np.array([[self.cosines.get(text.replace(" ", "_"), 0.0), 0.0] for text in texts])


@pytest.mark.parametrize(
    ("settings", "candidates", "encoded"),
    [
        ({}, ["Orange", "Orange River"], ["blue Orange", "Orange River"]),
        ({"spans": False}, ["Orange"], []),
        ({"screen": -1}, ["Orange", "blue Orange", "Orange River"], None),
    ],
)
def test_the_model_judges_spans_near_an_answer_that_neither_it_nor_the_question_says(settings, candidates, encoded):
    hint = "The blue Orange River of Khartoum flows on."
    near = Near(Blue_Nile=1.0, Orange=0.4, Orange_River=0.8, blue_Orange=0.3, River=0.9, Khartoum=0.9, blue=0.9)
    model = Says("Orange River")
    [leaks] = find_leaks(QUESTION, ["Blue Nile"], [hint], model, near, Leakage(**settings))
    assert [leak.span for leak in leaks] == (["Orange River"] if "Orange River" in candidates else [])
    assert model.candidates == candidates
    words = ["Blue Nile", "blue", "Orange", "River", "Khartoum", "flows"]
    assert near.batches == ([] if encoded is None else [words, encoded] if encoded else [words])


def test_spans_neither_begin_nor_end_with_a_stop_word_and_no_word_only_begins_as_the_answer() -> None:
    model = Says("planet")
    assert _find(model, answers=["Plane"], hints=["The planet is far."], contained=False) == [[]]
    assert model.candidates == ["far"]
    spans = ["White", "Nile", "Egypt", "White Nile", "Egypt, Nile", "Nile of Egypt"]
    assert candidate_spans("The White Nile of Egypt, Nile", 3) == spans


def test_what_does_not_fit_the_hints_is_refused_not_joined_by_position() -> None:
    silent = SimpleNamespace(identity="", probability=lambda pairs: [], encode=lambda texts: [])
    for models, overrides in (
        ((None, None), [None, None]),
        ((silent, Near(Nile=1.0, river=1.0)), []),
        ((Says(), silent), []),
    ):
        with pytest.raises(ValueError, match="zip"):
            find_leaks("Who?", ["Nile"], ["A river."], *models, Leakage(), overrides)


def test_the_papers_method_has_the_model_judge_every_word_that_is_no_stop_word_with_every_answer() -> None:
    model = Says("flows")
    settings, hint = Leakage(method="bem"), "The river, in US maps, flows through Khartoum; it is US property, Nile."
    [findings] = find_leaks(QUESTION, ["Nile", "Blue Nile"], [hint], model, None, settings)
    words = ["river", "US", "maps", "flows", "Khartoum", "property"]  # of the question too; US is no "us"
    pairs = [(word, answer) for word in words for answer in ("Nile", "Blue Nile")]
    assert model.pairs == [*pairs, ("Nile", "Blue Nile")]  # that it is the Nile need not be asked
    leaks = [("Nile", "Nile", "exact"), ("flows", "Nile", "equivalence"), ("flows", "Blue Nile", "equivalence")]
    assert [(leak.span, leak.answer, leak.method) for leak in findings] == leaks


def test_the_papers_method_has_no_rules_spans_or_containment() -> None:
    for answer, hint, leaks in (
        ("Ra", "Egyptians portrayed it as a falcon.", []),
        ("Australia", "Australian rules are played there.", []),
        ("New York", "New York never sleeps.", []),
        ("Nile", "The Nile's mouth is a delta.", [("Nile's", "exact", False)]),  # the answer itself
    ):
        assert _find(Says(), answers=[answer], hints=[hint], method="bem") == [leaks]


def test_an_answer_inside_another_word_or_across_two_hints_is_contained_and_so_leaks() -> None:
    """By the paper's definition (a valid answer as a substring of a passage), whatever the words mean."""
    hints = ("Egyptians portrayed it as a falcon.", "It is a god.")
    for ruling, contained, leaks in (
        (None, True, [("Ra", "contained", False)]),
        (None, False, []),
        (False, True, [("Ra", "contained", True)]),
    ):
        assert _find(Says(), ruling, answers=["Ra"], hints=hints, contained=contained) == [leaks, []]
    assert _find(Says()) == [[("Nile", "exact", False)]], "what a rule found is not found twice"
    hints = ("York minster is far away.", "It was once called New", "It has five boroughs.")
    assert _find(Says(), answers=["new york"], hints=hints) == [[], [("new york", "contained", False)], []]
    assert _find(Says(), answers=["New Yorker"], hints=hints) == [[], [], []]
