"""All policies at all budgets over many requests (figure 4, tables 3 and 4): macro averages with their uncertainty.

Beside this grid: relevance by rank (figure 5), and the best n, tau and lambda of a tree (figure 12).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from operator import getitem
from typing import Any

import numpy as np

from quit.errors import InputError, SettingsError
from quit.evaluate.significance import intervals
from quit.qa.bandits import metrics
from quit.qa.bandits.policies import Policy
from quit.qa.bandits.posteriors import QuantileTable
from quit.qa.bandits.request import Request
from quit.qa.bandits.simulate import simulate
from quit.qa.settings.bandits import Bandits

STRUCTURES = ("flat", "tree")
BASELINE = "random-rank-aware"
COMPARED = ("precision", "relevant_documents", "alpha_ndcg")
RESAMPLES = 1000
TUNED = ("expand_after", "expand_above", "inheritance")


@dataclass(frozen=True, eq=False)
class Grid:
    """Measured values. ``means``: over runs and decompositions, shape (requests, policies, structures, budgets,
    metrics), NaN where a policy has no tree.

    ``spread``: standard deviation over runs of the macro average, the same without requests. ``ndcg``: alpha-nDCG at
    the cutoffs, (requests, policies, structures, cutoffs). ``left_out``: decompositions below ``least_relevant``;
    ``without_relevant``: decompositions measured whose lists hold no relevant document (0 in every metric). ``arms``,
    ``sizes``: a decomposition.
    """

    settings: Bandits
    policies: tuple[Policy, ...]
    structures: tuple[str, ...]
    requests: tuple[str, ...]
    arms: np.ndarray
    sizes: np.ndarray
    means: np.ndarray
    spread: np.ndarray
    ndcg: np.ndarray
    left_out: int
    without_relevant: int

    def value(self, policy: str, budget: float, metric: str = "precision", structure: str = "flat") -> np.ndarray:
        """Return the mean over runs of each request, shape (requests,)."""
        at = [each.name for each in self.policies].index(policy), self.structures.index(structure)
        nearest = int(np.argmin(np.abs(np.array(self.settings.budgets) - budget)))
        return self.means[:, at[0], at[1], nearest, metrics.NAMES.index(metric)]

    def rows(self) -> list[dict[str, Any]]:
        """Return the long table: policy, structure, budget, metric, value, run_sd, low, high, difference,
        difference_low, difference_high.

        ``value``: macro average. ``low``, ``high``: 95% bootstrap interval over requests. ``difference``: from the
        baseline at the same budget, flat, paired by request, with its interval; None where the baseline was not run.
        """
        names = [policy.name for policy in self.policies]
        means = np.moveaxis(self.means, 0, -1)
        bounds = self._bounds(means)
        if BASELINE in names:
            gains = means - means[names.index(BASELINE), 0]
            gain_bounds = self._bounds(gains)
        rows = []
        axes = (names, self.structures, self.settings.budgets, metrics.NAMES)
        for at in np.ndindex(*map(len, axes)):
            values = means[at]
            if np.isnan(values).any():
                continue
            row = dict(zip(("policy", "structure", "budget", "metric"), map(getitem, axes, at), strict=True))
            row |= {"value": float(values.mean()), "run_sd": float(self.spread[at])}
            row["low"], row["high"] = bounds[at].tolist()
            row |= {"difference": None, "difference_low": None, "difference_high": None}
            if BASELINE in names:
                row["difference"] = float(gains[at].mean())
                row["difference_low"], row["difference_high"] = gain_bounds[at].tolist()
            rows.append(row)
        return rows

    def ndcg_rows(self) -> list[dict[str, Any]]:
        """Return table 3: policy, structure and mean alpha-nDCG after each of :data:`metrics.CUTOFFS` documents."""
        means, rows = self.ndcg.mean(axis=0), []
        for number, tree in np.ndindex(means.shape[:2]):
            if not np.isnan(means[number, tree]).any():
                row = {"policy": self.policies[number].name, "structure": self.structures[tree]}
                pairs = zip(metrics.CUTOFFS, means[number, tree].tolist(), strict=True)
                rows.append(row | {f"alpha_ndcg@{cutoff}": value for cutoff, value in pairs})
        return rows

    def summary(self) -> dict[str, Any]:
        """Return the settings, what was measured, and the rows of figure 4 and of tables 3 and 4."""
        return {
            "requests": len(self.requests),
            "left_out": self.left_out,
            "without_relevant": self.without_relevant,
            "arms": {"mean": float(self.arms.mean()), "least": int(self.arms.min()), "most": int(self.arms.max())},
            "documents_per_request": float(self.sizes.mean()),
            "settings": self.settings.model_dump(mode="json"),
            "alpha_ndcg": self.ndcg_rows(),
            "trees": self.trees(),
            "rows": self.rows(),
        }

    def trees(self) -> list[dict[str, Any]]:
        """Return what a tree gains over flat arms (table 4): policy, budget, metric, flat, tree, gain (relative), low,
        high (of tree - flat).

        Precision counts a relevant document each time that it is observed, as the paper does; arms that refine one
        another find the same ones again, so the distinct relevant documents and alpha-nDCG are reported beside it.
        """
        if "tree" not in self.structures:
            return []
        means = np.moveaxis(self.means, 0, -1)
        bounds = self._bounds(means[:, 1] - means[:, 0])
        rows = []
        for (number, policy), (at, budget) in product(enumerate(self.policies), enumerate(self.settings.budgets)):
            for metric in COMPARED:
                column = metrics.NAMES.index(metric)
                flat, tree = means[number, :, at, column]
                if np.isnan(tree).any():
                    continue
                low, high = bounds[number, at, column].tolist()
                gain = float(tree.mean() / flat.mean() - 1) if flat.mean() else None
                row = {"policy": policy.name, "budget": budget, "metric": metric}
                row |= {"flat": float(flat.mean()), "tree": float(tree.mean())}
                rows.append(row | {"gain": gain, "low": low, "high": high})
        return rows

    def _bounds(self, values: np.ndarray) -> np.ndarray:
        """Return 95% bootstrap intervals over requests, the last axis of ``values``; the result's is (low, high)."""
        columns = values.reshape(-1, values.shape[-1]).T
        return intervals(columns, RESAMPLES, self.settings.seed).reshape(*values.shape[:-1], 2)


