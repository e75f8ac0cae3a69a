"""Bounds on wrong labels from a simple random sample of a finite population, and the sample's size."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

_UNIT = 1400
"""Passages from which on the audit is larger than its least size: fitted to the costs in docs/research/economy.md."""


@lru_cache(maxsize=4096)
def upper_bound(wrong: int, sample: int, population: int, alpha: float) -> int:
    """Return the exact one-sided upper confidence bound on how many of a population are wrong.

    ``wrong``: wrong ones in a simple random sample without replacement of ``sample`` of the ``population``. The bound
    is the largest number of wrong ones with which so few would be found with probability above ``alpha``
    (hypergeometric; Clopper and Pearson 1934, for a finite population Buonaccorsi 1987). It is below the truth with
    probability ``alpha`` at most.
    """
    from scipy.stats import hypergeom

    more = range(wrong + 1, population + 1)
    return wrong + bisect_left(more, -alpha, key=lambda count: -hypergeom.cdf(wrong, population, count, sample))


def audit_size(population: int, error: float, alpha: float) -> int:
    """Return how many passages of a build the audit asks.

    The smallest possible audit has no wrong label and two bounds that add up to ``error``:
    ``n0 = 2 ln(1 / alpha) / error``, by the Poisson limit of the hypergeometric distribution. A larger audit saves
    evidence, because its bounds are nearer to the true share. The saving grows with the number of passages. The size is
    ``n0 * sqrt(population / 1400)``, at least 1.25 ``n0``.

    ``alpha``: error probability of one bound.
    """
    least = 2 * math.log(1 / alpha) / error
    return min(population, math.ceil(least * max(1.25, math.sqrt(population / _UNIT))))
