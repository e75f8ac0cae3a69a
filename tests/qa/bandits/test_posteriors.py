"""Updates and expansion by hand; tabulated quantiles against scipy's."""

import numpy as np
import pytest
from scipy import stats

from quit.qa.bandits.posteriors import BetaBelief, GaussianBelief, GaussianIngBelief, QuantileTable, expands

N, TAU = 4, 0.77
BETA = BetaBelief()


def test_beta_updates_may_be_fractional_and_are_clipped() -> None:
    rewards = np.array([1.0, 0.0, 0.25, 1.3, -0.2])
    alpha, beta = BETA.update(np.array([[1.0, 1.0, 2.5, 1.0, 1.0], [1.0] * 5]), rewards)
    assert alpha.tolist() == [2.0, 1.0, 2.75, 2.0, 1.0]
    assert beta.tolist() == [1.0, 2.0, 1.75, 1.0, 2.0]


def _after(belief, rewards) -> np.ndarray:
    state = belief.prior
    for reward in rewards:
        state = belief.update(state, np.float64(reward))
    return state


def test_gaussian_posterior_is_a_precision_weighted_mean() -> None:
    belief = GaussianBelief()
    for rewards, mean, variance in (([], 0.0, 1.0), ([0.8], 0.4, 1 / 2), ([0.8, 0.4, 0.6], 0.45, 1 / 4)):
        state = _after(belief, rewards)
        assert (float(belief.mean(state)), 1 / state[0]) == (pytest.approx(mean), pytest.approx(variance))


def test_gaussian_ing_is_the_posterior_of_all_rewards_at_once() -> None:
    belief = GaussianIngBelief()
    rewards = np.array([0.1, 0.9, 0.4, 0.4])
    kappa, mu, alpha, beta = _after(belief, rewards)
    # The textbook's closed form (Murphy 2007, section 6): kappa_0 = 1, mu_0 = 0, alpha_0 = beta_0 = 1, n = 4.
    mean, spread = rewards.mean(), ((rewards - rewards.mean()) ** 2).sum()
    assert (kappa, alpha) == (5.0, 3.0) and mu == pytest.approx(4 * mean / 5)
    assert beta == pytest.approx(1.0 + spread / 2 + 1 * 4 * mean**2 / (2 * 5))


@pytest.mark.parametrize("belief", [BETA, GaussianBelief(), GaussianIngBelief()])
def test_draws_and_quantiles_are_of_one_distribution_around_the_mean(belief) -> None:
    state = _after(belief, [1.0, 0.5, 0.75])
    table = QuantileTable(4096)
    row = belief.row(table, state)
    quantiles = table.values[row * 4096 : (row + 1) * 4096]
    drawn = belief.draw(np.tile(state[:, None], 20_000), np.random.default_rng(3))
    at = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    assert np.quantile(drawn, at) == pytest.approx(np.quantile(quantiles, at), abs=0.03)
    assert quantiles.mean() == pytest.approx(float(belief.mean(state)), abs=0.01)
    child = belief.inherited(state, 0.5)
    assert float(belief.mean(child)) == pytest.approx(float(belief.mean(state)))
    assert belief.draw(np.tile(child[:, None], 20_000), np.random.default_rng(3)).std() > 1.15 * drawn.std()


@pytest.mark.parametrize(
    ("relevant", "pulls", "expected"),
    [(4, 4, True), (5, 5, True), (6, 6, True), (6, 7, True), (3, 4, False), (3, 3, False), (5, 6, False)],
)
def test_which_arms_expand(relevant: int, pulls: int, expected: bool) -> None:
    mean = BETA.mean(np.array([[1.0 + relevant], [1.0 + pulls - relevant]]))
    assert bool(expands(mean, np.array([pulls]), N, TAU)[0]) is expected
    assert not expands(np.array([TAU]), np.array([N]), N, TAU), "above tau, not at it"


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (1, 11), (11, 1), (3.6, 2.4), (6, 6), (900, 700)])
def test_tabulated_quantiles_are_those_of_the_distribution(alpha: float, beta: float) -> None:
    table = QuantileTable(1024)
    row = table.beta(alpha, beta)
    quantiles = table.values[row * 1024 : (row + 1) * 1024]
    assert quantiles == pytest.approx(stats.beta.ppf((np.arange(1024) + 0.5) / 1024, alpha, beta), abs=3e-4)
    assert table.beta(alpha, beta) == row and table.count == 1


def test_gaussian_quantiles_and_growth() -> None:
    table = QuantileTable(256)
    rows = [table.gaussian(mean, 0.25) for mean in range(100)]
    assert rows == list(range(100))
    assert table.gaussian(7 + 4e-10, 0.25) == 7 and table.gaussian(7 + 6e-10, 0.25) == 100, "equal to nine digits"
    quantiles = table.values[7 * 256 : 8 * 256]
    assert quantiles == pytest.approx(stats.norm.ppf((np.arange(256) + 0.5) / 256, 7, 0.5), abs=1e-4)
