"""Beliefs about arms: Beta (algorithm 1), Gaussian (algorithm 2), what a child inherits (3.5), and drawing from them in
bulk.

Thompson sampling draws a theta for every arm, run and step: hundreds of millions on a real file. Almost all beliefs
that occur are few (an arm's rewards down its list are known), so their quantiles are tabulated once and a draw is a
look-up at a random place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.special import ndtri

Numbers = TypeVar("Numbers", np.ndarray, np.float64)
"""One number, or an array of such."""
_CELLS = 4096
"""Pieces in which a Beta density is integrated."""


def beta_update(alpha: Numbers, beta: Numbers, reward: Numbers) -> tuple[Numbers, Numbers]:
    """Return (alpha + r, beta + 1 - r), algorithm 1, lines 11 and 12; r is clipped to 0..1."""
    r = np.clip(reward, 0.0, 1.0)
    return alpha + r, beta + (1.0 - r)


def gaussian_posterior(mu_0: float, variance_0: float, count: Numbers, total: Numbers) -> tuple[Numbers, Numbers]:
    """Return (mu, sigma^2) after ``count`` rewards that sum to ``total``, with unit noise (algorithm 2).

    sigma^2 = 1 / (1 / sigma_0^2 + n), mu = sigma^2 (mu_0 / sigma_0^2 + sum r). The paper prints a square root around
    the first, which would make it a standard deviation.
    """
    variance = 1.0 / (1.0 / variance_0 + count)
    return variance * (mu_0 / variance_0 + total), variance


def expands(alpha: np.ndarray, beta: np.ndarray, pulls: np.ndarray, n: int, tau: float) -> np.ndarray:
    """Return whether an arm is expanded: at least n pulls and alpha / (alpha + beta) above tau (3.5)."""
    return (pulls >= n) & (alpha / (alpha + beta) > tau)


def inherit(alpha: np.ndarray, beta: np.ndarray, inheritance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a child's prior (lambda alpha, lambda beta): its parent's mean, held a little less firmly."""
    return inheritance * alpha, inheritance * beta


class QuantileTable:
    """Equally probable quantiles of many distributions, one row each, float32; rows are added as they are asked for.

    ``levels``: quantiles a row, a power of two. A draw is exact up to 1 / levels in probability.
    """

    def __init__(self, levels: int) -> None:
        self.levels = levels
        self._at = (np.arange(levels) + 0.5) / levels
        self._normal = ndtri(self._at)
        self._rows: np.ndarray = np.zeros((64, levels), dtype=np.float32)
        self.count = 0
        """Rows made so far."""
        self._known: dict[tuple[str, float, float], int] = {}

    @property
    def values(self) -> np.ndarray:
        """All rows one after the other, shape (rows * levels,)."""
        return self._rows.reshape(-1)

    def constant(self, value: float) -> int:
        """Return the row of a distribution that is always ``value``."""
        return self._row("constant", value, 0.0, lambda value, _: value)

    def beta(self, alpha: float, beta: float) -> int:
        """Return the row of Beta(alpha, beta); both must be at least 1."""
        return self._row("beta", alpha, beta, self._beta)

    def gaussian(self, mu: float, variance: float) -> int:
        """Return the row of N(mu, variance)."""
        return self._row("gaussian", mu, variance, lambda mu, variance: mu + np.sqrt(variance) * self._normal)

    def _row(
        self, kind: str, first: float, second: float, quantiles: Callable[[float, float], np.ndarray | float]
    ) -> int:
        key = (kind, round(first, 9), round(second, 9))
        if key not in self._known:
            if self.count == len(self._rows):
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._rows[self.count] = quantiles(*key[1:])
            self._known[key] = self.count
            self.count += 1
        return self._known[key]

    def _beta(self, alpha: float, beta: float) -> np.ndarray:
        edges = np.linspace(0.0, 1.0, _CELLS + 1)
        middle = (edges[1:] + edges[:-1]) / 2
        density = np.exp((alpha - 1) * np.log(middle) + (beta - 1) * np.log1p(-middle))
        below = np.concatenate([[0.0], np.cumsum(density)])
        return np.interp(self._at, below / below[-1], edges)
