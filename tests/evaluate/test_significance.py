"""Intervals and tests against exact enumeration and scipy."""

import numpy as np
import pytest
from scipy import stats

from quit.evaluate.significance import Comparison, compare, holm, intervals, share_interval


def test_randomisation_is_exact_for_few_questions() -> None:
    # Four equal positive differences: of 16 sign patterns, all plus and all minus are as extreme. p = 2 / 16.
    [comparison] = compare([(np.ones(4), np.zeros(4))], 100, 0)
    assert comparison.p_randomisation == 0.125 and comparison.difference == 1.0
    assert comparison.p_t is None  # no variance, no t (R's t.test: "data are essentially constant")
    # Differences 1, 1, -1: |sum| >= 1 for every pattern.
    [comparison] = compare([(np.array([1.0, 1, 0]), np.array([0.0, 0, 1]))], 100, 0)
    assert comparison.p_randomisation == 1.0


def test_against_scipy() -> None:
    generator = np.random.default_rng(3)
    a = generator.normal(0.3, 1, 60)
    b = generator.normal(0.0, 1, 60)
    [comparison] = compare([(a, b)], 20_000, 1)
    assert comparison.p_t == pytest.approx(stats.ttest_rel(a, b).pvalue)
    theirs = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=20_000, rng=5
    )
    assert comparison.p_randomisation == pytest.approx(theirs.pvalue, abs=0.015)
    boot = stats.bootstrap((a - b,), np.mean, method="percentile", n_resamples=20_000, rng=5).confidence_interval
    assert (comparison.low, comparison.high) == pytest.approx((boot.low, boot.high), abs=0.03)


def test_the_same_seed_gives_the_same_bits_and_pairs_do_not_disturb_each_other() -> None:
    generator = np.random.default_rng(0)
    a, b, c = (generator.random(40) for _ in range(3))
    alone, beside = compare([(a, b)], 500, 7), compare([(a, b), (a, c)], 500, 7)
    assert compare([(a, b)], 500, 7) == alone
    # Everything but Holm's correction, which is about the family.
    assert vars_of(alone[0]) == pytest.approx(vars_of(beside[0]), rel=1e-12)


def vars_of(pair: Comparison) -> tuple:
    return pair.difference, pair.low, pair.high, pair.p_randomisation, pair.p_t


def test_one_question_none_and_no_difference() -> None:
    [same] = compare([(np.ones(30), np.ones(30))], 100, 0)
    assert vars_of(same) == (0, 0, 0, 1, 1)
    [one] = compare([(np.array([0.5]), np.array([0.25]))], 100, 0)
    assert vars_of(one) == (0.25, 0.25, 0.25, 1, None)
    tenth = np.arange(20) / 10  # 0.1 more everywhere, except for rounding
    assert compare([(tenth + 0.1, tenth)], 100, 0)[0].p_t is None
    assert intervals(np.array([[0.25]]), 200, 0).tolist() == [[0.25, 0.25]]
    assert intervals(np.zeros((0, 2)), 200, 0).tolist() == [[0, 0], [0, 0]]
    assert compare([], 100, 0) == []


def test_the_interval_holds_the_true_mean_as_often_as_it_says() -> None:
    generator = np.random.default_rng(11)
    held = 0
    for number in range(200):
        low, high = intervals(generator.random((50, 1)), 400, number)[0]
        held += low <= 0.5 <= high
    assert 0.9 <= held / 200 <= 0.99


def test_the_interval_of_a_share_over_questions_is_scipy_s_bootstrap_of_the_ratio() -> None:
    generator = np.random.default_rng(3)
    of = generator.integers(1, 30, 60)
    right = generator.binomial(of, generator.random(60) / 4)
    boot = stats.bootstrap(
        (right, of), lambda right, of, axis: right.sum(axis) / of.sum(axis), paired=True, vectorized=True,
        method="percentile", n_resamples=20_000, rng=5,
    ).confidence_interval  # fmt: skip
    assert share_interval(right, of) == pytest.approx((boot.low, boot.high), abs=0.005)
    assert share_interval(np.zeros(0), np.zeros(0)) == (0.0, 0.0)


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.04 times 3, 2, 1: 0.03, 0.04, 0.04.
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.6, 0.7]) == [1.0, 1.0] and holm([]) == []