def evaluate(
    requests: Sequence[Request], policies: Sequence[Policy], settings: Bandits, *, hierarchical: bool = False
) -> Grid:
    """Run every policy on every request. ``hierarchical``: also with children that open as their parents earn it.
    Several decompositions of a request (equal ``request_id``) are averaged, so that a request counts once.

    The same settings and requests give the same numbers, in whatever order and on however many threads they are worked
    on. Raises :class:`InputError` where no request is left.
    """
    usable = [request for request in requests if request.relevant_share >= settings.least_relevant]
    if not usable:
        raise InputError(
            f"None of {len(requests)} requests can be simulated: a request needs sub-queries, and a share of "
            f"bandits.least_relevant = {settings.least_relevant:g} relevant documents among those retrieved."
        )
    structures = STRUCTURES if hierarchical else STRUCTURES[:1]
    local = threading.local()

    def measured(request: Request) -> tuple[np.ndarray, np.ndarray]:
        if not hasattr(local, "table") or local.table.count > 5000:  # a row is four bytes a quantile
            local.table = QuantileTable()
        return _measure(request, policies, structures, settings, local.table)

    counts = Counter(request.request_id for request in usable)
    names = {name: number for number, name in enumerate(counts)}
    shape = (len(names), len(policies), len(structures), len(settings.budgets), len(metrics.NAMES))
    means = np.zeros(shape)
    ndcg = np.zeros((*shape[:3], len(metrics.CUTOFFS)))
    macro = np.zeros((*shape[1:], settings.runs))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for request, (values, ndcg_of_request) in zip(usable, pool.map(measured, usable), strict=True):
            number, share = names[request.request_id], 1.0 / counts[request.request_id]
            means[number] += share * values.mean(axis=-1)
            ndcg[number] += share * ndcg_of_request
            macro += share * values / len(names)
    return Grid(
        settings=settings,
        policies=tuple(policies),
        structures=structures,
        requests=tuple(names),
        arms=np.array([len(request.arms) for request in usable]),
        sizes=np.array([request.size for request in usable]),
        means=means,
        spread=macro.std(axis=-1),
        ndcg=ndcg,
        left_out=len(requests) - len(usable),
        without_relevant=sum(not request.relevant.any() for request in usable),
    )


def stream(seed: int, *names: str) -> np.random.Generator:
    """Return a random stream that depends only on a seed and names."""
    digest = hashlib.blake2b("\0".join(names).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.SFC64([seed, int.from_bytes(digest, "little")]))


def _measure(
    request: Request, policies: Sequence[Policy], structures: Sequence[str], settings: Bandits, table: QuantileTable
) -> tuple[np.ndarray, np.ndarray]:
    """Return all metrics, (policies, structures, budgets, metrics, runs), and mean alpha-nDCG at the cutoffs."""
    budgets = metrics.budget_documents(request.size, settings.budgets)
    shape = (len(policies), len(structures), len(budgets), len(metrics.NAMES), settings.runs)
    values = np.full(shape, np.nan)
    ndcg = np.full((*shape[:2], len(metrics.CUTOFFS)), np.nan)
    for number, policy in enumerate(policies):
        for tree, structure in enumerate(structures):
            if structure == "tree" and not policy.expands:
                continue
            rng = stream(settings.seed, request.stream, policy.name, structure)
            hierarchical = structure == "tree"
            order = simulate(request, policy, settings, table, rng, runs=settings.runs, hierarchical=hierarchical)
            measures, at_cutoffs = metrics.measure(request, order, budgets, policy.window, metrics.CUTOFFS)
            values[number, tree] = np.stack([measures[name].T for name in metrics.NAMES], axis=1)
            ndcg[number, tree] = at_cutoffs.mean(axis=0)
    return values, ndcg


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
    lines = [point for point in points if point["slope"] is not None]
    means = {key: float(np.mean([point[key] for point in lines])) if lines else None for key in ("mrr", "slope")}
    negative = sum(point["slope"] < 0 for point in lines)
    return {**means, "requests": len(lines), "negative": negative, "points": points}


def tune(requests: Sequence[Request], policy: Policy, settings: Bandits) -> list[dict[str, Any]]:
    """Return ``settings.trials`` trials of n, tau and lambda, best first: their values, the ``precision`` of the
    policy's tree at the smallest budget, and its ``gain`` over flat arms.

    The first trial has the settings' own values; the others are drawn evenly from 1 to N, 0 to 1 and 0.001 to 1. All
    share their random streams. Raises :class:`InputError` where no request is left, :class:`SettingsError` where no arm
    refines another or the policy opens none.
    """
    if not policy.expands or all((request.parents < 0).all() for request in requests):
        raise SettingsError(f"--tune {policy.name}: there is no tree. Take a policy with one, and --arms two-level.")
    rng = np.random.default_rng(settings.seed)
    trials = []
    for number in range(settings.trials):
        n, tau = int(rng.integers(1, settings.documents + 1)), round(rng.uniform(), 3)
        sample = n, tau, max(0.001, round(1.0 - rng.uniform(), 3))  # a child's prior has no parameter that is 0
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
