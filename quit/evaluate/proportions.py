"""A weighted sum of proportions, each estimated from a random sample of a finite stratum, with its interval.

Each stratum has Wilson's score interval (1927), its variance times the finite-population factor (N - n) / (N - 1)
(Cochran, Sampling Techniques, 1977); MOVER combines them (Zou and Donner, Statistics in Medicine 27, 2008).
"""

from __future__ import annotations

import numpy as np

Z = 1.959963984540054
"""The normal distribution's 97.5% quantile."""


def wilson(hits: np.ndarray, sample: np.ndarray, population: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return 95% limits of the share of hits in each stratum; all arrays have the shape (strata,).

    ``sample``: how many were drawn without replacement, at least one; ``population``: of how many, None for no end. A
    stratum that was drawn whole has its share as both limits. No limit contradicts the hits and misses in the sample.
    """
    share = hits / sample
    factor = 1.0 if population is None else (population - sample) / np.maximum(population - 1, 1)
    drawn = 0.0 if population is None else sample / population
    spread = Z**2 * factor / sample
    middle = (share + spread / 2) / (1 + spread)
    half = np.sqrt(spread * share * (1 - share) + spread**2 / 4) / (1 + spread)
    low = np.minimum(np.maximum(middle - half, share * drawn), share)
    return low, np.maximum(np.minimum(middle + half, 1 - (1 - share) * drawn), share)


def weighted_sum(weights: np.ndarray, counts: np.ndarray, population: np.ndarray) -> tuple[float | None, float, float]:
    """Return estimate and 95% limits of the sum of weight times share of hits.

    ``weights`` and ``population`` have one element per stratum, and so has each row of ``counts``: hits, unknown and
    drawn. An unknown one may be a hit or not: each limit takes the worse, so the interval holds whatever they are, and
    the estimate is None. A stratum of which none was drawn is wholly unknown. Strata of weight 0 do not count.
    """
    nonzero = weights != 0
    weights, population, (hits, unknown, drawn) = weights[nonzero], population[nonzero], counts[:, nonzero]
    unknown, drawn = np.where(drawn, (unknown, drawn), population)
    limits = []
    for side in (-1, 1):
        up = weights * side > 0
        worst = hits + unknown * up
        low, high = wilson(worst, drawn, population)
        reach = weights * np.where(up, high - worst / drawn, worst / drawn - low)
        limits.append(float(weights @ (worst / drawn) + side * np.sqrt(reach @ reach)))
    return None if unknown.any() else float(weights @ (hits / drawn)), limits[0], limits[1]
