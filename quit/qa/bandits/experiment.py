"""All policies at all budgets over many requests (figure 4, tables 3 and 4): macro averages with their uncertainty."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import getitem
from typing import Any, NamedTuple

import numpy as np

from quit.errors import InputError
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
_NUMBERS = ("value", "run_sd", "low", "high", "difference", "difference_low", "difference_high")


class TreeRow(NamedTuple):
    """What a policy's tree gains over flat arms (table 4): means over requests; ``gain``: relative, None over 0;
    ``low``, ``high``: 95% bootstrap interval of tree - flat."""

    policy: str
    budget: float
    metric: str
    flat: float
    tree: float
    gain: float | None
    low: float
    high: float


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
        gains = means - means[names.index(BASELINE), 0] if BASELINE in names else np.full_like(means, np.nan)
        bounds, gain_bounds = self._bounds(means), self._bounds(gains)
        axes = (names, self.structures, self.settings.budgets, metrics.NAMES)
        rows = []
        for at in np.ndindex(*map(len, axes)):
            if np.isnan(means[at]).any():
                continue
            row = dict(zip(("policy", "structure", "budget", "metric"), map(getitem, axes, at), strict=True))
            numbers = (means[at].mean(), self.spread[at], *bounds[at], gains[at].mean(), *gain_bounds[at])
            values = [None if np.isnan(value) else float(value) for value in numbers]
            rows.append(row | dict(zip(_NUMBERS, values, strict=True)))
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
            "trees": [row._asdict() for row in self.trees],
            "rows": self.rows(),
        }

    @cached_property
    def trees(self) -> list[TreeRow]:
        """Table 4, empty without trees.

        Precision counts a relevant document each time that it is observed, as the paper does; arms that refine one
        another find the same ones again, so the distinct relevant documents and alpha-nDCG are reported beside it.
        """
        if "tree" not in self.structures:
            return []
        means = np.moveaxis(self.means, 0, -1)
        bounds = self._bounds(means[:, 1] - means[:, 0])
        axes = (enumerate(self.policies), enumerate(self.settings.budgets), COMPARED)
        rows: list[TreeRow] = []
        for (number, policy), (at, budget), metric in product(*axes):
            column = metrics.NAMES.index(metric)
            flat, tree = means[number, :, at, column]
            if not np.isnan(tree).any():
                flat_mean, tree_mean = float(flat.mean()), float(tree.mean())
                gain = tree_mean / flat_mean - 1 if flat_mean else None
                low, high = bounds[number, at, column].tolist()
                rows.append(TreeRow(policy.name, budget, metric, flat_mean, tree_mean, gain, low, high))
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
            values[number, tree] = np.stack([measure.T for measure in measures], axis=1)
            ndcg[number, tree] = at_cutoffs.mean(axis=0)
    return values, ndcg
