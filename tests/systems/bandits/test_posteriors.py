"""Updates and expansion by hand; tabulated quantiles against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from quit.systems.bandits.posteriors import QuantileTable, beta_update, expands, gaussian_posterior, inherit

N, TAU = 4, 0.77


def test_beta_updates_may_be_fractional_and_are_clipped() -> None:
    alpha, beta = beta_update(np.array([1.0, 1.0, 2.5, 1.0, 1.0]), np.ones(5), np.array([1.0, 0.0, 0.25, 1.3, -0.2]))
    assert alpha.tolist() == [2.0, 1.0, 2.75, 2.0, 1.0]
    assert beta.tolist() == [1.0, 2.0, 1.75, 1.0, 2.0]


@given(st.lists(st.floats(-1, 2), max_size=30))
def test_every_pull_adds_one_to_alpha_plus_beta(rewards: list[float]) -> None:
    alpha, beta = np.ones(1), np.ones(1)
    for reward in rewards:
        alpha, beta = beta_update(alpha, beta, np.array([reward]))
    assert float((alpha + beta)[0]) == pytest.approx(2 + len(rewards)) and alpha[0] >= 1 and beta[0] >= 1


def test_gaussian_posterior_is_a_precision_weighted_mean() -> None:
    mean, variance = gaussian_posterior(0.0, 1.0, np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.8, 1.8]))
    assert variance.tolist() == pytest.approx([1.0, 1 / 2, 1 / 4])
    assert mean.tolist() == pytest.approx([0.0, 0.4, 0.45])
    mean, variance = gaussian_posterior(2.0, 0.5, np.array([2.0]), np.array([1.0]))  # precision 2 + 2, mean (4 + 1) / 4
    assert (mean[0], variance[0]) == (pytest.approx(1.25), pytest.approx(0.25))


@pytest.mark.parametrize(
    ("relevant", "pulls", "expected"),
    [(4, 4, True), (5, 5, True), (6, 6, True), (6, 7, True), (3, 4, False), (3, 3, False), (5, 6, False)],
)
def test_which_arms_expand(relevant: int, pulls: int, expected: bool) -> None:
    alpha, beta = np.array([1.0 + relevant]), np.array([1.0 + pulls - relevant])
    assert bool(expands(alpha, beta, np.array([pulls]), N, TAU)[0]) is expected


def test_a_child_keeps_the_mean() -> None:
    alpha, beta = inherit(np.array([5.0]), np.array([1.0]), 0.91)
    assert (alpha[0], beta[0]) == (pytest.approx(4.55), pytest.approx(0.91))
    assert alpha[0] / (alpha[0] + beta[0]) == pytest.approx(5 / 6)


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (1, 11), (11, 1), (3.6, 2.4), (6, 6)])
def test_tabulated_quantiles_are_those_of_the_distribution(alpha: float, beta: float) -> None:
    table = QuantileTable(1024)
    row = table.beta(alpha, beta)
    made = table.values[row * 1024 : (row + 1) * 1024]
    assert made == pytest.approx(stats.beta.ppf((np.arange(1024) + 0.5) / 1024, alpha, beta), abs=3e-4)
    assert table.beta(alpha, beta) == row and table.count == 1


def test_gaussian_quantiles_and_growth() -> None:
    table = QuantileTable(256)
    rows = [table.gaussian(mean, 0.25) for mean in range(100)]
    assert rows == list(range(100))
    made = table.values[7 * 256 : 8 * 256]
    assert made == pytest.approx(stats.norm.ppf((np.arange(256) + 0.5) / 256, 7, 0.5), abs=1e-4)
