"""The versions of a project's annotations, as rows of the table ``reviews``: those of a workspace and of a pull."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

import pyarrow.compute as pc

from quit.annotation.readings import Reading
from quit.common.ids import content_hash
from quit.common.rows import Row, grouped
from quit.review.store import ReviewStore
from quit.text.answers import answer_key

_FEW, _MANY = 3, 20  # annotations that one person may delete at once
_OF_WITHDRAWALS = ("question_id", "kind", "annotator", "created", "updated", "project", "task", "annotation")


class Deleted(NamedTuple):
    """Annotations that are gone while their tasks are there. ``counting``: so many of them count, ``total``: of so many
    that did."""

    annotations: Set[int]
    counting: int
    total: int

    @property
    def are_many(self) -> bool:
        """Whether they are more than a person deletes between two pulls."""
        return 1 < self.counting == self.total or self.counting > min(_MANY, max(_FEW, self.total // 5))


class Versions:
    """``latest``: annotation -> the row of kind ``annotation`` of its latest version; ``new``: rows to append."""

    def __init__(self, store: ReviewStore) -> None:
        self.new: list[Row] = []
        self._project = store.project["key"]
        self._sync = store.next_sync()
        rows = store.read().filter(pc.field("project") == self._project)
        by_version = rows.filter(pc.field("kind") == "annotation").sort_by("version").to_pylist()
        self.latest: dict[int, Row] = {row["annotation"]: row for row in by_version}
        self._before = {**self.latest}
        self._unknown = rows.filter(pc.field("kind") == "unknown").to_pylist()

    @property
    def before(self) -> dict[int, Row]:
        """As ``latest``, before this pull and without what was withdrawn."""
        return {number: row for number, row in self._before.items() if row["state"] != "withdrawn"}

    @property
    def unknown_choices(self) -> dict[tuple[int, int], list[str]]:
        """(annotation, version) -> its choices that the task never had."""
        rows = [*self._unknown, *(row for row in self.new if row["kind"] == "unknown")]
        return grouped(((row["annotation"], row["version"]), row["text"]) for row in rows)

    def add(self, header: Row, reading: Reading) -> None:
        """Add a version of an annotation, if it differs from the latest one. ``header``: the columns of its row that do
        not follow from ``reading``."""
        number, state = header["annotation"], header["state"]
        # Without what a later version of the task changes: the answers' order and spelling, what was ticked beforehand.
        answers = sorted((answer.answer_key, answer.correct) for answer in reading.answers)
        digest = content_hash(
            state, reading.shown, answers, reading.missing, reading.flags, reading.note, reading.unknown, reading.ask,
            size=8,
        )  # fmt: skip
        former = self.latest.get(number)
        if former and former["digest"] == digest and former["state"] == state:
            return
        content, content_with_hints = reading.seen
        row = {
            **header,
            **self._identity(number, digest),
            "kind": "annotation",
            "shown": reading.shown,
            "blind": reading.blind,
            "content": content,
            "content_with_hints": content_with_hints,
        }
        ask = reading.ask if state in ("submitted", "empty") else None
        self.new += [{**row, "text": ask}, *_rows_of(reading, row)]
        self.latest[number] = row

    def _identity(self, number: int, digest: str) -> Row:
        version = self.latest[number]["version"] + 1 if number in self.latest else 1
        review_id = content_hash(self._project, number, version, digest, size=8)
        columns = {"project": self._project, "version": version, "digest": digest, "sync": self._sync}
        return {"review_id": review_id, **columns}

    def deleted(self, on_server: Mapping[int, Set[int]]) -> Deleted:
        """Return the annotations that are gone; ``on_server``: task -> its annotations. One whose number another has
        now, on a server put back from a backup, is gone too."""
        of_tasks = {number: row for number, row in self.before.items() if row["task"] in on_server}
        absent = {
            number
            for number, row in of_tasks.items()
            if number not in on_server[row["task"]] or self.latest[number]["created"] != row["created"]
        }
        counting = {number for number, row in of_tasks.items() if row["state"] not in ("skipped", "copied")}
        return Deleted(absent, len(absent & counting), len(counting))

    def withdraw(self, annotations: Iterable[int]) -> int:
        """Append a withdrawal of each annotation, except where another one has its number: that is a newer version.
        Return how many."""
        numbers = [number for number in sorted(annotations) if self.latest[number] is self._before[number]]
        for number in numbers:
            columns = {name: self.latest[number][name] for name in _OF_WITHDRAWALS}
            self.latest[number] = {**columns, **self._identity(number, "withdrawn"), "state": "withdrawn"}
            self.new.append(self.latest[number])
        return len(numbers)

    def leave_out(self, annotations: Set[int]) -> None:
        """Append nothing about these annotations."""
        self.new = [row for row in self.new if row["annotation"] not in annotations]


def _rows_of(reading: Reading, header: Row) -> list[Row]:
    """Return the rows of what an annotation says; a skipped page and a copy give no verdicts, although they have
    ticks."""
    rows: list[Row] = []
    if header["state"] not in ("skipped", "copied"):
        rows += [{"kind": "answer", **answer._asdict()} for answer in reading.answers]
        rows += [
            {"kind": "missing", "answer_key": answer_key(text), "answer": text, "correct": True}
            for text in reading.missing
        ]
        rows += [{"kind": "flag", "text": flag} for flag in reading.flags]
    if reading.note:
        rows.append({"kind": "note", "text": reading.note})
    rows += [{"kind": "unknown", "text": choice} for choice in reading.unknown]
    return [{**header, **row} for row in rows]
