"""Algorithms 1 and 2 and hierarchical expansion (3.5), over all runs of a request at once.

Arrays have one row per run (R) and one column per arm (K). One pass over the pool serves every budget: no policy
knows its budget, so what it observes within b documents is the beginning of what it observes within more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quit.qa.bandits.policies import Policy
from quit.qa.bandits.posteriors import BetaBelief, QuantileTable, expands
from quit.qa.bandits.request import Request
from quit.qa.settings.bandits import Bandits

_CLOSED = -1e6
"""Theta of an arm that cannot be pulled."""


def simulate(
    request: Request,
    policy: Policy,
    settings: Bandits,
    table: QuantileTable,
    rng: np.random.Generator,
    *,
    runs: int,
    steps: int | None = None,
    hierarchical: bool = False,
) -> np.ndarray:
    """Return what each run observed, in order: places in the flattened (K, N) lists, shape (runs, steps), int32.

    ``steps``: documents to observe, at most and by default all. ``hierarchical``: for a policy that
    :attr:`Policy.expands` only arms without a parent are open at first; an arm that :func:`expands` opens its children
    at what they inherit from it. A run that has nothing left to pull opens the children of every arm it has, so that
    all policies reach the whole pool. For another policy all arms are open.
    """
    size = request.size if steps is None else min(steps, request.size)
    return _Runs(request, policy, settings, table, rng, runs, size, hierarchical).orders()


@dataclass(eq=False)
class _Runs:
    """The state of all runs. ``row``: where each arm's belief is in the table, times levels: a draw is one look-up."""

    request: Request
    policy: Policy
    settings: Bandits
    table: QuantileTable
    rng: np.random.Generator
    runs: int
    size: int
    hierarchical: bool

    def __post_init__(self) -> None:
        request, policy, table, runs = self.request, self.policy, self.table, self.runs
        self.arms, self.ranks = request.documents.shape
        self.is_tree = self.hierarchical and policy.expands and bool((request.parents >= 0).any())
        self.places = np.broadcast_to(np.arange(self.ranks), (runs, self.arms, self.ranks))
        """Which rank each pull of an arm observes."""
        if not policy.in_order:
            is_document = np.arange(self.ranks) < request.lengths[:, None]
            self.places = np.where(is_document, self.rng.random(self.places.shape), 2.0).argsort(axis=2)
        self.belief = (policy.belief or BetaBelief)()
        self.reward = policy.reward(request)
        self.bonus = policy.bonus(self.ranks)
        self.closed = table.constant(_CLOSED) * table.levels
        self.drawn = table.constant(0.0) * table.levels  # a belief that is in no table: drawn as it is
        self.beliefs = self._beliefs()
        self.has_states = self.is_tree or policy.novelty is not None
        self.run_numbers = np.arange(runs)
        self.pulls = np.zeros((runs, self.arms), dtype=np.int64)
        self.state = np.tile(self.belief.prior[:, None, None], (1, runs, self.arms))
        self.opened = np.zeros((runs, self.arms), dtype=bool)
        self.opened[:, request.parents < 0 if self.is_tree else slice(None)] = True
        self.expanded = np.zeros((runs, self.arms), dtype=bool)
        self.inherited = np.zeros((runs, self.arms), dtype=bool)
        """Whether an arm's prior was inherited, and so is in no table."""
        self.row = np.where(self.opened, self.beliefs[:, 0], self.closed)
        self.order = np.zeros((runs, self.size), dtype=np.int32)

    def orders(self) -> np.ndarray:
        last = np.full(len(self.run_numbers), -1)
        for step in range(self.size):
            if self.is_tree:
                self._open_where_stuck()
            arm = self._select(self._theta(step), last)
            self._pull(arm, step)
            last = arm
        return self.order

    def _beliefs(self) -> np.ndarray:
        """Return the table's place of each arm's belief after 0..N pulls, (K, N + 1); ``drawn`` where runs differ."""
        lengths = self.request.lengths
        beliefs = np.full((self.arms, self.ranks + 1), self.closed)
        reward = self.reward + self.bonus
        for arm in range(self.arms):
            state, has_table = self.belief.prior, True
            for pulled in range(lengths[arm]):
                if self.policy.belief is None:
                    row = self.table.beta(1.0, 1.0)
                else:
                    row = self.belief.row(self.table, state) if has_table else -1
                beliefs[arm, pulled] = self.drawn if row < 0 else row * self.table.levels
                state = self.belief.update(state, reward[arm, pulled])
                has_table = has_table and (self.policy.novelty is None or self.reward[arm, pulled] == 0)
        return beliefs

    def _theta(self, step: int) -> np.ndarray:
        """Sample theta of every arm and run (line 6); an arm that cannot be pulled has the lowest there is."""
        level = self.rng.integers(0, self.table.levels, size=self.row.shape, dtype=np.uint16)
        theta = self.table.values.take(self.row + level)
        if self.has_states:
            run, arm = np.nonzero(self.row == self.drawn)
            if len(run):
                theta[run, arm] = self.belief.draw(self.state[:, run, arm], self.rng)
        return theta

    def _select(self, theta: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return each run's arm (line 7)."""
        worth = self.policy.worth(self.request, theta, self.pulls) if self.policy.worth else theta
        arm = worth.argmax(axis=1)
        if self.policy.stays is None or last[0] < 0:
            return arm
        rank = self.pulls[self.run_numbers, last]
        stays = self.policy.stays(self.request.observed[last, rank - 1])
        return np.where(stays & (rank < self.request.lengths[last]), last, arm)

    def _pull(self, arm: np.ndarray, step: int) -> None:
        """Observe the arm's next document and update its belief (lines 8 to 13)."""
        pulls = self.pulls[self.run_numbers, arm]
        rank = self.places[self.run_numbers, arm, pulls]
        cell = arm * self.ranks + rank
        self.order[:, step] = cell
        self.pulls[self.run_numbers, arm] = pulls + 1
        row = self.beliefs[arm, pulls + 1]
        if self.has_states:
            reward = self.reward[arm, rank]
            if self.policy.novelty is not None and step:
                reward = reward * self.policy.novelty(self._nearest(cell, step))
            state = self.belief.update(self.state[:, self.run_numbers, arm], reward + self.bonus[rank])
            self.state[:, self.run_numbers, arm] = state
            row = np.where(self.inherited[self.run_numbers, arm] & (row != self.closed), self.drawn, row)
        self.row[self.run_numbers, arm] = row
        if self.is_tree:
            mean = self.belief.mean(state)
            ready = expands(mean, pulls + 1, self.settings.expand_after, self.settings.expand_above)
            self._expand(self.run_numbers[ready], arm[ready])

    def _nearest(self, cell: np.ndarray, step: int) -> np.ndarray:
        """Return the largest cosine of each run's document with those it observed before."""
        positions = self.request.pool_positions.reshape(-1)
        documents = positions[self.order[:, :step]]
        return self.request.similarity[positions[cell][:, None], documents].max(axis=1).astype(np.float64)

    def _expand(self, run: np.ndarray, arm: np.ndarray) -> None:
        """Open the children of arms, each at the prior that it inherits; an arm that was expanded stays as it is."""
        new = ~self.expanded[run, arm]
        run, arm = run[new], arm[new]
        self.expanded[run, arm] = True
        for parent in np.unique(arm):
            parent_runs = run[arm == parent]
            prior = self.belief.inherited(self.state[:, parent_runs, parent], self.settings.inheritance)
            for child in self.request.children(parent):
                self.state[:, parent_runs, child] = prior
                self.opened[parent_runs, child] = True
                self.inherited[parent_runs, child] = self.policy.belief is not None
                if self.request.lengths[child]:
                    self.row[parent_runs, child] = self.drawn if self.policy.belief else self.beliefs[child, 0]

    def _open_where_stuck(self) -> None:
        while len(stuck := np.flatnonzero((self.row == self.closed).all(axis=1))):
            run, arm = np.nonzero(self.opened[stuck] & ~self.expanded[stuck])
            if not len(run):
                return
            self._expand(stuck[run], arm)
