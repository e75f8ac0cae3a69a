"""Wilson's intervals of a finite stratum, and MOVER's of weighted sums: against scipy, by hand, and at the edges."""

import numpy as np
import pytest
from scipy import stats

from quit.evaluate.proportions import weighted_sum, wilson


def _arrays(*values: list[float]) -> list[np.ndarray]:
    return [np.array(value, dtype=float) for value in values]


@pytest.mark.parametrize(("hits", "sample"), [(0, 10), (1, 10), (7, 30), (150, 300), (30, 30)])
def test_wilson_is_scipys_where_the_population_is_endless(hits: int, sample: int) -> None:
    low, high = wilson(*_arrays([hits], [sample]), None)
    expected = stats.binomtest(hits, sample).proportion_ci(method="wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_of_a_finite_stratum_by_hand() -> None:
    # 2 of 10 drawn from 19: the factor is 9/18, so the interval is that of 4 of 20: (0.08066, 0.41602).
    low, high = wilson(*_arrays([2], [10], [19]))
    assert (low[0], high[0]) == pytest.approx((2 / 19, 0.41602), abs=1e-5)  # 2 hits were seen among the 19
    assert stats.binomtest(4, 20).proportion_ci(method="wilson").high == pytest.approx(high[0], abs=1e-9)
    assert [limit[0] for limit in wilson(*_arrays([3], [7], [7]))] == [3 / 7, 3 / 7]


def test_two_strata_by_hand() -> None:
    # 1000 - 600 times shares of 1 in 10 and 2 in 10; Wilson (0.01788, 0.40415) and (0.05668, 0.50984).
    weights, counts = np.array([1000, -600]), np.array([[1, 2], [0, 0], [10, 10]])
    estimate, low, high = weighted_sum(weights, counts, np.array([10**12, 10**12]))
    assert estimate == pytest.approx(1000 * 0.1 - 600 * 0.2)
    assert low == pytest.approx(-20 - ((1000 * (0.1 - 0.01788)) ** 2 + (600 * (0.50984 - 0.2)) ** 2) ** 0.5, abs=0.02)
    assert high == pytest.approx(-20 + ((1000 * (0.40415 - 0.1)) ** 2 + (600 * (0.2 - 0.05668)) ** 2) ** 0.5, abs=0.02)


def test_an_unknown_one_counts_both_ways() -> None:
    population = np.array([500, 400])
    for weights in (np.array([2.0, -1.0]), np.array([-3.0, -1.0])):
        estimate, low, high = weighted_sum(weights, np.array([[3, 1], [2, 1], [20, 20]]), population)
        known = [
            weighted_sum(weights, np.array([[3 + first, 1 + second], [0, 0], [20, 20]]), population)
            for first in range(3)
            for second in range(2)
        ]
        assert estimate is None
        assert (low, high) == pytest.approx((min(row[1] for row in known), max(row[2] for row in known)))


def test_of_a_stratum_without_a_drawn_one_nothing_is_known() -> None:
    counts, population = np.array([[0, 0], [0, 0], [0, 5]]), np.array([8, 5])
    assert weighted_sum(np.array([8.0, -5.0]), counts, population) == (None, 0.0, 8.0)
    assert weighted_sum(np.array([0.0, -5.0]), counts, population) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("errors", [(0.08, 0.12), (0.2, 0.05)])  # share of its yes, of its no, that is wrong
def test_the_share_corrected_by_people_holds_whichever_judge_labelled(errors: tuple[float, float]) -> None:
    """2,000 audits of 400 of 20,000 passages whose true labels are known: a fifth to a third are 2."""
    random, population, sizes = np.random.default_rng(8), np.array([14_000, 6_000]), np.array([280, 120])
    wrong = np.round(population * np.array(errors[::-1])).astype(int)  # of those with label 1, with label 2
    truth, held = (population[1] + wrong[0] - wrong[1]) / 20_000, 0
    for _ in range(2000):
        hits = random.hypergeometric(wrong, population - wrong, sizes)
        _, low, high = weighted_sum(population * np.array([1, -1]), np.stack([hits, hits * 0, sizes]), population)
        held += population[1] + low <= truth * 20_000 <= population[1] + high
    assert 0.93 <= held / 2000 <= 0.97
