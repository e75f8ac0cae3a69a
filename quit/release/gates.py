"""Quality gates: what a release must hold to be one, each with a name, a reason and an explicit waiver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quit.common.columns import positions_in
from quit.common.progress import advance
from quit.common.rows import grouped, tuples
from quit.dataset.dataset import Dataset
from quit.dataset.files import TableFiles, contract
from quit.dataset.release import ReaderInfo
from quit.errors import InputError, SettingsError, did_you_mean
from quit.evaluate.labels import SPLITS
from quit.models.protocols import NO_ANSWER
from quit.settings import Settings, load, of_section
from quit.stages.labelling.answers import matching_rows
from quit.stages.labelling.passages import permutation_table
from quit.stages.leaks.containment import contained_in
from quit.stages.split import near_identical

AT_A_TIME = 2
"""Gates that are examined at a time."""
QUESTIONS_AT_A_TIME = 128
"""Questions whose labels are worked out at a time."""

State = Literal["passed", "failed", "waived"]


@dataclass(frozen=True)
class Subject:
    """What is checked: tables of a workspace or a release, its readers, and the settings it was made with."""

    files: TableFiles
    readers: tuple[ReaderInfo, ...]
    settings: Settings

    def chunks(self) -> Iterator[Subject]:
        """Yield the questions in chunks (:meth:`TableFiles.chunks`)."""
        return (replace(self, files=files) for files in self.files.chunks())

    def labelled(self) -> Dataset:
        """Return the tables as a dataset whose readers are the labelers. Raises ``InputError`` as ``Dataset`` does."""
        labelers = [info for info in self.readers if info.role == "labeler"]
        return Dataset.read(self.files, labelers)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Return an in-memory DuckDB that keeps to ``release.memory_mb`` and has the questions as ``ours``."""
        connection = duckdb.connect(config={"memory_limit": f"{self.settings.release.memory_mb}MB"})
        connection.register("ours", self.files.read("splits", ["question_id", "split"]))
        return connection


@dataclass(frozen=True)
class Gate:
    """One gate. ``find`` returns what is wrong, one text a violation; ``why``: what a violation would do to users;
    ``by_question``: whether it looks at one question at a time, so that questions are examined in chunks."""

    name: str
    why: str
    find: Callable[[Subject], list[str]]
    by_question: bool = False


