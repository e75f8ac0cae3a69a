"""The audit: what the labels of all passages come to, from people's verdicts on a random sample of them.

The passages whose labels people have not decided are parted by split and the judge's label, and some of each part are
drawn. People judge their answers in the normal review. The errors among them correct the judge's totals:
prediction-powered inference (Angelopoulos et al., Science 382, 2023), here a stratified estimate, since the judge's
label of every passage is known. docs/research/validity.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.columns import first_matches, positions_in
from quit.common.ids import content_hash
from quit.engine.questions import counting_reviews
from quit.engine.workspace import Workspace
from quit.evaluate.labels import SPLITS
from quit.evaluate.proportions import weighted_sum
from quit.models.protocols import NO_ANSWER
from quit.review.store import AUDIT, AuditDraw, AuditPassage
from quit.settings import Review, Settings
from quit.stages.labelling.answers import answers_of
from quit.stages.labelling.verdicts import decide, settled_rows
from quit.stages.stage import LazyTable
from quit.text.words import counted

EVEN = 0.25
"""Share of the sample that is spread evenly over the strata; the rest follows their sizes."""
_OPEN, _WRONG, _RIGHT = 0, 1, 2
"""State of a passage by people's verdicts: not decided, no labeler is right (label 1), one is (label 2)."""
_SIGN = np.array([1, -1])
"""What an error adds to the number of passages with label 2, where the judge's label is 1 and where it is 2."""


def _passages(workspace: Workspace, labelers: Sequence[str], decisions: pa.Table) -> tuple[pa.Table, np.ndarray, list]:
    """Return the passages of the stage ``label``, how many there are, and each labeler's answers in their order.

    Columns: question_id, permutation, label, ``hints`` (their number), ``split`` (its place in ``SPLITS``; -1: in
    none, or no labeler was asked), ``whole`` (every labeler was asked) and ``state`` by people's ``decisions``. The
    numbers are by split, label, number of hints and state.
    """

    def rows_of(name: str) -> LazyTable:
        return lambda columns, reader=None, _=None: workspace.read(name, runs=[f"read:{reader}"], columns=columns)

    rows = workspace.read("labels", runs=["label"], columns=["question_id", "permutation", "label"])
    splits = workspace.read("splits", runs=["split"])
    answers = [answers_of(labeler, rows_of("answers"), rows_of("distinct_answers")) for labeler in labelers]
    asked = [replies.rows["asked"].to_numpy() for replies in answers]  # in the order of the labels
    verdicts, states = np.append(decisions["decision"].to_numpy() + np.int64(1), _OPEN), []
    for replies, was_asked in zip(answers, asked, strict=True):
        state = verdicts[first_matches(replies.distinct, decisions, ("question_id", "answer_key"))]
        nothing = pc.or_(pc.equal(replies.distinct["answer"], NO_ANSWER), pc.equal(replies.distinct["answer_key"], ""))
        state[nothing.to_numpy()] = _WRONG
        states.append(np.where(was_asked, state[replies.index], _OPEN))
    state = np.where(np.max(states, axis=0) == _RIGHT, _RIGHT, np.min(states, axis=0))
    place = positions_in(rows["question_id"], splits["question_id"].combine_chunks())
    split = np.append(positions_in(splits["split"], pa.array(SPLITS)), -1)[np.where(np.any(asked, axis=0), place, -1)]
    hints = pc.utf8_length(rows["permutation"].cast(pa.string())).to_numpy()
    shape = (len(SPLITS), 2, int(hints.max(initial=0)) + 1, 3)
    cells = np.ravel_multi_index((split, rows["label"].to_numpy() - 1, hints, state), shape, mode="clip")
    numbers = np.bincount(cells[split >= 0], minlength=np.prod(shape)).reshape(shape)
    columns = {"hints": hints, "split": split, "whole": np.all(asked, axis=0), "state": state}
    return pa.table({**dict(zip(rows.column_names, rows.columns)), **columns}), numbers, answers


def _decisions(live: pa.Table, settings: Review) -> pa.Table:
    """Return people's settled verdicts on answers: question_id, answer_key, decision."""
    rows = settled_rows(decide(live, settings))
    rows = rows.filter(pc.equal(rows["kind"], "answer"))
    return rows.select(["question_id", "key", "decision"]).rename_columns(["question_id", "answer_key", "decision"])


