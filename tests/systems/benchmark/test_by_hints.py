"""The table by number of hints: budgets against exact expectations, columns of a small release by hand."""

from math import factorial

import numpy as np
import pytest

from benchmarks import by_hints
from benchmarks.by_hints import BUDGET, CONTROL, SETTINGS, columns, row, spent
from quit.models.factory import Models
from quit.retrieval.protocols import Ranking
from quit.settings import load

DEFAULTS = load("embedded", []).settings
FIRST, OTHER = (Ranking(np.arange(start, start + BUDGET), np.arange(BUDGET, 0.0, -1)) for start in (0, BUDGET))


def thompson() -> float:
    """Return the expected pulls of an arm where all are relevant, beside one where none is, over the budget.

    After a and b pulls theta is Beta(1 + a, 1) and Beta(1, 1 + b); the second is the larger one with the probability
    (1 + b)! (1 + a)! / (a + b + 2)!.
    """
    reached = {0: 1.0}
    for step in range(BUDGET):
        after: dict[int, float] = {}
        for a, probability in reached.items():
            wrong = factorial(1 + step - a) * factorial(1 + a) / factorial(step + 2)
            after[a + 1] = after.get(a + 1, 0.0) + probability * (1 - wrong)
            after[a] = after.get(a, 0.0) + probability * wrong
        reached = after
    return sum(a * probability for a, probability in reached.items()) / BUDGET


def test_a_bandit_spends_its_budget_as_thompson_sampling_does() -> None:
    relevant = [np.ones(BUDGET, dtype=bool), np.zeros(BUDGET, dtype=bool)]
    assert spent("q", [FIRST, OTHER], relevant, DEFAULTS) == pytest.approx([0.5, thompson()], abs=0.02)


def test_a_passage_of_two_arms_is_judged_once() -> None:
    relevant = np.arange(BUDGET) % 2 == 0
    assert spent("q", [FIRST, FIRST], [relevant, relevant], DEFAULTS) == [0.5, 0.5]


def test_columns_of_a_release_by_hand(world, monkeypatch) -> None:
    """Of each of three questions the passages 0 and 01 have label 2: one of a hint, one of two, of 6 passages each.
    MiniLM finds them all; BM25 none, since no hint has a word of its question, and NAR has nothing to begin with."""
    monkeypatch.setattr(by_hints, "NAR", "nar:minilm")
    monkeypatch.setattr(by_hints, "ARMS", ("bm25", "minilm", "late", "nar:minilm"))
    context = world.context(*SETTINGS, models=Models(DEFAULTS))
    for hints, relevant in ((1, 1), (2, 1), (0, 2)):
        values = columns(context, world.task.queries, world.task.relevance, hints)
        assert values["at most"].tolist() == [relevant / BUDGET] * 3
        assert values["bm25"].tolist() == values[CONTROL].tolist() == values[f"{CONTROL} reaches"].tolist() == [0.0] * 3
        assert values["nar:minilm reaches"].tolist() == values["reaches - control"].tolist() == [1.0] * 3
        if hints:  # six passages: all of them are among the first ten
            for name in ("minilm", "late", "nar:minilm", "nar - control", "any arm", "bandit"):
                assert values[name] == pytest.approx([0.1] * 3)
        assert set(values["complex"]) <= {0.0, 1.0}
    assert row("all", {"a": np.array([1.0, 1, 0]), "b": np.zeros(3)}, np.array([True, True, False]), DEFAULTS) == (
        "| all | 2 | 1.00 (1.00, 1.00) | 0.00 (0.00, 0.00) |"
    )
