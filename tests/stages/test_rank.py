import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from quit.errors import SettingsError
from quit.models.convergence_scored import LLMConvergence, convergence
from quit.models.prompting import load_prompt
from quit.models.protocols import Drawn, HintSet
from quit.settings import Convergence
from quit.stages.questions.candidates import CandidatePool
from quit.stages.questions.question_type import Typed
from quit.stages.rank import Valuation, rank_hints
from tests.building import carry_out, plan_build
from tests.qa.scripted import scripted
from tests.rows import table_of, tuples, write_lines


def test_hand_computed() -> None:
    assert convergence([0] * 10, 1) == convergence([], 1) == 1.0  # only the gold answer fits
    assert convergence([1] * 10, 1) == 0.09  # every candidate fits: 1 - 10/11
    assert convergence([1, 1, *[0] * 8], 1) == 0.82
    assert convergence([0] * 10, 0) == 0.0  # does not fit the gold answer
    assert convergence([1] * 5 + [0] * 10, 1) == 0.55  # only the first ten distractors count


@pytest.mark.parametrize("name", ["Copilot", "GPT_3.5", "LLaMA_7b_Finetuned"])
def test_published_values_are_reproduced(data, name: str) -> None:
    total = right = 0
    for question in json.loads((data / "triviahg" / f"{name}.json").read_text(encoding="utf-8")):
        for scores, published in zip(question["Scores"], question["Convergence"]):
            *distractors, gold = scores.values()
            total += 1
            right += convergence(distractors, gold) == published
    assert total > 890
    assert right / total >= 0.99


def _tables(hints: list[dict], scores: Sequence[dict] = (), question: str = "Which city?") -> dict[str, pa.Table]:
    of = {"question_id": "q"}
    rows = [{"hint_id": f"q-h{place:02d}", **of, "position": place, **hint} for place, hint in enumerate(hints)]
    names = ["London", "Berlin", "Madrid", "Rome", "Vienna", "Paris"]
    candidates = [{**of, "position": n, "candidate": name, "is_gold": name == "Paris"} for n, name in enumerate(names)]
    return {
        "questions": table_of("questions", [{**of, "question": question, "answers": ["Paris"]}]),
        "hints": table_of("hints", rows),
        "usable_hints": table_of("usable_hints", [{"hint_id": row["hint_id"], **of} for row in rows]),
        "candidates": table_of("candidates", candidates),
        "scores": table_of("scores", scores),
    }


class Fixed:
    """A model that values a hint by its text, and remembers what it was asked."""

    identity = "fixed"

    def __init__(self, values: dict[str, float] | None = None) -> None:
        self.by_hint = values or {}
        self.items: list[HintSet] = []

    def values(self, items: list[HintSet]) -> list[list[float]]:
        assert items  # a model is not asked about nothing
        self.items += items
        return [[self.by_hint.get(hint, 0.0) for hint in item.hints] for item in items]


def _pool(*names: str) -> SimpleNamespace:
    """Return a pool of candidates without a collection."""
    drawn = [Drawn(name, "city:City", 0.5) for name in names]
    return SimpleNamespace(identity="pool", draw=lambda questions: [drawn for _ in questions])


def _typed(questions: pa.Table) -> list[Typed]:
    return [Typed("LOC:LOCATION", "city:City", 1.0, "source")] * len(questions)


def _never() -> CandidatePool:
    raise AssertionError("the source has candidates: none may be drawn")


def _rank(tables: dict[str, pa.Table], model=None, pool=_never, **settings) -> dict[str, pa.Table]:
    valuation = Valuation(model or Fixed(), _typed, pool, Convergence(**settings))
    return rank_hints(**tables, valuation=valuation, max_hints=5)


def test_ties_go_to_the_shorter_hint_then_to_source_order() -> None:
    values = {"a longer one of one half": 0.5, "ccc": 0.5, "bbb": 0.5, "best": 0.9, "worst": 0.0, "second": 0.8}
    hints = [{"hint": hint, "convergence": value} for hint, value in values.items()]
    order = ["best", "second", "ccc", "bbb", "a longer one of one half", "worst"]
    ranked = [(hint, hint != "worst", "source") for hint in order]
    assert tuples(_rank(_tables(hints))["ranked_hints"], "hint", "selected", "producer") == ranked


def test_a_sources_scores_are_used_where_it_has_no_convergence() -> None:
    hints = [{"hint": f"hint {place}"} for place in range(5)]
    scores = [
        {"hint_id": f"q-h{hint:02d}", "question_id": "q", "position": place, "candidate": name,
         "score": int(place < hint or name == "Paris")}
        for hint in range(5)
        for place, name in enumerate(["London", "Berlin", "Madrid", "Rome", "Paris"])
    ]  # fmt: skip
    values = [(value, "source-scores") for value in (1.0, 0.8, 0.6, 0.4, 0.2)]
    assert tuples(_rank(_tables(hints, scores))["ranked_hints"], "convergence", "producer") == values


