"""Agreement between annotators: Cohen's kappa for two, Krippendorff's alpha (nominal) for any number with gaps.

Cohen, A coefficient of agreement for nominal scales (1960); Krippendorff, Computing Krippendorff's alpha-reliability
(2011). Both are None where they are not defined: no item that two people judged, or only one value in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import eq


@dataclass(frozen=True)
class PairAgreement:
    """Two annotators: ``items`` both judged, the share they agree on, and Cohen's kappa."""

    first: str
    second: str
    items: int
    agreement: float
    kappa: float | None


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Return kappa of two annotators' values for the same items, in order.

    None for no items, or where both always use the same one value (chance agreement is then 1). Raises ``ValueError``
    when the sequences differ in length.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} values against {len(second)}")
    items = len(first)
    if not items:
        return None
    observed = sum(map(eq, first, second)) / items
    left, right = Counter(first), Counter(second)
    chance = sum(left[value] * right[value] for value in left) / items**2
    return None if chance == 1 else (observed - chance) / (1 - chance)


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Return alpha for nominal values; a unit holds the values that it was given, whoever gave them (gaps are left
    out).

    Units with fewer than two values say nothing about agreement. None where fewer than two values are in use.
    """
    counts = [Counter(values) for values in units]
    counts = [count for count in counts if count.total() > 1]
    totals = sum(counts, Counter())
    if len(totals) < 2:
        return None
    observed = sum(
        sum(ratings_of * (count.total() - ratings_of) for ratings_of in count.values()) / (count.total() - 1)
        for count in counts
    )
    expected = (totals.total() ** 2 - sum(total**2 for total in totals.values())) / (totals.total() - 1)
    return 1 - observed / expected


def pair_agreements(judged: Mapping[str, Mapping[Hashable, Hashable]]) -> list[PairAgreement]:
    """Return the agreement of every two annotators who share items; ``judged``: annotator -> item -> value."""
    agreements = []
    for first, second in combinations(sorted(judged), 2):
        shared = sorted(judged[first].keys() & judged[second].keys(), key=repr)
        if shared:
            left = [judged[first][item] for item in shared]
            right = [judged[second][item] for item in shared]
            agreed = sum(map(eq, left, right)) / len(shared)
            agreements.append(PairAgreement(first, second, len(shared), agreed, cohen_kappa(left, right)))
    return agreements


def alpha_of(judged: Mapping[str, Mapping[Hashable, Hashable]]) -> float | None:
    """Return Krippendorff's alpha of all annotators; ``judged``: annotator -> item -> value."""
    units: dict[Hashable, list[Hashable]] = {}
    for values in judged.values():
        for item, value in values.items():
            units.setdefault(item, []).append(value)
    return krippendorff_alpha(units.values())
