"""Whether relevance falls with the rank (figure 5): a line through the documents of each request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from quit.qa.bandits.request import Request


class RankPoint(TypedDict):
    """A decomposed request. ``mrr``: mean over its arms of 1 / rank of the first relevant document, 0 where there is
    none. ``slope``: of the least-squares line of relevance (0 or 1) on rank (from 1) over all its documents, None where
    all have one rank."""

    request_id: str
    decomposition: int
    mrr: float
    slope: float | None


class RankRelevance(TypedDict):
    """Means over the ``requests`` with a slope, None without any. ``negative``: how many slopes are below 0."""

    mrr: float | None
    slope: float | None
    requests: int
    negative: int
    points: list[RankPoint]


def rank_relevance(requests: Sequence[Request]) -> RankRelevance:
    """Return how relevance goes with the rank in each request, and on average."""
    points = [_point(request) for request in requests]
    slopes = [point["slope"] for point in points if point["slope"] is not None]
    firsts = [point["mrr"] for point in points if point["slope"] is not None]
    return {
        "mrr": float(np.mean(firsts)) if firsts else None,
        "slope": float(np.mean(slopes)) if slopes else None,
        "requests": len(slopes),
        "negative": sum(slope < 0 for slope in slopes),
        "points": points,
    }


def _point(request: Request) -> RankPoint:
    is_document = request.documents >= 0
    ranks = np.broadcast_to(np.arange(1.0, is_document.shape[1] + 1), is_document.shape)
    first = np.where(request.relevant, 1 / ranks, 0.0).max(axis=1, initial=0.0)
    rank, relevant = ranks[is_document], request.relevant[is_document].astype(np.float64)
    spread = float(((rank - rank.mean()) ** 2).sum()) if len(rank) else 0.0
    slope = float(((rank - rank.mean()) * relevant).sum()) / spread if spread else None
    names = (request.request_id, request.decomposition)
    return {"request_id": names[0], "decomposition": names[1], "mrr": float(first.mean()), "slope": slope}
