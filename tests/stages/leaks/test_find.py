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
        self.pairs: list[tuple[str, str]] = []

    @property
    def asked(self) -> list[str]:
        return [candidate for candidate, _ in self.pairs]

    def probability(self, pairs):
        assert pairs  # it is not asked about nothing
        self.pairs += [(pair.candidate, pair.reference) for pair in pairs]
        return np.array([0.5 * (pair.candidate in self.spans) for pair in pairs])  # as much as it takes


def _find(model: Says, *overrides: Override, answers: tuple[str, ...] = ("Nile",)):
    settings = Leakage(screen=-1)  # every span is asked about: no encoder
    [found] = find_leaks(QUESTION, answers, [HINT], model, None, settings, [overrides])
    return [(leak.span, leak.method, leak.overridden) for leak in found]


@pytest.mark.parametrize(
    ("overrides", "expected", "asked"),
    [
        ([], [("Nile", "exact", False)], []),  # the rule stands, and the model is not asked
        # silences the rule, and opens the hint to the model
        ([Override(False, span="Nile")], [("crocodile", "equivalence", False), ("Nile", "exact", True)],
         ["crocodile", "White", "named"]),
        # without a span, silences the model too
        ([Override(False)], [("Nile", "exact", True), ("crocodile", "equivalence", True)],
         ["crocodile", "White", "named"]),
    ],
)  # fmt: skip
def test_what_people_say_of_a_leak_counts_for_rule_and_model(overrides, expected, asked) -> None:
    model = Says("crocodile")
    assert _find(model, *overrides) == expected and model.asked == asked


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
    columns = ("hint_id", "decision", "span", "answer")
    said = [("a", "leak", "it", "Nile"), ("b", "no_leak", None, None), ("a", "leak", None, "x")]
    rows = [dict(zip(columns, row, strict=True)) for row in said]
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


def test_spans_neither_begin_nor_end_with_a_stop_word_and_no_word_only_begins_as_the_answer() -> None:
    model, settings = Says("planet"), Leakage(screen=-1, contained=False)
    assert find_leaks("Which machine flies?", ["Plane"], ["The planet is far."], model, None, settings) == [[]]
    assert model.asked == ["far"]
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
    model = Says("flows")
    settings, hint = Leakage(method="bem"), "The river, in US maps, flows through Khartoum; it is US property, Nile."
    [found] = find_leaks(QUESTION, ["Nile", "Blue Nile"], [hint], model, None, settings)
    words = ["river", "US", "maps", "flows", "Khartoum", "property"]  # of the question too; US is no "us"
    pairs = [(word, answer) for word in words for answer in ("Nile", "Blue Nile")]
    assert model.pairs == [*pairs, ("Nile", "Blue Nile")]  # that it is the Nile need not be asked
    leaks = [("Nile", "Nile", "exact"), ("flows", "Nile", "equivalence"), ("flows", "Blue Nile", "equivalence")]
    assert [(leak.span, leak.answer, leak.method) for leak in found] == leaks


def test_the_papers_method_has_no_rules_spans_or_containment() -> None:
    for answer, hint, spans in (
        ("Ra", "Egyptians portrayed it as a falcon.", []),
        ("Australia", "Australian rules are played there.", []),
        ("New York", "New York never sleeps.", []),
        ("Nile", "The Nile's mouth is a delta.", ["Nile's"]),  # the answer itself
    ):
        [found] = find_leaks(QUESTION, [answer], [hint], Says(), None, Leakage(method="bem"))
        assert [leak.span for leak in found] == spans


def _contained(answer: str, *hints: str, contained: bool = True, said: list[Override] | None = None):
    settings = Leakage(screen=-1, contained=contained)
    found = find_leaks(QUESTION, [answer], hints, Says(), None, settings, [said or []] * len(hints))
    return [[(leak.span, leak.method, leak.overridden) for leak in leaks] for leaks in found]


def test_an_answer_inside_another_word_or_across_two_hints_is_contained_and_so_leaks() -> None:
    """By the paper's definition (a valid answer as a substring of a passage), whatever the words mean."""
    hints = ("Egyptians portrayed it as a falcon.", "It is a god.")
    assert _contained("Ra", *hints) == [[("Ra", "contained", False)], []]
    assert _contained("Ra", *hints, contained=False) == [[], []]
    assert _contained("Ra", *hints, said=[Override(False)]) == [[("Ra", "contained", True)], []]
    assert _contained("Nile", HINT) == [[("Nile", "exact", False)]], "what a rule found is not found twice"
    hints = ("York minster is far away.", "It was once called New", "It has five boroughs.")
    assert _contained("new york", *hints) == [[], [("new york", "contained", False)], []]
    assert _contained("New Yorker", *hints) == [[], [], []]