def test_only_hints_without_a_value_are_valued_but_all_are_shown_unless_the_sources_are_set_aside() -> None:
    hints = [{"hint": f"hint {place}", "convergence": 0.5} for place in range(4)] + [{"hint": "open"}]
    model = Fixed({"open": 0.7, "hint 0": 0.9})
    ranked = _rank(_tables(hints), model)["ranked_hints"]
    best = [("open", 0.7, "fixed"), ("hint 0", 0.5, "source")]
    assert tuples(ranked, "hint", "convergence", "producer")[:2] == best
    [item] = model.items
    assert item.hints == ("hint 0", "hint 1", "hint 2", "hint 3", "open")
    assert (item.gold, item.coarse) == ("Paris", "LOC:LOCATION")
    assert item.distractors == ("London", "Berlin", "Madrid", "Rome", "Vienna")
    ranked = _rank(_tables(hints), model, prefer_source=False)["ranked_hints"].to_pylist()
    assert ranked[0]["hint"] == "hint 0" and {row["producer"] for row in ranked} == {"fixed"}
    scores = [{"hint_id": "q-h01", "question_id": "q", "position": place, "candidate": name, "score": 1}
              for place, name in enumerate(["Berlin", "Paris"])]  # fmt: skip
    ranked = _rank(_tables(hints, scores), model, prefer_source="scores")["ranked_hints"].to_pylist()
    assert [(row["hint"], row["convergence"]) for row in ranked if row["producer"] != "fixed"] == [("hint 1", 0.5)]


def test_drawn_candidates_are_written_down_and_used_and_none_drawn_where_none_is_needed() -> None:
    tables = _tables([{"hint": f"hint {place}"} for place in range(5)])
    tables["candidates"] = tables["candidates"].filter(tables["candidates"].column("is_gold"))
    model = Fixed()
    drawn = _rank(tables, model, lambda: _pool("Oslo", "Bern", "Kyiv"), candidate_cap=3)["drawn_candidates"]
    assert model.items[0].distractors == ("Oslo", "Bern")
    expected = [("q", 0, "Oslo"), ("q", 1, "Bern"), ("q", 2, "Kyiv")]
    assert tuples(drawn, "question_id", "position", "candidate") == expected
    valued = _tables([{"hint": f"hint {place}", "convergence": 0.5} for place in range(5)])
    valued["candidates"], model = valued["candidates"].slice(0, 0), Fixed()
    assert len(_rank(valued, model)["drawn_candidates"]) == 0 and not model.items


def _says(reply: Callable[[str, str], str]) -> LLMConvergence:
    """Return convergence by the replies to pairs of a hint and a candidate."""
    generator = scripted(lambda request: reply(request.fields["hint"], request.fields["candidate"]))
    return LLMConvergence(generator, load_prompt("refers"), Convergence())


def test_verdicts_become_convergence_by_the_formula() -> None:
    # A hint refers to every candidate whose first letter it holds.
    letters = _says(lambda hint, candidate: "Yes" if candidate[0] in hint else "No")
    item = HintSet("Which city?", ("p", "pl", "plb", "l"), "paris", ("london", "berlin", "madrid"))
    # n = 4 candidates: 1 - rivals / 4, and 0 for the hint that does not refer to the gold answer.
    assert letters.values([item]) == [[1.0, 0.75, 0.5, 0.0]]


def test_notes_of_missing_verdicts_do_not_depend_on_earlier_calls() -> None:
    model = _says(lambda hint, candidate: "Hm" if candidate in ("London", "Rome") else "Yes")
    tables = _tables([{"hint": f"hint {place}"} for place in range(4)] + [{"hint": "hint", "convergence": 0.9}])
    first, again = (_rank(tables, model, method="llm", language_model="one")["ranked_hints"] for _ in range(2))
    assert first.equals(again)
    missing = "2 candidates without a readable Yes or No"
    assert first["note"].to_pylist() == [None, *[missing] * 4]


def test_a_model_that_says_too_little_is_refused_not_joined_by_position() -> None:
    tables = _tables([{"hint": f"hint {place}"} for place in range(5)])
    bare = {**tables, "candidates": tables["candidates"].slice(0, 0)}
    silent = SimpleNamespace(identity="", values=lambda items: [[]])
    unread = SimpleNamespace(draw=lambda questions: [])
    usual = Valuation(Fixed(), _typed, _pool, Convergence())
    typed = {"types": lambda questions: []}
    for rows, rest in ((tables, {"model": silent}), (bare, {"pool": lambda: unread}), (tables, typed)):
        with pytest.raises(ValueError, match="zip"):
            rank_hints(**rows, valuation=replace(usual, **rest), max_hints=5)


def test_only_values_of_an_embedded_model_have_notes() -> None:
    """The second hint's value is the source's own; a language model reads other languages and longer texts."""
    german = ["Sie liegt an der Seine.", "Sie ist eine Hauptstadt.", "Sie hat viele Museen.", "Dort steht ein Turm."]
    hints = [{"hint": german[0]}, {"hint": german[1], "convergence": 0.9}, *({"hint": hint} for hint in german[2:])]
    hints.append({"hint": "Stadt " * 300})
    noted = ["not English", None, "not English", "not English", "not English; hint cut to 254 word pieces"]
    for settings, notes in (({}, noted), ({"method": "llm", "language_model": "one"}, [None] * 5)):
        tables = _tables(hints, question="Welche Stadt ist gemeint?")
        rows = tuples(_rank(tables, **settings)["ranked_hints"], "hint_id", "note")
        assert [note for _, note in sorted(rows)] == notes


def test_orders_that_make_too_many_passages_of_ranked_hints_are_refused_before_a_model_is_asked(tmp_path) -> None:
    record = {"id": "q", "question": "Which lake is it?", "answers": ["Baikal"]}
    hints = [{"hint": f"It is the hint number {n}.", "convergence": n / 10} for n in range(9)]
    source = write_lines(tmp_path / "q.jsonl", [{**record, "hints": hints}])
    design = ("passages.hints='all'", "passages.sizes=[1, 8]", "collect.questions=0")
    one_order = plan_build(tmp_path / "W", *design, "passages.orders='source'", source=source)
    carry_out(one_order, "collect", "filter", "rank")
    with pytest.raises(SettingsError, match="362,880"):
        plan_build(tmp_path / "W", *design, source=source).begin()
