"""The table by number of hints: budgets against exact expectations."""

from math import factorial

import numpy as np
import pytest

from benchmarks.by_hints import BUDGET, row, spent
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


def test_a_row_of_some_questions() -> None:
    values = {"a": np.array([1.0, 1, 0]), "b": np.zeros(3)}
    expected = "| all | 2 | 1.00 (1.00, 1.00) | 0.00 (0.00, 0.00) |"
    assert row("all", values, np.array([True, True, False]), DEFAULTS) == expected
