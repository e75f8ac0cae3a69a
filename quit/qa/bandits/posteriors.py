"""Beliefs about arms: Beta (algorithm 1), Gaussian (algorithm 2), one more of tables 4 and 5, what a child inherits
(3.5), and drawing from them in bulk.

Thompson sampling draws a theta for every arm, run and step: hundreds of millions on a real file. Almost all beliefs
that occur are few (an arm's rewards down its list are known), so their quantiles are tabulated once and a draw is a
look-up at a random place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.special import ndtri, stdtrit

from quit.common.arithmetic import exp, log

_EDGES = np.linspace(0.0, 1.0, 4097)
"""Of the pieces in which a Beta density is integrated."""


class Belief(Protocol):
    """A belief about arms. A ``state`` has one row per parameter, shape (parameters, ...), float64; its other axes
    are anything, such as runs and arms."""

    prior: np.ndarray
    """The state before the first pull, shape (parameters,)."""

    def update(self, state: np.ndarray, reward: np.ndarray) -> np.ndarray:
        """Return the state after a reward each."""

    def mean(self, state: np.ndarray) -> np.ndarray:
        """Return the expected theta."""

    def draw(self, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return one sampled theta each."""

    def row(self, table: QuantileTable, state: np.ndarray) -> int:
        """Return the row of a table that has the quantiles of theta; ``state``: shape (parameters,)."""

    def inherited(self, state: np.ndarray, inheritance: float) -> np.ndarray:
        """Return a child's prior (3.5): its parent's mean, held less firmly (``inheritance``: lambda, 0 to 1)."""
        return inheritance * state


