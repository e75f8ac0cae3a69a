"""Roles: why a question's passages have label 2, from the labels of all ordered selections of its hints.

p(S) is the share of the orders of a set S of hints that have label 2. S suffices in every order where p(S) = 1; it is
minimal where no proper subset suffices as well. A hint's contribution is its Shapley value (Shapley, 1953) in the game
v(S) = p(S); v of the empty set is the label rule applied to the probe: the share of its repetitions in which at least
one labeler is right. Sums are exact in integers, so a question's values do not depend on its shard.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.columns import is_in, positions_in, runs
from quit.stages.labelling.passages import MAX_HINTS, permutation_table
from quit.stages.stage import Context, RowsOf, Tables, stage

_CELLS = 1 << 23  # labels whose sets are counted at a time


@stage(
    "roles",
    outputs=("hint_roles", "question_roles"),
    sections=("convergence.hints",),
    models=("labelers",),
    seconds=0.1,
)
def roles_stage(
    context: Context,
    ranked_hints: RowsOf,
    probe_answers: RowsOf,
    labels: RowsOf,
    selection: RowsOf | None = None,
) -> Tables:
    """Say which hints suffice, which add, which harm."""
    return role_tables(
        labels(["question_id", "label"]),
        ranked_hints(["question_id", "rank", "hint_id", "selected"]),
        context.settings.convergence.hints,
        probe_answers(["question_id", "reader", "repetition", "correct"]),
        [labeler.name for labeler in context.settings.labelers],
        selection and selection(["question_id", "probability"]),
    )


def role_tables(
    labels: pa.Table,
    ranked_hints: pa.Table,
    n: int,
    probe_answers: pa.Table | None = None,
    labelers: Collection[str] = (),
    selection: pa.Table | None = None,
) -> dict[str, pa.Table]:
    """Return the tables ``hint_roles`` and ``question_roles`` of the questions in ``labels``.

    ``labels``: question_id and label of every passage of ``n`` hints, depth first; ``ranked_hints``: question_id, rank,
    hint_id, selected; ``probe_answers``: question_id, reader, repetition, correct (None: nobody was probed);
    ``selection``: question_id and probability (None: no label is predicted).
    """
    ids = pa.array(runs(labels["question_id"])[0], pa.string())
    right = labels["label"].to_numpy().reshape(len(ids), len(permutation_table(n))) == 2
    without = np.full(len(ids), np.nan) if probe_answers is None else _without_hints(probe_answers, labelers, ids)
    step = max(1, _CELLS // len(permutation_table(n)))
    blocks = [slice(start, start + step) for start in range(0, max(1, len(ids)), step)]
    roles = Roles(*map(np.concatenate, zip(*(roles_of(right[block], without[block], n) for block in blocks))))
    predicted: np.ndarray = np.zeros(len(ids), np.int64)
    if selection is not None:
        places = positions_in(selection.filter(selection["probability"].is_valid())["question_id"], ids)
        predicted = np.bincount(places[places >= 0], minlength=len(ids))
    hints = ranked_hints.filter(ranked_hints["selected"])
    places = positions_in(hints["question_id"], ids)
    hints = hints.take(pa.array(np.argsort(places * n + hints["rank"].to_numpy())[np.count_nonzero(places < 0) :]))
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "question_id": ids,
        "fewest_in_every_order": _up_to(n, roles.every),
        "fewest_in_some_order": _up_to(n, roles.some),
        "order_dependent_sets": roles.mixed,
        "unneeded_hints": pa.array((roles.smallest > n).sum(axis=1), pa.int16(), mask=roles.every > n),
        "without_hints": pa.array(without, from_pandas=True),  # NaN is null
        "predicted": predicted,
    }
    of_hints = {
        **{name: hints[name] for name in ("hint_id", "question_id", "rank")},
        "shapley": roles.shapley.ravel(),
        "smallest_set": _up_to(n, roles.smallest.ravel()),
        "harmed": roles.harmed.ravel(),
    }
    return {
        name: pa.table(values).cast(contracts.table(name).schema)
        for name, values in (("hint_roles", of_hints), ("question_roles", columns))
    }


class Roles(NamedTuple):
    """What the labels of Q questions say of their ``n`` hints. A size of ``n`` + 1 stands for: there is no such set.

    ``counts``: int64, shape (Q, 2^n), orders with label 2 of each set; bit i of a set's number is hint i. ``minimal``:
    bool, shape (Q, 2^n). ``shapley`` (float64), ``smallest`` (size of the smallest minimal set with the hint) and
    ``harmed`` (share of the sets without the hint of which it lowers p): shape (Q, n). ``every``, ``some`` (fewest
    hints of which every order, or some order, has label 2) and ``mixed`` (sets with both labels): shape (Q,).
    """

    counts: np.ndarray
    minimal: np.ndarray
    shapley: np.ndarray
    smallest: np.ndarray
    harmed: np.ndarray
    every: np.ndarray
    some: np.ndarray
    mixed: np.ndarray


def roles_of(right: np.ndarray, without: np.ndarray, n: int) -> Roles:
    """Return the roles of ``n`` hints. ``right``: bool, shape (Q, passages), depth first, whether the label is 2;
    ``without``: float64, shape (Q,), success without hints (NaN, not known, counts as 0)."""
    by_set, starts, member, orders, weights = _sets(n)
    numbers, sizes = np.arange(1 << n), member.sum(axis=1)
    counts = np.zeros((len(right), 1 << n), np.int64)
    counts[:, 1:] = np.add.reduceat(right[:, by_set], starts, axis=1, dtype=np.int64)
    success = counts / orders
    success[:, 0] = np.nan_to_num(without)
    sufficient = counts == orders
    below = sufficient.copy()  # a subset suffices, or the set itself
    proper = np.zeros_like(below)
    harmed, smallest = np.empty((2, len(right), n))
    for hint in range(n):
        with_it, others = numbers[member[:, hint]], numbers[~member[:, hint]]
        below[:, with_it] |= below[:, others]
        harmed[:, hint] = (success[:, with_it] < success[:, others]).mean(axis=1)
    for hint in range(n):
        proper[:, member[:, hint]] |= below[:, ~member[:, hint]]
    minimal = sufficient & ~proper

    def least(sets: np.ndarray) -> np.ndarray:
        return np.where(sets, sizes, n + 1).min(axis=1)

    for hint in range(n):
        smallest[:, hint] = least(minimal & member[:, hint])
    shapley = (counts * (math.factorial(n) // orders)) @ weights / math.factorial(n) ** 2 - success[:, :1] / n
    mixed = ((counts > 0) & ~sufficient).sum(axis=1)
    return Roles(counts, minimal, shapley, smallest, harmed, least(sufficient), least(counts > 0), mixed)


@lru_cache(maxsize=MAX_HINTS)
def _sets(n: int) -> tuple[np.ndarray, ...]:
    """Return the passages sorted by set, where each set but the empty one starts, and of all 2^n sets: their members
    (bool, shape (2^n, n)), the number of their orders, and n! times the weight of p in the Shapley value of each hint
    (shape (2^n, n))."""
    passages = permutation_table(n)
    sets = np.add.reduceat(1 << passages.indices.astype(np.int64), passages.offsets[:-1])
    by_set = np.argsort(sets, kind="stable")
    member = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)
    factorial = np.array([math.factorial(size) for size in range(n + 1)])
    sizes = member.sum(axis=1)
    joining, joined = factorial[sizes] * factorial[n - sizes - 1], factorial[sizes - 1] * factorial[n - sizes]
    weights = np.where(member, joined[:, None], -joining[:, None])
    return by_set, np.searchsorted(sets[by_set], np.arange(1, 1 << n)), member, factorial[sizes], weights


def _without_hints(probe_answers: pa.Table, labelers: Collection[str], ids: pa.Array) -> np.ndarray:
    """Return the share of each question's repetitions in which a labeler is right: NaN where none was probed."""
    rows = probe_answers.filter(is_in(probe_answers["reader"], pa.array(labelers, pa.string())))
    places, repetition = positions_in(rows["question_id"], ids), rows["repetition"].to_numpy()
    probed, right = np.zeros((2, len(ids) + 1, int(repetition.max(initial=0)) + 1), bool)  # last row: other questions
    probed[places, repetition] = True
    correct = pc.fill_null(rows["correct"], False).to_numpy()
    right[places[correct], repetition[correct]] = True
    with np.errstate(invalid="ignore"):
        return (right.sum(axis=1) / probed.sum(axis=1))[:-1]


def _up_to(n: int, sizes: np.ndarray) -> pa.Array:
    return pa.array(sizes, pa.int16(), mask=sizes > n)