def allocation(sizes: np.ndarray, size: int) -> np.ndarray:
    """Return how many of each stratum are drawn, int64, shape (strata,), none more than its size.

    A share of :data:`EVEN` evenly, the rest in proportion to ``sizes``, rounded by Webster's method.
    """
    if size >= sizes.sum():
        return sizes
    weights, numbers = EVEN / np.count_nonzero(sizes) + (1 - EVEN) * sizes / sizes.sum(), np.zeros_like(sizes)
    for _ in range(size):
        numbers[np.argmax(np.where(numbers < sizes, weights / (2 * numbers + 1), -1))] += 1
    return numbers


def draw_audit(workspace: Workspace, settings: Settings) -> dict[str, set[str]]:
    """Return question id -> the keys of the answers that people judge for the audit. Empty without one, or labels.

    The audit is the one drawn before with this ``review.audit``, else a new one, which is stored.
    """
    size, audit = settings.review.audit, _stored(workspace)
    versions = _versions(workspace)
    if not size or versions["label"] is None:
        return {}
    if audit is None or audit["size"] != size:
        audit = _draw(workspace, settings, size, versions)
        workspace.put_json(f"reviews/{AUDIT.name}", audit)
    answers: dict[str, set[str]] = {}
    for row in audit["sample"]:
        answers.setdefault(row["question_id"], set()).update(row["answers"])
    return answers


def _versions(workspace: Workspace) -> dict[str, str | None]:
    """Return what the numbers of a draw rest on: the current labels and splits."""
    return {stage: workspace.versions.get(stage) for stage in ("label", "split")}


def _stored(workspace: Workspace) -> AuditDraw | None:
    return AUDIT.read(workspace.path / "reviews")


def _draw(workspace: Workspace, settings: Settings, size: int, versions: dict[str, str | None]) -> AuditDraw:
    labelers = [labeler.name for labeler in settings.labelers]
    decisions = _decisions(counting_reviews(workspace), settings.review)
    passages, numbers, answers = _passages(workspace, labelers, decisions)
    stratum = 2 * passages["split"].to_numpy() + passages["label"].to_numpy() - 1
    stratum[passages["state"].to_numpy() != _OPEN] = -1
    random = np.random.default_rng(int(content_hash("audit", settings.split.seed, size), 16))
    counts = allocation(numbers[..., _OPEN].sum(axis=2).ravel(), size)
    draws = [random.choice(np.flatnonzero(stratum == code), drawn, replace=False) for code, drawn in enumerate(counts)]
    places = np.sort(np.concatenate(draws))
    sample = passages.take(pa.array(places)).drop_columns("state").to_pylist()
    columns = ("question_id", "answer_key", "correct")
    ids = [row["question_id"] for row in sample]
    judged = workspace.read("verdicts", runs=["judge"], columns=columns, question_ids=ids)
    accepted = {(row["question_id"], row["answer_key"]) for row in judged.to_pylist() if row["correct"]}
    replies_by_labeler = [replies.distinct.take(replies.index[places]).to_pylist() for replies in answers]
    for row, *replies in zip(sample, *replies_by_labeler, strict=True):
        keys = sorted({reply["answer_key"] for reply in replies if reply["answer"] != NO_ANSWER} - {""})
        row["answers"] = {key: (row["question_id"], key) in accepted for key in keys}
    return {"size": size, "versions": versions, "labelers": labelers, "numbers": numbers.tolist(), "sample": sample}


class Estimate(TypedDict):
    """A share of 1 and its 95% interval; ``estimate`` is None while a passage that it needs is open."""

    estimate: float | None
    low: float
    high: float


class AuditShare(Estimate):
    """The share of label 2 ``of`` a split, all, or a number of hints; ``judge``: by its verdicts alone; ``wrong``: of
    the ``audited`` passages, those that the judge has wrong."""

    of: str
    passages: int
    judge: float
    audited: int
    wrong: int


class Audit(TypedDict):
    """Passages that were ``drawn`` and are ``judged``; ``stale``: whether labels or splits were made anew since.
    ``accuracy``: of the passages open at the draw, those on which the judge has people's ``label``, and their verdicts
    on all ``answers``."""

    drawn: int
    judged: int
    stale: bool
    shares: list[AuditShare]
    accuracy: dict[str, Estimate]


class AuditFigures(TypedDict):
    """What :func:`audit_figures` says; without the key where there is no audit."""

    audit: NotRequired[Audit]


