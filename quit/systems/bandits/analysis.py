"""Analyses beside the grid: relevance by rank (figure 5), and the best n, tau and lambda of a tree (figure 12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from quit.settings.bandits import Bandits
from quit.systems.bandits.experiment import evaluate
from quit.systems.bandits.policies import Policy
from quit.systems.bandits.request import Request

TUNED = ("expand_after", "expand_above", "inheritance")


def rank_relevance(requests: Sequence[Request]) -> dict[str, Any]:
    """Return the least-squares lines of relevance (0 or 1) on rank (from 1) over all documents of a request.

    ``points``: request_id, decomposition, ``mrr`` (mean over the arms of 1 / rank of the first relevant document, 0
    where there is none) and ``slope``, None where all documents have one rank. ``mrr``, ``slope``: means over the
    requests with a slope; ``negative``: how many of these slopes are below 0.
    """
    points: list[dict[str, Any]] = []
    for request in requests:
        there = request.documents >= 0
        ranks = np.broadcast_to(np.arange(1.0, there.shape[1] + 1), there.shape)
        first = np.where(request.relevant, 1 / ranks, 0.0).max(axis=1, initial=0.0)
        rank, relevant = ranks[there], request.relevant[there].astype(np.float64)
        spread = float(((rank - rank.mean()) ** 2).sum()) if len(rank) else 0.0
        slope = float(((rank - rank.mean()) * relevant).sum()) / spread if spread else None
        name = {"request_id": request.request_id, "decomposition": request.decomposition}
        points.append({**name, "mrr": float(first.mean()), "slope": slope})
    fitted = [point for point in points if point["slope"] is not None]
    means = {key: float(np.mean([point[key] for point in fitted])) if fitted else None for key in ("mrr", "slope")}
    return {**means, "requests": len(fitted), "negative": sum(point["slope"] < 0 for point in fitted), "points": points}


def tune(requests: Sequence[Request], policy: Policy, settings: Bandits) -> list[dict[str, Any]]:
    """Return ``settings.trials`` trials of n, tau and lambda, best first: their values, the ``precision`` of the
    policy's tree at the smallest budget, and its ``gain`` over flat arms.

    The first trial has the settings' own values; the others are drawn evenly from 1 to N, 0 to 1 and 0 to 1. All share
    their random streams. Raises :class:`InputError` where no request is left.
    """
    rng = np.random.default_rng(settings.seed)
    trials = []
    for number in range(settings.trials):
        sample = int(rng.integers(1, settings.documents + 1)), round(rng.uniform(), 3), round(1.0 - rng.uniform(), 3)
        trial_settings = settings.model_copy(update=dict(zip(TUNED, sample, strict=True)) if number else {})
        grid = evaluate(requests, [policy], trial_settings, hierarchical=True)
        flat, tree = (
            float(grid.value(policy.name, min(trial_settings.budgets), structure=structure).mean())
            for structure in grid.structures
        )
        trials.append(
            {name: getattr(trial_settings, name) for name in TUNED} | {"precision": tree, "gain": tree - flat}
        )
    return sorted(trials, key=lambda trial: -trial["precision"])
