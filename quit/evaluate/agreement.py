"""Agreement between annotators: Cohen's kappa for two, Krippendorff's alpha (nominal) for any number with gaps.

Cohen, A coefficient of agreement for nominal scales (1960); Krippendorff, Computing Krippendorff's alpha-reliability
(2011). Both are None where they are not defined: no item that two people judged, or only one value in use. Kappa is
None, too, where one of the two always says the same: it would be 0 whatever the other says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from operator import eq
from typing import Any

import numpy as np

from quit.common.rows import grouped
from quit.evaluate.significance import resampled_means


@dataclass(frozen=True)
class PairAgreement:
    """Two annotators: ``items`` both judged, the share they agree on, and Cohen's kappa."""

    first: str
    second: str
    items: int
    agreement: float
    kappa: float | None

    @classmethod
    def of(cls, first: str, second: str, pairs: Mapping[Any, int]) -> PairAgreement:
        """Return the agreement of two annotators; ``pairs``: how many items have these two values."""
        items = sum(pairs.values())
        return cls(first, second, items, _agreements(pairs) / items, cohen_kappa(pairs))


def _agreements(pairs: Mapping[Any, int]) -> int:
    return sum(count for values, count in pairs.items() if eq(*values))


def cohen_kappa(pairs: Mapping[Any, int]) -> float | None:
    """Return kappa of two annotators; ``pairs``: how many items have these two values."""
    left, right = Counter[Hashable](), Counter[Hashable]()
    for (of_first, of_second), count in pairs.items():
        left[of_first] += count
        right[of_second] += count
    if min(len(+left), len(+right)) < 2:
        return None
    items = left.total()
    observed = _agreements(pairs) / items
    chance = sum(left[value] * right[value] for value in left) / items**2
    return (observed - chance) / (1 - chance)


def kappas(cells: np.ndarray, resamples: int) -> list[list[float | None]]:
    """Return Cohen's kappa and the ends of its 95% interval (whole questions are drawn) for each of several groups.

    ``cells``: items that both accept, the first alone, the second alone, and neither, of shape (questions, groups, 4).
    The ends are None without resamples.
    """
    if not cells.size:
        return [[None] * 3] * cells.shape[1]
    flat = cells.reshape(len(cells), -1)
    means = np.vstack([flat.mean(axis=0), *([resampled_means(flat, resamples, 0)] if resamples else [])])
    both, first, second, neither = np.moveaxis(means.reshape(-1, *cells.shape[1:]), -1, 0)
    yes, no = (both + first) * (both + second), (neither + first) * (neither + second)
    total = both + first + second + neither
    with np.errstate(invalid="ignore"):  # of no chance to disagree nothing is known
        values = ((both + neither) * total - yes - no) / (total**2 - yes - no)
    rows: list[list[float | None]] = []
    for varies, (value, *resampled) in zip((yes * no)[0] > 0, values.T.tolist(), strict=True):
        ends = np.nanquantile(resampled, [0.025, 0.975]).tolist() if resampled and varies else [None, None]
        rows.append([value if varies else None, *ends])
    return rows


def alpha_of_counts(units: Iterable[tuple[Counter[Any], int]]) -> float | None:
    """Return Krippendorff's alpha for nominal values; ``units``: value -> how often it was given, and how many units
    have these.

    It does not matter who gave a value (gaps are left out). Units with fewer than two values say nothing about
    agreement. None where fewer than two values are in use.
    """
    totals, observed = Counter[Any](), 0.0
    for values, units_alike in units:
        size = values.total()
        if size > 1:
            totals.update({value: count * units_alike for value, count in values.items()})
            apart = sum(count * (size - count) for count in values.values())
            observed += units_alike * apart / (size - 1)
    if sum(count > 0 for count in totals.values()) < 2:
        return None
    expected = (totals.total() ** 2 - sum(total**2 for total in totals.values())) / (totals.total() - 1)
    return 1 - observed / expected


def pair_agreements(judged: Mapping[str, Mapping[Hashable, Hashable]]) -> list[PairAgreement]:
    """Return the agreement of every two annotators who share items; ``judged``: annotator -> item -> value."""
    agreements = []
    for first, second in combinations(sorted(judged), 2):
        if shared := judged[first].keys() & judged[second].keys():
            pairs = Counter((judged[first][item], judged[second][item]) for item in shared)
            agreements.append(PairAgreement.of(first, second, pairs))
    return agreements


def alpha_of(judged: Mapping[str, Mapping[Hashable, Hashable]]) -> float | None:
    """Return Krippendorff's alpha of all annotators; ``judged``: annotator -> item -> value."""
    units = grouped(pair for values in judged.values() for pair in values.items())
    return alpha_of_counts((Counter(values), 1) for values in units.values())