class BetaBelief(Belief):
    """Beta(alpha, beta), algorithm 1: both are 1 at first. State: alpha, beta."""

    prior = np.array([1.0, 1.0])

    def update(self, state: np.ndarray, reward: np.ndarray) -> np.ndarray:
        """Return (alpha + r, beta + 1 - r), algorithm 1, lines 11 and 12; r is clipped to 0..1."""
        r = np.clip(reward, 0.0, 1.0)
        return np.stack([state[0] + r, state[1] + (1.0 - r)])

    def mean(self, state: np.ndarray) -> np.ndarray:
        return state[0] / (state[0] + state[1])

    def draw(self, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.beta(state[0], state[1])

    def row(self, table: QuantileTable, state: np.ndarray) -> int:
        return table.beta(float(state[0]), float(state[1]))


class GaussianBelief(Belief):
    """N(mu, sigma^2) with unit noise, algorithm 2. State: precision 1 / sigma^2, and precision times mu;
    the prior is N(0, 1).

    After n rewards sigma^2 = 1 / (1 / sigma_0^2 + n), mu = sigma^2 (mu_0 / sigma_0^2 + sum r). The paper prints a
    square root around the first, which would make it a standard deviation. What a child inherits is ours: the paper
    says it for Beta alone (3.5), where lambda takes the same share of all evidence.
    """

    prior = np.array([1.0, 0.0])

    def update(self, state: np.ndarray, reward: np.ndarray) -> np.ndarray:
        return np.stack([state[0] + 1.0, state[1] + reward])

    def mean(self, state: np.ndarray) -> np.ndarray:
        return (1.0 / state[0]) * state[1]

    def draw(self, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(self.mean(state), np.sqrt(1.0 / state[0]))

    def row(self, table: QuantileTable, state: np.ndarray) -> int:
        return table.gaussian(float(self.mean(state)), float(1.0 / state[0]))


class GaussianIngBelief(Belief):
    """Normal and inverse gamma: mean and variance of the rewards are both unknown. State: kappa, mu, alpha, beta.

    The paper's tables 4 and 5 have a row "Gaussian ING" that no text of it defines; this reads ING as the conjugate
    prior named so. theta is the mean: Student's t with 2 alpha degrees of freedom around mu, scale^2 beta / (alpha
    kappa). The prior is ours: kappa, alpha and beta 1, mu 0. A child inherits lambda kappa, mu, lambda alpha, lambda
    beta.
    """

    prior = np.array([1.0, 0.0, 1.0, 1.0])

    def update(self, state: np.ndarray, reward: np.ndarray) -> np.ndarray:
        kappa, mu, alpha, beta = state
        after = kappa + 1.0
        return np.stack(
            [after, (kappa * mu + reward) / after, alpha + 0.5, beta + kappa * (reward - mu) ** 2 / (2.0 * after)]
        )

    def mean(self, state: np.ndarray) -> np.ndarray:
        return state[1]

    def inherited(self, state: np.ndarray, inheritance: float) -> np.ndarray:
        kappa, mu, alpha, beta = state
        return np.stack([inheritance * kappa, mu, inheritance * alpha, inheritance * beta])

    def draw(self, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        kappa, mu, alpha, beta = state
        return mu + np.sqrt(beta / (alpha * kappa)) * rng.standard_t(2.0 * alpha)

    def row(self, table: QuantileTable, state: np.ndarray) -> int:
        kappa, mu, alpha, beta = map(float, state)
        return table.student(mu, beta / (alpha * kappa), 2.0 * alpha)


def expands(mean: np.ndarray, pulls: np.ndarray, n: int, tau: float) -> np.ndarray:
    """Return whether an arm is expanded: at least n pulls and an expected theta above tau (3.5)."""
    return (pulls >= n) & (mean > tau)


class QuantileTable:
    """Equally probable quantiles of many distributions, one row each, float32; rows are added as they are asked for.

    ``levels``: quantiles per row, a power of two. A draw is exact up to 1 / levels in probability.
    """

    def __init__(self, levels: int = 4096) -> None:
        self.levels = levels
        self._at = (np.arange(levels) + 0.5) / levels
        self._normal = ndtri(self._at)
        self._rows: np.ndarray = np.zeros((64, levels), dtype=np.float32)
        self.count = 0
        """Rows made so far."""
        self._row_of: dict[tuple[str, tuple[float, ...]], int] = {}

    @property
    def values(self) -> np.ndarray:
        """All rows one after the other, shape (rows * levels,)."""
        return self._rows.ravel()

    def constant(self, value: float) -> int:
        """Return the row of a distribution that is always ``value``."""
        return self._row("constant", lambda value: value, value)

    def beta(self, alpha: float, beta: float) -> int:
        """Return the row of Beta(alpha, beta); both must be at least 1."""
        return self._row("beta", self._beta, alpha, beta)

    def gaussian(self, mu: float, variance: float) -> int:
        """Return the row of N(mu, variance)."""
        return self._row("gaussian", lambda mu, variance: mu + np.sqrt(variance) * self._normal, mu, variance)

    def student(self, mu: float, variance: float, freedom: float) -> int:
        """Return the row of Student's t with ``freedom`` degrees, scaled by the root of ``variance``, around mu."""
        return self._row("student", self._student, mu, variance, freedom)

    def _row(self, kind: str, quantiles: Callable[..., np.ndarray | float], *parameters: float) -> int:
        key = (kind, tuple(round(value, 9) for value in parameters))
        if key not in self._row_of:
            if self.count == len(self._rows):
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._rows[self.count] = quantiles(*key[1])
            self._row_of[key] = self.count
            self.count += 1
        return self._row_of[key]

    def _student(self, mu: float, variance: float, freedom: float) -> np.ndarray:
        return mu + np.sqrt(variance) * stdtrit(freedom, self._at)

    def _beta(self, alpha: float, beta: float) -> np.ndarray:
        middle = (_EDGES[1:] + _EDGES[:-1]) / 2
        density = (alpha - 1) * log(middle) + (beta - 1) * log(1 - middle)
        below = np.concatenate([[0.0], np.cumsum(exp(density - density.max()))])
        return np.interp(self._at, below / below[-1], _EDGES)
