"""Pull: every version of every annotation becomes rows of ``reviews``, once, whatever is killed in between.

A pull reads what changed on the server since the last one, and the list of annotations that exist. The rows of a pull
are one new part, written before the cursor moves: a pull that was killed is simply done again, and knows by number and
digest what it has already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.compute as pc

from quit.annotation.client import Server
from quit.annotation.project import edited, known_project, review_lock, task_key
from quit.annotation.tasks import Reading, intact, read_result
from quit.common.ids import content_hash
from quit.errors import ServerError
from quit.review.store import ReviewStore
from quit.settings import Settings
from quit.stages.labelling.verdicts import unclear_annotations
from quit.text.normalize import normalize_answer
from quit.text.words import counted

_LIGHT = ("id", "meta", "annotations_ids")
# The server applies this list to what is inside a task, too: the fields of annotations have to be named.
_FULL = (
    *("id", "meta", "data", "annotations", "updated_at", "created_at", "result", "completed_by"),
    *("updated_by", "was_cancelled", "lead_time"),
)


@dataclass
class PullReport:
    """What a pull brought. ``versions``: new versions of annotations, ``rows``: rows appended, ``verdicts``: those that
    accept or reject an answer, ``withdrawn``: deleted annotations, ``copied``: those on the server that nobody
    submitted, ``unclear``: those whose annotators have to be asked what they mean, ``tasks``: tasks on the server,
    ``done``: those with all the annotations they need, ``problems``: in words, each with what to do."""

    url: str = ""
    project: int = 0
    versions: int = 0
    rows: int = 0
    verdicts: int = 0
    withdrawn: int = 0
    skipped: int = 0
    copied: int = 0
    unclear: int = 0
    tasks: int = 0
    done: int = 0
    part: str | None = None
    problems: list[str] = field(default_factory=list)


def pull(
    store: ReviewStore, server: Server, settings: Settings, *, project: int | None = None, full: bool = False
) -> PullReport:
    """Append what is new on the server to ``reviews`` and return what was brought.

    ``full``: read every task, not only those changed since the last pull. Raises :class:`InputError` when the project
    is gone or not the only one, and whatever the server's requests raise; nothing is lost then.
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
        cursor = None if full or store.sync.get("project") != mark else store.sync.get("cursor")
        since = _earlier(cursor) if cursor else None
        # Asked before anything is read: what changes while this pull reads is newer, and the next pull's.
        newest = server.newest_change(number)
        for task in server.tasks(number, _FULL, since=since):
            rows.take(task)
        # Asked after everything was read: an annotation made meanwhile is not known yet, so none is withdrawn by
        # mistake.
        present = rows.withdraw_missing(server.tasks(number, _LIGHT))
        report.problems += rows.copies(present)
        report.part = store.append(rows.new)
        report.rows = len(rows.new)
        report.verdicts = sum(row.get("correct") is not None for row in rows.new)
        # Of an earlier project nothing is asked: its tasks are done anew in this one.
        questions = [row for row in unclear_annotations(store.read()) if row["project"] == mark[0]]
        report.unclear = len(questions)
        of_tasks = {task: f" {server.url}/projects/{number}/data?task={task}" for task in present}
        links = [of_tasks.get(row["task"], "") for row in questions]
        report.problems += _questions(questions, links)
        counts: Any = server.ask(lambda studio: studio.projects.get(number))
        report.tasks = counts.task_number
        report.done = counts.finished_task_number
        store.set_sync(
            {
                "project": mark,
                "cursor": _iso(newest) if newest else cursor,
                "tasks": report.tasks,
                "done": report.done,
                "problems": report.problems,
            }
        )
    return report


def _earlier(moment: str) -> str:
    """Return where a pull begins whose last one's newest change was then: clocks differ, and writes may be open."""
    return _iso(datetime.fromisoformat(moment) - timedelta(seconds=60))


