"""Pull: every version of every annotation becomes rows of ``reviews``, once, whatever is killed in between.

A pull lists the tasks, each with the time of its last change and its annotations, and reads those that the last pull
saw otherwise: no clock has to be right. The rows of a pull are one new part, written before it is noted what was seen:
a pull that was killed is simply done again, and knows by number and digest what it has already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from quit.annotation.client import Server, person_of
from quit.annotation.project import absent_adjudicator, edited, known_project
from quit.annotation.push import review_lock, task_key
from quit.annotation.readings import ANNOTATION_FIELDS, Reading, is_copy, read_result
from quit.annotation.reports import PullReport
from quit.annotation.tasks import TaskData, intact
from quit.annotation.versions import Versions
from quit.annotation.words import about_deleted, about_deleted_tasks, about_uncounted, questions_to_annotators
from quit.contracts.people import ReviewState
from quit.errors import ServerError
from quit.review.store import PullState, ReviewStore
from quit.settings import Settings
from quit.stages.labelling.verdicts import unclear_annotations

_LONGEST = 7 * 86_400.0
"""Seconds that a page may be open; more is no time that anybody takes."""
_LIGHT = ("id", "meta", "annotations_ids", "updated_at")
_FULL = ("id", "meta", "data", "updated_at", "created_at", *ANNOTATION_FIELDS)


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
        report.problems += absent_adjudicator(server, settings.review)
        versions = Versions(store)
        reader = TaskReader(server, versions)
        mark = [store.project["key"], number]
        last_stamps = store.sync.get("seen", {}) if store.sync.get("project") == mark and not full else {}
        # Before anything is read: what changes while this pull reads has another stamp in the next.
        tasks = list(server.tasks(number, _LIGHT))
        stamps = {str(task.id): [str(task.updated_at), task.annotations_ids] for task in tasks}
        to_read = [task.id for task in tasks if last_stamps.get(str(task.id)) != stamps[str(task.id)]]
        for start in range(0, len(to_read), 100):
            for task in server.tasks(number, _FULL, among=to_read[start : start + 100]):
                if problems := reader.read(task):
                    report.problems += problems
                    stamps.pop(str(task.id), None)  # the next pull reads it again
        _withdraw(versions, tasks, report, accept_withdrawals)
        task_ids = {task.id for task in tasks}
        headers = [row for row in versions.latest.values() if row["task"] in task_ids]
        report.copied = sum(row["state"] == "copied" for row in headers)
        report.problems += about_uncounted(headers, versions.unknown_choices)
        report.part = store.append(versions.new)
        report.rows = len(versions.new)
        states = Counter(row["state"] for row in versions.new if row["kind"] == "annotation")
        report.versions = states.total() - states["withdrawn"] - states["copied"]
        report.skipped = states["skipped"]
        report.verdicts = sum(row.get("correct") is not None for row in versions.new)
        # Of an earlier project nothing is asked: its tasks are done anew in this one.
        questions = [row for row in unclear_annotations(store.read()) if row["project"] == mark[0]]
        report.unclear = len(questions)
        of_tasks = {task: f" {server.url}/projects/{number}/data?task={task}" for task in task_ids}
        links = [of_tasks.get(row["task"], "") for row in questions]
        report.problems += questions_to_annotators(questions, links)
        counts: Any = server.ask(lambda studio: studio.projects.get(number))
        report.tasks = counts.task_number or 0
        report.done = counts.finished_task_number or 0
        facts_of_pull: PullState = {"tasks": report.tasks, "done": report.done, "problems": report.problems}
        store.set_sync({"project": mark, "seen": {} if report.held else stamps, **facts_of_pull})
    return report


def _utc(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _withdraw(versions: Versions, tasks: Sequence[Any], report: PullReport, accept_many: bool) -> None:
    """Withdraw every annotation that is gone while its task is there.

    Where many are gone at once, none is withdrawn without ``accept_many``. Raises :class:`ServerError` where the server
    does not say which annotations a task has.
    """
    on_server: dict[int, set[int]] = {}
    for task in tasks:
        if not isinstance(task.annotations_ids, str):
            raise ServerError(
                f"{report.url} does not list the annotations of task {task.id}, so deleted ones cannot be told. "
                "Nothing was pulled. Give that server the version of Label Studio that quit review serve has."
            )
        on_server[task.id] = {int(text) for text in task.annotations_ids.split(",") if text}
    deleted = versions.deleted(on_server)
    if deleted.are_many and not accept_many:
        report.held = deleted.counting
        versions.leave_out(deleted.annotations)
        report.problems.append(about_deleted(deleted.counting, deleted.total))
    else:
        report.withdrawn = versions.withdraw(deleted.annotations)
    questions = {task_key(task) for task in tasks}
    of_deleted_tasks = (row for row in versions.before.values() if row["task"] not in on_server)
    if gone := {row["task"] for row in of_deleted_tasks if row["question_id"] not in questions}:
        report.problems.append(about_deleted_tasks(len(gone)))


class TaskReader:
    """Reads the annotations of tasks into ``versions``."""

    def __init__(self, server: Server, versions: Versions) -> None:
        self._server = server
        self._versions = versions

    def read(self, task: Any) -> list[str]:
        """Read every annotation of a task, oldest change first; return in words what could not be read as it is."""
        key, annotations = task_key(task), task.annotations or []
        if not annotations:
            return []
        if not key:
            return [f"Task {task.id} was not made by quit: its {len(annotations)} annotations are not read."]
        if not intact(task):
            return [
                f"The data of task {task.id} ({key}) were edited: its annotations are not read. Push again to put the "
                "data back, then pull; what was pulled of it counts until then."
            ]
        problems = []
        for annotation in sorted(annotations, key=lambda entry: (str(entry.get("updated_at")), str(entry.get("id")))):
            try:
                self._read(task.id, key, task.data, annotation)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                problems.append(
                    f"Annotation {annotation.get('id')!r} of task {task.id} could not be read "
                    f"({type(error).__name__}: {error}): another program wrote it, or its task's earlier data were "
                    "edited. Delete it and have the task done again; what was pulled of it counts until then."
                )
            else:
                if person_of(annotation) is None:
                    problems.append(
                        f"Annotation {int(annotation['id'])} of task {task.id} has no account (deleted?): it counts as "
                        "one person's."
                    )
        return problems

    def _read(self, task: int, question: str, data: TaskData, annotation: Mapping[str, Any]) -> None:
        number, lead = int(annotation["id"]), annotation.get("lead_time")
        if max(number, task) >= 2**63:
            raise ValueError("a number in it is none that a table can hold")
        lead = lead if 0 <= (lead or 0) < _LONGEST else None  # of another program
        former = self._versions.latest.get(number)
        copied = is_copy(annotation)
        page = former["shown"] if former else int(data["version"]) if copied else None
        reading = read_result([] if copied else annotation["result"], data, page)
        annotator, editor = self._people(annotation)
        header = {
            "question_id": question,
            "state": "copied" if copied else _state(annotation, editor, reading),
            "annotator": annotator,
            "editor": editor,
            "created": _utc(annotation["created_at"]),
            "updated": _utc(annotation["updated_at"]),
            "lead_seconds": None if lead is None else float(lead),
            "task": task,
            "annotation": number,
        }
        self._versions.add(header, reading)

    def _people(self, annotation: Mapping[str, Any]) -> tuple[str, str | None]:
        """Return who made an annotation, and who else has changed it since."""
        person, number = person_of(annotation), person_of(annotation, "updated_by")
        # Each annotation of an account that is gone is a person: two of them may be two people.
        annotator = f"unknown-{annotation['id']}" if person is None else self._server.email(person)
        editor = None if number is None else self._server.email(number)
        return annotator, None if editor == annotator else editor


def _state(annotation: Mapping[str, Any], editor: str | None, reading: Reading) -> ReviewState:
    if editor:
        return "overwritten"
    if annotation.get("was_cancelled"):
        return "skipped"
    return "empty" if reading.empty else "submitted"
