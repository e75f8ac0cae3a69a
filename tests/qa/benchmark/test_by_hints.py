"""The table by number of hints: budgets against exact expectations."""

import numpy as np
import pytest

from benchmarks.by_hints import BUDGET, row, spent
from quit.qa.settings import load
from quit.retrieval.protocols import Ranking

DEFAULTS = load("embedded", []).settings
FIRST, OTHER = (Ranking(np.arange(start, start + BUDGET), np.arange(BUDGET, 0.0, -1)) for start in (0, BUDGET))


def test_a_bandit_spends_its_budget_on_the_better_arm_and_a_passage_of_two_arms_is_judged_once() -> None:
    # After a and b pulls theta is Beta(1 + a, 1) and Beta(1, 1 + b), and the second is larger with the probability
    # (1 + b)! (1 + a)! / (a + b + 2)!. Summed over all orders of ten pulls: 0.85686 of them go to the first.
    shares = spent("q", [FIRST, OTHER], [np.ones(BUDGET, dtype=bool), np.zeros(BUDGET, dtype=bool)], DEFAULTS)
    assert shares == pytest.approx([0.5, 0.85686], abs=0.02)
    relevant = np.arange(BUDGET) % 2 == 0
    assert spent("q", [FIRST, FIRST], [relevant, relevant], DEFAULTS) == [0.5, 0.5]


def test_a_row_of_some_questions() -> None:
    values = {"a": np.array([1.0, 1, 0]), "b": np.zeros(3)}
    expected = "| all | 2 | 1.00 (1.00, 1.00) | 0.00 (0.00, 0.00) |"
    assert row("all", values, np.array([True, True, False]), DEFAULTS) == expected
