"""Bounds against hand-worked cases, published figures and all cases of a small population."""

import math

import pytest
from scipy.stats import beta, hypergeom

from quit.stages.selection.bounds import audit_size, upper_bound


def test_hand_worked() -> None:
    # None of 5 drawn from 10 is wrong. With 3 wrong that has probability C(7,5)/C(10,5) = 21/252 = 0.083, with 4 wrong
    # C(6,5)/C(10,5) = 6/252 = 0.024: at 5% the bound is 3, at 1% (5 wrong: 1/252 = 0.004) it is 4.
    assert upper_bound(0, 5, 10, 0.05) == 3
    assert upper_bound(0, 5, 10, 0.01) == 4
    # One of 2 drawn, and it is not wrong: with 1 wrong that has probability 1/2, which is not above 1/2.
    assert upper_bound(0, 1, 2, 0.5) == 0


@pytest.mark.parametrize(("wrong", "sample"), [(0, 50), (3, 200), (17, 400), (40, 1000)])
def test_a_large_population_is_clopper_and_pearson(wrong: int, sample: int) -> None:
    population = 2_000_000
    exact = float(beta.ppf(0.975, wrong + 1, sample - wrong))
    assert upper_bound(wrong, sample, population, 0.025) / population == pytest.approx(exact, rel=2e-3)


def test_nothing_is_left_to_bound_where_all_are_drawn() -> None:
    assert upper_bound(4, 30, 30, 0.01) == 4
    assert upper_bound(0, 0, 30, 0.01) == 30


def test_coverage_in_every_case_of_a_small_population() -> None:
    population, sample, alpha = 40, 13, 0.05
    for wrong in range(population + 1):
        below = [
            hypergeom.pmf(found, population, wrong, sample)
            for found in range(max(0, sample - population + wrong), min(sample, wrong) + 1)
            if upper_bound(found, sample, population, alpha) < wrong
        ]
        assert sum(below) <= alpha


def test_the_least_audit_can_show_the_promise_and_a_smaller_one_cannot() -> None:
    population, error, alpha = 3_000, 0.05, 0.0025
    least = 2 * math.log(1 / alpha) / error
    size = audit_size(1_000, error, alpha)
    assert size == math.ceil(1.25 * least)
    assert 2 * upper_bound(0, size, population, alpha) / population <= error
    assert 2 * upper_bound(0, round(0.8 * least), population, alpha) / population > error


def test_the_audit_grows_with_the_build_and_is_never_more_than_all() -> None:
    sizes = [audit_size(passages, 0.05, 0.0025) for passages in (100, 3_250, 35_100, 2_630_875)]
    assert sizes[0] == 100
    assert sizes == sorted(sizes)
    assert sizes[-1] < 0.005 * 2_630_875