def audit_figures(workspace: Workspace, settings: Review, reviews: pa.Table | None = None) -> AuditFigures:
    """Return what the audit says. ``reviews``: the rows that count and fit; those of all pulls, if not given."""
    if not settings.audit or (draw := _stored(workspace)) is None:
        return {}
    numbers, live = np.array(draw["numbers"]), counting_reviews(workspace) if reviews is None else reviews
    decisions, stale = _decisions(live, settings), draw["versions"] != _versions(workspace)
    errors = _errors(draw["sample"], decisions, numbers.shape[:3])
    label_errors, answer_errors = errors.sum(axis=-1)
    now = numbers * 0 if stale else _passages(workspace, draw["labelers"], decisions)[1]
    population = numbers[..., _OPEN].sum(axis=2)
    split, _, hints = np.indices(numbers.shape[:3])
    groups = {name: split == place for place, name in enumerate(SPLITS)} | {"all": split >= 0}
    groups |= {counted(size, "hint"): hints == size for size in range(numbers.shape[2])}
    shares = [_share(name, inside, numbers, now, errors[0]) for name, inside in groups.items() if numbers[inside].any()]
    total, errors_of = int(population.sum()), {"label": label_errors, "answers": answer_errors}
    accuracy = {
        what: _estimate(total, weighted_sum(-population, counts, population), total)
        for what, counts in errors_of.items() if total
    }  # fmt: skip
    _, unknown, drawn = label_errors.sum(axis=(1, 2)).tolist()
    audit: Audit = {"drawn": drawn, "judged": drawn - unknown, "stale": stale, "shares": shares, "accuracy": accuracy}
    return {"audit": audit}


def _share(name: str, inside: np.ndarray, numbers: np.ndarray, now: np.ndarray, errors: np.ndarray) -> AuditShare:
    """Return the share of label 2 of the cells ``inside`` (bool, shape (splits, labels, hints)).

    ``numbers``: passages of each cell and state at the draw; ``now``: as people have decided by now, which bounds the
    share; ``errors``: the labels of :func:`_errors`.
    """
    total, here = int(numbers[inside].sum()), numbers * inside[..., None]
    decided = now[inside].sum(axis=0) / total
    base = here[..., _RIGHT].sum() + here[:, 1, :, _OPEN].sum()
    change = weighted_sum(here[..., _OPEN].sum(axis=2) * _SIGN, errors.sum(axis=-1), numbers[..., _OPEN].sum(axis=2))
    wrong, unknown, drawn = errors[:, inside].sum(axis=-1).tolist()
    return {
        "of": name,
        "passages": total,
        "judge": float(here[:, 1].sum() / total),
        **_estimate(base, change, total, decided[_RIGHT], 1 - decided[_WRONG]),
        "audited": drawn - unknown,
        "wrong": wrong,
    }


def _errors(sample: Sequence[AuditPassage], decisions: pa.Table, shape: tuple[int, ...]) -> np.ndarray:
    """Return how many drawn passages the judge has wrong, how many are open, and all: by label, then by verdicts.

    The last three axes, of ``shape``, are split, judge's label and number of hints.
    """
    people = {(row["question_id"], row["answer_key"]): row["decision"] for row in decisions.to_pylist()}
    errors = np.zeros((2, 3, *shape), np.int64)
    for row in sample:
        pairs = [(people.get((row["question_id"], key)), verdict) for key, verdict in row["answers"].items()]
        is_open = any(decision is None for decision, _ in pairs)
        label = 0 if is_open or not row["whole"] else 1
        if any(decision for decision, _ in pairs):
            label = 2
        differs = any(decision is not None and decision is not verdict for decision, verdict in pairs)
        cell = errors[:, :, row["split"], row["label"] - 1, row["hints"]]
        cell += [[label == 3 - row["label"], label == 0, 1], [differs, is_open and not differs, 1]]
    return errors


def _estimate(
    base: int, change: tuple[float | None, float, float], total: int, minimum: float = 0.0, maximum: float = 1.0
) -> Estimate:
    """Return ``base`` and each ``change`` over ``total``, from ``minimum`` to ``maximum``."""

    def share(value: float) -> float:
        return float(min(max((base + value) / total, minimum), maximum))

    estimate, low, high = change
    return {"estimate": None if estimate is None else share(estimate), "low": share(low), "high": share(high)}
