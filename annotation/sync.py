"""Pull: every version of every annotation becomes rows of ``reviews``, once, whatever is killed in between.

A pull lists the tasks, each with the time of its last change and its annotations, and reads those that the last pull
saw otherwise: no clock has to be right. The rows of a pull are one new part, written before it is noted what was seen:
a pull that was killed is simply done again, and knows by number and digest what it has already.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow.compute as pc

from quit.annotation.client import Server, person_of
from quit.annotation.project import edited, known_project, review_lock, task_key
from quit.annotation.tasks import ANNOTATION_FIELDS, Reading, intact, is_copy, read_result
from quit.common.ids import content_hash
from quit.common.rows import grouped
from quit.errors import ServerError
from quit.review.store import ReviewStore
from quit.settings import Settings
from quit.stages.labelling.verdicts import unclear_annotations
from quit.text.answers import answer_key
from quit.text.words import counted

_LIGHT = ("id", "meta", "annotations_ids", "updated_at")
_FULL = ("id", "meta", "data", "updated_at", "created_at", *ANNOTATION_FIELDS)
_FEW, _MANY = 3, 20  # annotations that one person may delete at once


@dataclass
class PullReport:
    """What a pull brought. ``versions``: new versions of annotations, ``rows``: rows appended, ``verdicts``: those that
    accept or reject an answer, ``withdrawn``: deleted annotations, ``held``: deleted ones that still count,
    ``copied``: those on the server that nobody submitted, ``unclear``: those whose annotators have to be asked what
    they mean, ``tasks``: tasks on the server, ``done``: those with all the annotations they need, ``problems``: in
    words, each with what to do."""

    url: str = ""
    project: int = 0
    versions: int = 0
    rows: int = 0
    verdicts: int = 0
    withdrawn: int = 0
    held: int = 0
    skipped: int = 0
    copied: int = 0
    unclear: int = 0
    tasks: int = 0
    done: int = 0
    part: str | None = None
    problems: list[str] = field(default_factory=list)


def pull(
    store: ReviewStore,
    server: Server,
    settings: Settings,
    *,
    project: int | None = None,
    full: bool = False,
    accept_withdrawals: bool = False,
) -> PullReport:
    """Append what is new on the server to ``reviews`` and return what was brought.

    ``full``: read every task, not only those changed since the last pull. ``accept_withdrawals``: many annotations that
    are gone at once are withdrawn too. Raises :class:`InputError` when the project is gone or not the only one, and
    whatever the server's requests raise; nothing is lost then.
    """
    with review_lock(store, settings.run.lock_seconds):
        report = PullReport(url=server.url)
        facts = known_project(store, server, project)
        number = report.project = facts.id
        if problem := edited(server, facts):
            report.problems.append(problem)
        report.problems += server.absent_adjudicator()
        rows = _Rows(store, server, report)
        mark = [store.project["key"], number]
        last_stamps = store.sync.get("seen", {}) if store.sync.get("project") == mark and not full else {}
        # Before anything is read: what changes while this pull reads has another stamp in the next.
        tasks = list(server.tasks(number, _LIGHT))
        stamps = {str(task.id): [str(task.updated_at), task.annotations_ids] for task in tasks}
        to_read = [task.id for task in tasks if last_stamps.get(str(task.id)) != stamps[str(task.id)]]
        for start in range(0, len(to_read), 100):
            for task in server.tasks(number, _FULL, among=to_read[start : start + 100]):
                if not rows.take(task):
                    stamps.pop(str(task.id), None)  # the next pull reads it again
        task_ids = rows.withdraw_missing(tasks, accept_withdrawals)
        report.problems += rows.uncounted(task_ids)
        report.part = store.append(rows.new)
        report.rows = len(rows.new)
        states = Counter(row["state"] for row in rows.new if row["kind"] == "annotation")
        report.versions = states.total() - states["withdrawn"] - states["copied"]
        report.skipped = states["skipped"]
        report.verdicts = sum(row.get("correct") is not None for row in rows.new)
        # Of an earlier project nothing is asked: its tasks are done anew in this one.
        questions = [row for row in unclear_annotations(store.read()) if row["project"] == mark[0]]
        report.unclear = len(questions)
        of_tasks = {task: f" {server.url}/projects/{number}/data?task={task}" for task in task_ids}
        links = [of_tasks.get(row["task"], "") for row in questions]
        report.problems += _questions(questions, links)
        counts: Any = server.ask(lambda studio: studio.projects.get(number))
        report.tasks = counts.task_number
        report.done = counts.finished_task_number
        facts_of_pull = {"tasks": report.tasks, "done": report.done, "problems": report.problems}
        store.set_sync({"project": mark, "seen": {} if report.held else stamps, **facts_of_pull})
    return report


def _utc(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_ASK = {
    "empty": "nothing is ticked, not even 'None of these answers is correct', so this is no verdict. Which is meant?",
    "both": "'None of these answers is correct' is ticked, and so is an answer, so this is no verdict. Which is meant?",
    "gold": "the expected answer {} is not ticked, so there is no verdict on it. If it is wrong, tick 'The expected "
    "answer is wrong' too; else tick the answer.",
}
_MOST = 20  # questions to annotators that a pull lists


def _questions(rows: Sequence[Mapping[str, Any]], links: Sequence[str]) -> list[str]:
    """Return in words what annotators have to be asked; ``links``: the address of each row's task, empty where the
    project has it no more."""
    lines = [
        f"Ask {row['annotator']} about {row['question_id']}: "
        + _ASK[row["ask"]].format(", ".join(map(repr, row["answers"])))
        + link
        for row, link in zip(rows[:_MOST], links)
    ]
    if len(rows) > _MOST:
        lines.append(f"{len(rows) - _MOST} more pages are unclear: quit review status --json lists them all.")
    return lines


class _Rows:
    """Collects the rows of one pull.

    ``new``: those of this pull. ``_headers``: annotation -> the row of kind ``annotation`` of its latest version;
    ``_earlier``: of the latest version before this pull. ``_unknown``: rows of kind ``unknown`` before this pull.
    """

    def __init__(self, store: ReviewStore, server: Server, report: PullReport) -> None:
        self.new: list[dict[str, Any]] = []
        self._server = server
        self._report = report
        self._project = store.project["key"]
        self._sync = store.next_sync()
        rows, mine = store.read(), pc.field("project") == self._project
        kinds = {kind: rows.filter(mine & (pc.field("kind") == kind)).to_pylist() for kind in ("annotation", "unknown")}
        self._unknown = kinds["unknown"]
        by_version = sorted(kinds["annotation"], key=lambda row: row["version"])
        self._headers: dict[int, dict[str, Any]] = {row["annotation"]: row for row in by_version}
        self._earlier = {**self._headers}

    def take(self, task: Any) -> bool:
        """Take every annotation of a task, oldest change first; returns whether each could be read."""
        annotations = task.annotations or []
        key, count = task_key(task), len(self._report.problems)
        if key and annotations and not intact(task):
            self._report.problems.append(
                f"The data of task {task.id} ({key}) were edited: its annotations are not read. Push again to put the "
                "data back, then pull; what was pulled of it counts until then."
            )
        elif key:
            by_time = sorted(annotations, key=lambda entry: (str(entry.get("updated_at")), str(entry.get("id"))))
            for annotation in by_time:
                try:
                    self._take(task.id, key, task.data, annotation)
                except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                    self._report.problems.append(
                        f"Annotation {annotation.get('id')!r} of task {task.id} could not be read "
                        f"({type(error).__name__}: {error}): another program wrote it, or its task's earlier data were "
                        "edited. Delete it and have the task done again; what was pulled of it counts until then."
                    )
        elif annotations:
            self._report.problems.append(
                f"Task {task.id} was not made by quit: its {len(annotations)} annotations are not read."
            )
        return len(self._report.problems) == count

    def _take(self, task: int, question: str, data: Mapping[str, Any], annotation: Mapping[str, Any]) -> None:
        number, lead = int(annotation["id"]), annotation.get("lead_time")
        if max(number, task) >= 2**63 or not math.isfinite(lead or 0):
            raise ValueError("a number in it is none that a table can hold")
        former = self._headers.get(number)
        copied = is_copy(annotation)
        page = former["shown"] if former else int(data["version"]) if copied else None
        reading = read_result([] if copied else annotation["result"], data, page)
        if person_of(annotation) is None:
            self._report.problems.append(
                f"Annotation {number} of task {task} has no account (deleted?): it counts as one person's."
            )
        annotator, editor, state = self._people_and_state(annotation)
        if copied:
            state = "copied"
        elif state == "submitted" and reading.empty:
            state = "empty"
        # Without what a later version of the task changes: the answers' order and spelling, what was ticked beforehand.
        answers = sorted((key, accepted) for key, _, accepted, _ in reading.answers)
        digest = content_hash(
            state, reading.shown, answers, reading.missing, reading.flags, reading.note, reading.unknown, reading.ask,
            size=8,
        )  # fmt: skip
        if former and former["digest"] == digest and former["state"] == state:
            return
        version = former["version"] + 1 if former else 1
        header = {
            "review_id": content_hash(self._project, number, version, digest, size=8),
            "question_id": question,
            "kind": "annotation",
            "state": state,
            "annotator": annotator,
            "editor": editor,
            "created": _utc(annotation["created_at"]),
            "updated": _utc(annotation["updated_at"]),
            "lead_seconds": None if lead is None else float(lead),
            "project": self._project,
            "task": task,
            "annotation": number,
            "version": version,
            "shown": reading.shown,
            "blind": reading.blind,
            "digest": digest,
            "content": reading.seen[0],
            "content_with_hints": reading.seen[1],
            "sync": self._sync,
        }
        ask = reading.ask if state in ("submitted", "empty") else None
        self.new += [{**header, "text": ask}, *_rows_of(reading, header)]
        self._headers[number] = header

    def _people_and_state(self, annotation: Mapping[str, Any]) -> tuple[str, str | None, str]:
        """Return who made an annotation, who else has changed it since, and its state."""
        person = person_of(annotation)
        # Each annotation of an account that is gone is a person: two of them may be two people.
        annotator = f"unknown-{annotation['id']}" if person is None else self._server.email(person)
        number = person_of(annotation, "updated_by")
        editor = None if number is None else self._server.email(number)
        if editor == annotator:
            editor = None
        state = "skipped" if annotation.get("was_cancelled") else "submitted"
        if editor:
            state = "overwritten"
        return annotator, editor, state

    def withdraw_missing(self, tasks: Sequence[Any], accept_many: bool) -> set[int]:
        """Append a withdrawal for every annotation that is gone while its task is there; return the ids of the tasks.

        Where many are gone at once, none is withdrawn without ``accept_many``. One whose number another has now, on a
        server put back from a backup, is gone too. Raises :class:`ServerError` where the server does not say which
        annotations a task has.
        """
        numbers: dict[int, set[int]] = {}
        for task in tasks:
            if not isinstance(task.annotations_ids, str):
                raise ServerError(
                    f"{self._server.url} does not list the annotations of task {task.id}, so deleted ones cannot be "
                    "told. Nothing was pulled. Give that server the version of Label Studio that quit review serve has."
                )
            numbers[task.id] = {int(text) for text in task.annotations_ids.split(",") if text}
        earlier = {number: row for number, row in self._earlier.items() if row["state"] != "withdrawn"}
        of_tasks = {number: row for number, row in earlier.items() if row["task"] in numbers}
        absent = {
            number
            for number, row in of_tasks.items()
            if number not in numbers[row["task"]] or self._headers[number]["created"] != row["created"]
        }
        counting = {number for number, row in of_tasks.items() if row["state"] not in ("skipped", "copied")}
        lost, total = len(absent & counting), len(counting)
        if not accept_many and (1 < lost == total or lost > min(_MANY, max(_FEW, total // 5))):
            self._report.held = lost
            self.new = [row for row in self.new if row["annotation"] not in absent]
            self._report.problems.append(
                f"{lost} of {counted(total, 'annotation')} that were pulled are gone at once: deleted, or the server "
                "was put back from a backup. Their reviews still count. If they are to be withdrawn: quit review pull "
                "--accept-withdrawals."
            )
        else:
            # Where another annotation has the number, that is a newer version.
            for header in [self._headers[number] for number in sorted(absent)]:
                if header is self._earlier[header["annotation"]]:
                    self._withdraw(header)
        questions = {task_key(task) for task in tasks}
        deleted = (row for row in earlier.values() if row["task"] not in numbers)
        if gone := {row["task"] for row in deleted if row["question_id"] not in questions}:
            self._report.problems.append(
                f"{len(gone)} tasks that people had worked on were deleted on the server. Their reviews still "
                "count: a task that is deleted withdraws nothing. Push again to create the tasks again; to withdraw a "
                "review, delete the annotation, not the task."
            )
        return {*numbers}

    def _withdraw(self, header: Mapping[str, Any]) -> None:
        number, version = header["annotation"], header["version"] + 1
        columns = ("question_id", "kind", "annotator", "created", "updated", "project", "task", "annotation")
        self._headers[number] = {
            **{name: header[name] for name in columns},
            "review_id": content_hash(self._project, number, version, "withdrawn", size=8),
            "state": "withdrawn",
            "version": version,
            "digest": "withdrawn",
            "sync": self._sync,
        }
        self.new.append(self._headers[number])
        self._report.withdrawn += 1

    def uncounted(self, task_ids: Set[int]) -> list[str]:
        """Return what to say of all that does not count in the annotations of these tasks, whichever pull brought it;
        count those that nobody submitted."""
        headers = [row for row in self._headers.values() if row["task"] in task_ids]
        unknown = grouped(
            ((row["annotation"], row["version"]), row["text"])
            for row in (*self._unknown, *self.new)
            if row["kind"] == "unknown"
        )
        lines = []
        for row in headers:
            which = f"Annotation {row['annotation']} of task {row['task']}"
            if choices := unknown.get((row["annotation"], row["version"])):
                lines.append(
                    f"{which} holds choices that the task never had: {', '.join(choices)}. They are kept as rows of "
                    "kind `unknown`; the rest of the annotation counts."
                )
            if row["state"] == "overwritten":
                lines.append(
                    f"{which} by {row['annotator']} was changed by {row['editor']}: it does not count in this form (an "
                    f"earlier version by {row['annotator']} does, if it was pulled). If it should, have "
                    f"{row['annotator']} open it, change something (a note will do) and press Update."
                )
        copied = [row for row in headers if row["state"] == "copied"]
        self._report.copied = len(copied)
        if who := ", ".join(sorted({row["annotator"] for row in copied})):
            lines.append(
                f"Not submitted on a page: {counted(len(copied), 'annotation')} by {who}. A button (Create Annotations "
                "From Predictions, Propagate Annotations), an import or another program made what gives no verdict "
                "here. Label Studio counts the tasks as done until the next push opens them; what its annotator opens "
                "and updates is a verdict."
            )
        return lines


def _rows_of(reading: Reading, header: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of what an annotation says; a skipped page and a copy give no verdicts, although they have
    ticks."""
    rows: list[dict[str, Any]] = []
    if header["state"] not in ("skipped", "copied"):
        rows += [
            {"kind": "answer", "answer_key": key, "answer": answer, "correct": verdict, "suggested": suggestion}
            for key, answer, verdict, suggestion in reading.answers
        ]
        rows += [
            {"kind": "missing", "answer_key": answer_key(text), "answer": text, "correct": True}
            for text in reading.missing
        ]
        rows += [{"kind": "flag", "text": flag} for flag in reading.flags]
    if reading.note:
        rows.append({"kind": "note", "text": reading.note})
    rows += [{"kind": "unknown", "text": choice} for choice in reading.unknown]
    return [{**header, **row} for row in rows]
