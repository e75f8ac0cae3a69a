"""Roles: why a question's passages have label 2, from the labels of all ordered selections of its hints.

p(S) is the share of the orders of a set S of hints that have label 2. S suffices in every order where p(S) = 1; it is
minimal where no proper subset suffices as well. A hint's contribution is its Shapley value (Shapley, 1953) in the game
v(S) = p(S); v of the empty set is the label rule applied to the probe: the share of its repetitions in which at least
one labeler is right. Sums are exact in integers, so a question's values do not depend on
its shard.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.columns import is_in, plain, positions_in, runs
from quit.stages.labelling.passages import permutation_table
from quit.stages.stage import Context, LazyTable, Tables, stage


@stage(
    "roles",
    outputs=("hint_roles", "question_roles"),
    sections=("passages",),
    models=("labelers",),
    shard_factor=16,
)
def roles_stage(
    context: Context,
    ranked_hints: LazyTable,
    probe_answers: LazyTable,
    labels: LazyTable,
) -> Tables:
    """Say which hints suffice, which add and which harm, where the passages are all ordered selections of hints."""
    design = context.settings.passages
    if not design.is_full:
        return {name: contracts.table(name).schema.empty_table() for name in ("hint_roles", "question_roles")}
    return role_tables(
        labels(["question_id", "label"]),
        ranked_hints(["question_id", "rank", "hint_id", "selected"]),
        design.most_hints,
        probe_answers(["question_id", "reader", "repetition", "correct"]),
        [labeler.name for labeler in context.settings.labelers],
    )


def role_tables(
    labels: pa.Table,
    ranked_hints: pa.Table,
    n: int,
    probe_answers: pa.Table | None = None,
    labelers: Collection[str] = (),
) -> dict[str, pa.Table]:
    """Return the tables ``hint_roles`` and ``question_roles`` of the questions in ``labels``.

    ``labels``: question_id and label of every passage of ``n`` hints, depth first; ``ranked_hints``: question_id, rank,
    hint_id, selected; ``probe_answers``: question_id, reader, repetition, correct (None: nobody was probed).
    """
    ids = pa.array(runs(labels["question_id"]).values, pa.string())
    right = labels["label"].to_numpy().reshape(len(ids), len(permutation_table(n))) == 2
    without = np.full(len(ids), np.nan)
    if probe_answers is not None:
        without = _without_hints(probe_answers, labelers, ids)
    roles = {**roles_of(right, without, n), "without_hints": without}
    columns = {name: pa.array(values.ravel(), mask=~np.isfinite(values.ravel())) for name, values in roles.items()}
    hints = ranked_hints.filter(ranked_hints["selected"])
    places = positions_in(hints["question_id"], ids)
    order = np.argsort(places * n + hints["rank"].to_numpy())[np.count_nonzero(places < 0) :]
    hints = hints.select(["hint_id", "question_id", "rank"]).take(pa.array(order))
    return {
        "hint_roles": contracts.table("hint_roles").from_columns(
            {**columns, **dict(zip(hints.column_names, hints.columns, strict=True))}
        ),
        "question_roles": contracts.table("question_roles").from_columns({**columns, "question_id": ids}),
    }


def roles_of(right: np.ndarray, without: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """Return what the labels of Q questions say of their ``n`` hints.

    ``right``: bool, shape (Q, passages), depth first, whether the label is 2; ``without``: float64, shape (Q,), success
    without hints (NaN, not known, counts as 0). The result has the columns of figures of ``hint_roles`` (shape (Q, n))
    and of ``question_roles`` (shape (Q,)), infinite where these are null. Sets are numbered: bit i is hint i.
    """
    passages, numbers = permutation_table(n), np.arange(1 << n)
    factorial = np.array([*map(math.factorial, range(n + 1))])
    member = (numbers >> np.arange(n)[:, None] & 1).astype(bool)  # shape (n, 2^n)
    sizes = member.sum(axis=0)
    orders = factorial[sizes]
    set_of = np.add.reduceat(1 << passages.indices.astype(np.int64), passages.offsets[:-1])
    by_set = np.argsort(set_of, kind="stable")
    counts = np.zeros((len(right), 1 << n), np.int64)
    counts[:, 1:] = np.add.reduceat(right[:, by_set], np.searchsorted(set_of[by_set], numbers[1:]), axis=1, dtype=int)
    success, sufficient = counts / orders, counts == orders
    success[:, 0] = np.nan_to_num(without)
    inside = (numbers & numbers[:, None] == numbers[:, None]) & (numbers != numbers[:, None])  # proper subset, set
    minimal = sufficient & ~(sufficient @ inside)

    def least(sets: np.ndarray) -> np.ndarray:
        return np.where(sets, sizes, np.inf).min(axis=-1)

    smallest, every = least(minimal[:, None] & member), least(sufficient)
    # n! times the weight of p(S) in a hint's value: where S has the hint, else
    weights = np.where(member, factorial[sizes - 1] * factorial[n - sizes], -orders * factorial[n - sizes - 1])
    return {
        "shapley": (counts * (factorial[n] // orders)) @ weights.T / factorial[n] ** 2 - success[:, :1] / n,
        "smallest_set": smallest,
        "harmed": np.stack([(success[:, having] < success[:, ~having]).mean(axis=1) for having in member], axis=1),
        "fewest_in_every_order": every,
        "fewest_in_some_order": least(counts > 0),
        "order_dependent_sets": ((counts > 0) & ~sufficient).sum(axis=1),
        "unneeded_hints": np.where(np.isinf(every), np.inf, np.isinf(smallest).sum(axis=1)),
    }


def _without_hints(probe_answers: pa.Table, labelers: Collection[str], ids: pa.Array) -> np.ndarray:
    """Return the share of each question's repetitions in which a labeler is right: NaN where none was probed."""
    rows = probe_answers.filter(is_in(probe_answers["reader"], pa.array(labelers, pa.string())))
    columns = (plain(rows["question_id"]), rows["repetition"], pc.fill_null(rows["correct"], False))
    repetitions = pa.table(columns, ["id", "n", "right"]).group_by(["id", "n"]).aggregate([("right", "any")])
    shares = repetitions.group_by("id").aggregate([("right_any", "mean")])
    return pc.fill_null(shares["right_any_mean"].take(pc.index_in(ids, shares["id"])), np.nan).to_numpy()