def _utc(moment: str) -> str:
    return _iso(datetime.fromisoformat(moment))


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_ASK = {
    "empty": "nothing is ticked, not even 'None of these answers is correct', so this is no verdict. Which is meant?",
    "both": "'None of these answers is correct' is ticked, and so is an answer, so this is no verdict. Which is meant?",
    "gold": "the gold answer {} is not ticked, so there is no verdict on it. If it is wrong, tick 'The gold answer is "
    "wrong' too; else tick the answer.",
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

    ``new``: those of this pull. ``_headers``: annotation -> the row of kind ``annotation`` of its latest version.
    """

    def __init__(self, store: ReviewStore, server: Server, report: PullReport) -> None:
        self.new: list[dict[str, Any]] = []
        self._server = server
        self._report = report
        self._project = store.project["key"]
        self._sync = store.next_sync()
        rows = store.read()
        mine = (pc.field("kind") == "annotation") & (pc.field("project") == self._project)
        by_version = sorted(rows.filter(mine).to_pylist(), key=lambda row: row["version"])
        self._headers: dict[int, dict[str, Any]] = {row["annotation"]: row for row in by_version}

    def take(self, task: Any) -> None:
        """Take every annotation of a task, oldest change first."""
        annotations = task.annotations or []
        key = task_key(task)
        if key and annotations and not intact(task):
            self._report.problems.append(
                f"The data of task {task.id} ({key}) were edited: its annotations are not read. Push again to put the "
                "data back, then pull with --full; what was pulled of it counts until then."
            )
        elif key:
            by_time = sorted(annotations, key=lambda entry: (str(entry.get("updated_at")), str(entry.get("id"))))
            for annotation in by_time:
                try:
                    self._take(task.id, key, task.data, annotation)
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    self._report.problems.append(
                        f"Annotation {annotation.get('id')!r} of task {task.id} could not be read "
                        f"({type(error).__name__}: {error}): another program wrote it, or its task's earlier data were "
                        "edited. Delete it and have the task done again; what was pulled of it counts until then."
                    )
        elif annotations:
            self._report.problems.append(
                f"Task {task.id} was not made by quit: its {len(annotations)} annotations are not read."
            )

    def _take(self, task: int, question: str, data: Mapping[str, Any], annotation: Mapping[str, Any]) -> None:
        number, lead = int(annotation["id"]), annotation.get("lead_time")
        former = self._headers.get(number)
        copied = _is_copy(annotation)
        page = former["shown"] if former else int(data["version"]) if copied else None
        reading = read_result([] if copied else annotation["result"], data, page)
        if _person(annotation.get("completed_by")) is None:
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
        self._report.versions += not copied
        self._report.skipped += state == "skipped"
        if reading.unknown:
            self._report.problems.append(
                f"Annotation {number} of task {task} holds choices that the task never had: "
                f"{', '.join(reading.unknown)}. They are kept as rows of kind `unknown`; the rest of the annotation "
                "counts."
            )
        if state == "overwritten":
            self._report.problems.append(
                f"Annotation {number} of task {task} by {annotator} was changed by {editor}: it does not "
                f"count in this form (an earlier version by {annotator} does, if it was pulled). If it should, have "
                f"{annotator} open it, change something (a note will do) and press Update."
            )

    def _people_and_state(self, annotation: Mapping[str, Any]) -> tuple[str, str | None, str]:
        """Return who made an annotation, who else has changed it since, and its state."""
        person = _person(annotation.get("completed_by"))
        # Each annotation of an account that is gone is a person: two of them may be two people.
        annotator = f"unknown-{annotation['id']}" if person is None else self._server.email(person)
        number = _person(annotation.get("updated_by"))
        editor = None if number is None else self._server.email(number)
        if editor == annotator:
            editor = None
        state = "skipped" if annotation.get("was_cancelled") else "submitted"
        if editor:
            state = "overwritten"
        return annotator, editor, state

    def withdraw_missing(self, tasks: Iterable[Any]) -> set[int]:
        """Append a withdrawal for every annotation that is gone while its task is there; return the tasks there are.

        Raises :class:`ServerError` where the server does not say which annotations a task has.
        """
        present: dict[int, set[int]] = {}
        questions: set[str | None] = set()
        for task in tasks:
            if not isinstance(task.annotations_ids, str):
                raise ServerError(
                    f"{self._server.url} does not list the annotations of task {task.id}, so deleted ones cannot be "
                    "told. Nothing was pulled. Give that server the version of Label Studio that quit review serve has."
                )
            present[task.id] = {int(text) for text in task.annotations_ids.split(",") if text}
            questions.add(task_key(task))
        lost_tasks: set[int] = set()
        for number, header in sorted(self._headers.items()):
            if header["state"] == "withdrawn":
                continue
            if header["task"] not in present:
                if header["question_id"] not in questions:
                    lost_tasks.add(header["task"])
            elif number not in present[header["task"]]:
                version = header["version"] + 1
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
        if lost_tasks:
            self._report.problems.append(
                f"{len(lost_tasks)} tasks that people had worked on were deleted on the server. Their reviews still "
                "count: a task that is deleted withdraws nothing. Push again to create the tasks again; to withdraw a "
                "review, delete the annotation, not the task."
            )
        return {*present}

    def copies(self, present: Set[int]) -> list[str]:
        """Count the annotations that nobody submitted, of the tasks ``present``; return what to say about them."""
        copied = [row for row in self._headers.values() if row["state"] == "copied" and row["task"] in present]
        self._report.copied = len(copied)
        if not copied:
            return []
        who = ", ".join(sorted({row["annotator"] for row in copied}))
        return [
            f"Not submitted on a page: {counted(len(copied), 'annotation')} by {who}. A button (Create Annotations "
            "From Predictions, Propagate Annotations), an import or another program made what gives no verdict here; "
            "Label Studio counts the tasks as done. Delete these annotations to open the tasks again; one that its "
            "annotator opens and updates is a verdict."
        ]


def _is_copy(annotation: Mapping[str, Any]) -> bool:
    """Whether nobody submitted an annotation on a page: it came by a button or an import, of which the server names
    nobody who saved it, or by a program that gives neither the page's version nor a time."""
    annotator = annotation.get("completed_by")
    if annotator is not None and annotation.get("updated_by", annotator) is None:
        return True
    names_page = any(entry.get("from_name") == "shown" for entry in annotation["result"])
    return annotation.get("lead_time") is None and not names_page


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
            {"kind": "missing", "answer_key": normalize_answer(text), "answer": text, "correct": True}
            for text in reading.missing
        ]
        rows += [{"kind": "flag", "text": flag} for flag in reading.flags]
    if reading.note:
        rows.append({"kind": "note", "text": reading.note})
    rows += [{"kind": "unknown", "text": choice} for choice in reading.unknown]
    return [{**header, **row} for row in rows]


def _person(value: Any) -> int | None:
    """Return the number of an account, which the server gives as a number or as an object."""
    return value.get("id") if isinstance(value, Mapping) else value