@dataclass(frozen=True)
class GateResult:
    """What a gate found: ``state``, how many violations, some of them, and the reason of a waiver."""

    gate: str
    why: str
    state: State
    violations: int
    examples: tuple[str, ...] = ()
    waiver: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-like values."""
        return {**asdict(self), "examples": list(self.examples)}


def check(subject: Subject, waivers: Mapping[str, str] | None = None) -> list[GateResult]:
    """Return what every gate says, in order. ``waivers``: gate -> reason; one that passes needs and keeps none.

    Raises :class:`SettingsError` for a waiver of an unknown gate or without a reason.
    """
    waivers = dict(waivers or {})
    for name, reason in waivers.items():
        if name not in GATES:
            raise SettingsError(f"There is no gate {name!r}.{did_you_mean(name, list(GATES))}")
        if not reason.strip():
            raise SettingsError(f"The waiver of {name!r} needs a reason ({name}='...'). It is published with the data.")

    def examined(gate: Gate) -> GateResult:
        try:
            parts = subject.chunks() if gate.by_question else [subject]
            violations = [violation for part in parts for violation in gate.find(part)]
        except (InputError, pa.ArrowException, duckdb.Error, KeyError) as error:
            violations = [f"could not be examined: {error}"]  # what a schema gate reports keeps others from looking
        advance("quality gates", 1, len(GATES))
        state: State = "passed"
        if violations:
            state = "waived" if gate.name in waivers else "failed"
        examples = tuple(violations[: subject.settings.release.examples])
        waiver = waivers[gate.name].strip() if state == "waived" else None
        return GateResult(gate.name, gate.why, state, len(violations), examples, waiver)

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(examined, GATES.values()))


def parse_waivers(texts: Sequence[str]) -> dict[str, str]:
    """Return gate -> reason from ``GATE=REASON`` texts. Raises :class:`SettingsError` for one without ``=``."""
    reasons = {}
    for text in texts:
        name, separator, reason = text.partition("=")
        if not separator:
            raise SettingsError(f"The waiver {text!r} has no '='. Write it as unjudged-answer='why it may pass'.")
        reasons[name.strip()] = reason
    return reasons


def with_release_settings(settings: Settings, texts: Sequence[str]) -> Settings:
    """Return settings with these ``release.KEY=VALUE`` texts applied. Raises ``SettingsError`` for other settings."""
    section = load("embedded", of_section("release", texts)).settings.release
    keys = (text.partition("=")[0].strip().removeprefix("release.") for text in texts)
    values = {key: getattr(section, key) for key in keys}
    return settings.model_copy(update={"release": settings.release.model_copy(update=values)})


def _schema(subject: Subject) -> list[str]:
    violations = []
    for name, paths in subject.files.parts.items():
        schema = subject.files.schema(name)
        for path in paths:
            have = pq.read_schema(path)
            if not have.equals(schema):
                wrong = [f.name for f in schema if f.name not in have.names or not have.field(f.name).equals(f)]
                extra = [column for column in have.names if column not in schema.names]
                violations.append(
                    f"{name}: columns differ from the table's schema ({', '.join(wrong + extra) or 'their order'})"
                )
    if violations:
        return violations
    with subject.connect() as connection:
        for name in ("splits", "questions", "ranked_hints", "descriptions", "valid_answers", "verdicts"):
            key = ", ".join(contract(name).key)
            if subject.files.parts[name]:
                rows = connection.execute(
                    f"SELECT {key}, count(*) FROM {subject.files.sql(name)} GROUP BY ALL HAVING count(*) > 1 ORDER BY "
                    "ALL"
                ).fetchall()
                violations += [f"{name}: {row[-1]} rows with the key {' / '.join(map(str, row[:-1]))}" for row in rows]
        for name in ("questions", "descriptions", "valid_answers"):
            rows = connection.execute(
                "SELECT question_id FROM ours WHERE question_id NOT IN (SELECT question_id FROM "
                f"{subject.files.sql(name)}) ORDER BY 1"
                if subject.files.parts[name]
                else "SELECT question_id FROM ours ORDER BY 1"
            ).fetchall()
            violations += [f"{name}: no row for the question {row[0]}" for row in rows]
    splits = subject.files.read("splits", ["question_id", "split"]).to_pylist()
    violations += [
        f"splits: {row['question_id']} is in {row['split']!r}" for row in splits if row["split"] not in SPLITS
    ]
    labels = subject.files.batches("labels", ["label"])
    strange = sum(pc.sum(pc.invert(pc.is_in(rows["label"], pa.array([1, 2], pa.int16())))).as_py() for rows in labels)
    return violations + ([f"labels: {strange} labels are neither 1 nor 2"] if strange else [])


def _missing_passage(subject: Subject) -> list[str]:
    ids = subject.files.read("splits", ["question_id"])["question_id"].combine_chunks()
    hints = subject.settings.convergence.hints
    permutations = permutation_table(hints)
    ranked = subject.files.read("ranked_hints", ["question_id", "selected"])
    selected = np.bincount(positions_in(ranked.filter(ranked["selected"])["question_id"], ids), minlength=len(ids))
    violations = [
        f"ranked_hints: {ids[int(position)]} has {selected[position]} selected hints, expected {hints}"
        for position in np.flatnonzero(selected != hints)
    ]
    count = len(permutations)
    for name in ("passages", "labels", *(f"answers/{info.name}" for info in subject.readers)):
        counted = np.zeros(len(ids) * count, dtype=np.int16)
        strange = np.zeros(len(ids), dtype=np.int64)  # rows of no permutation
        for rows in subject.files.batches(name, ["question_id", "permutation"]):
            question = positions_in(rows["question_id"], ids)
            passage = positions_in(rows["permutation"], permutations.permutation)
            valid = passage >= 0
            cells = question[valid] * count + passage[valid]
            if len(cells):
                counts = np.bincount(cells - cells.min())
                counted[cells.min() : cells.min() + len(counts)] += counts.astype(np.int16)
            strange += np.bincount(question[~valid], minlength=len(ids))
        each = counted.reshape(len(ids), count)
        for row in np.flatnonzero((each != 1).any(axis=1) | (strange > 0)):
            violations.append(
                f"{name}: {ids[int(row)]} has {each[row].sum() + strange[row]} rows, expected its {count} passages, "
                "each once"
            )
    return violations


def _answer_in_passage(subject: Subject) -> list[str]:
    """Return the valid answers that a passage states. Overrides do not count, since a release does not hold them: what
    lets such a passage through is a waiver, whose reason is published.
    """
    ranked = subject.files.read("ranked_hints", ["question_id", "rank", "hint", "selected"])
    hints: dict[str, list[str]] = grouped(
        tuples(ranked.filter(ranked["selected"]).sort_by("rank"), "question_id", "hint")
    )
    violations = []
    for row in subject.files.read("valid_answers", ["question_id", "answer", "origin"]).to_pylist():
        selected, gold = hints.get(row["question_id"], []), row["origin"] == "gold"
        where = contained_in(row["answer"], selected, gold, subject.settings.leakage)
        if where is not None:
            passage = " ".join(selected[rank] for rank in where)
            digits = "".join(map(str, where))
            violations.append(f"{row['question_id']}: {row['answer']!r} is in the passage {digits}: {passage[:160]!r}")
    return violations


def _question_on_two_sides(subject: Subject) -> list[str]:
    split_of = dict(tuples(subject.files.read("splits"), "question_id", "split"))
    rows = subject.files.read("questions", ["question_id", "question", "content_key"]).to_pylist()
    rows = [
        {**row, "split": split_of[row["question_id"]], "pinned": None} for row in rows if row["question_id"] in split_of
    ]
    by_key = grouped((row["content_key"], row) for row in rows)
    pairs = {
        (first["question_id"], other["question_id"])
        for same in by_key.values()
        for first in same
        for other in same
        if first["split"] == "train" != other["split"]
    }
    for train, rest in near_identical(rows, subject.settings.split.near_duplicate):
        pairs.add((train["question_id"], rest["question_id"]))
    return [
        f"{first} in {split_of[first]} and {other} in {split_of[other]} ask the same" for first, other in sorted(pairs)
    ]


def _unjudged_answer(subject: Subject) -> list[str]:
    verdicts = subject.files.read("verdicts", ["question_id", "answer_key", "correct"])
    judged = verdicts.filter(verdicts["correct"].is_valid())
    missing: dict[tuple[str, str], str] = {}
    for info in subject.readers:
        distinct = subject.files.distinct_answers(info.name)
        unjudged = distinct.take(pa.array(np.flatnonzero(matching_rows(distinct, judged, "answer_key") < 0)))
        for row in unjudged.filter(pc.not_equal(unjudged["answer"], NO_ANSWER)).to_pylist():
            key = (row["question_id"], row["answer_key"])
            missing[key] = min(missing.get(key, row["answer"]), row["answer"])
    return [f"{question}: {answer!r} has no verdict" for (question, _), answer in sorted(missing.items())]


def _label_mismatch(subject: Subject) -> list[str]:
    dataset = subject.labelled()
    violations = []
    for position in range(0, len(dataset.ids), QUESTIONS_AT_A_TIME):
        try:
            dataset.check_labels(np.arange(position, min(position + QUESTIONS_AT_A_TIME, len(dataset.ids))))
        except InputError as error:
            violations.append(str(error))
    return violations


def coverage(files: TableFiles, splits: Sequence[str]) -> dict[str, Any]:
    """Return how far people judged the distinct answers of some splits: ``answers``, ``judged``, ``share``,
    ``questions``, ``reviewed``.

    Gold answers count where a reader gave them; NO ANSWER does not. A question is reviewed when people judged all its
    answers.
    """
    split_of = dict(tuples(files.read("splits"), "question_id", "split"))
    tally = {question: [0, 0] for question, split in split_of.items() if split in splits}
    for rows in files.batches("verdicts", ["question_id", "basis", "answer"]):
        for question, basis, answer in tuples(rows, "question_id", "basis", "answer"):
            if question in tally and answer != NO_ANSWER:
                tally[question][0] += 1
                tally[question][1] += basis == "review"
    answers, judged = (sum(counts[column] for counts in tally.values()) for column in (0, 1))
    return {
        "splits": list(splits),
        "answers": answers,
        "judged": judged,
        "share": judged / answers if answers else 1.0,
        "questions": len(tally),
        "reviewed": sum(whole == judged_answers for whole, judged_answers in tally.values()),
    }


def _human_coverage(subject: Subject) -> list[str]:
    needed = subject.settings.release.human_coverage
    have = coverage(subject.files, subject.settings.review.splits)
    if have["share"] >= needed:
        return []
    return [
        f"people judged {have['judged']:,} of {have['answers']:,} answers in {', '.join(have['splits'])} "
        f"({have['share']:.1%}); release.human_coverage asks for {needed:.1%}"
    ]


GATES: dict[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("schema", "Programs that read the tables rely on their columns, keys and values.", _schema),
        Gate(
            "missing-passage",
            "Every question has every ordered selection of its hints, read by every reader, so that subsets can be "
            "compared.",
            _missing_passage,
            by_question=True,
        ),
        Gate(
            "answer-in-passage",
            "A passage that states an answer needs no inference: what the leakage filter takes for stated must be 0.",
            _answer_in_passage,
            by_question=True,
        ),
        Gate(
            "question-on-two-sides",
            "A question of train that is also in dev or test lets a model remember instead of infer.",
            _question_on_two_sides,
        ),
        Gate(
            "unjudged-answer",
            "An answer without a verdict counts as wrong, which may make a fully relevant passage look partially "
            "relevant.",
            _unjudged_answer,
            by_question=True,
        ),
        Gate(
            "label-mismatch",
            "Everyone must be able to recompute the labels from the labelers' answers and the valid answers.",
            _label_mismatch,
            by_question=True,
        ),
        Gate(
            "human-coverage",
            "Verdicts that no person has seen carry the judge's errors into the labels.",
            _human_coverage,
        ),
    )
}
"""The gates in the order in which they are examined."""
