"""Pull: every version of every annotation becomes rows of ``reviews``, once, whatever is killed in between.

A pull reads what changed on the server since the last one, what webhooks left in the queue, and the list of annotations
that exist. The rows of a pull are one new part, written before the cursor moves: a pull that was killed is simply done
again, and knows by number and digest what it has already.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from annotation.client import Server
from annotation.project import alone, config_faults, known_project
from annotation.tasks import read_result
from quit.common.ids import content_hash
from quit.evaluate.normalize import normalize_answer
from quit.review.store import ReviewStore
from quit.settings import Settings

_LIGHT = ("id", "annotations_ids")
# The server applies this list to what is inside a task, too: the fields of annotations have to be named.
_FULL = (
    *("id", "meta", "data", "annotations", "updated_at", "created_at", "result", "completed_by"),
    *("updated_by", "was_cancelled", "lead_time"),
)


@dataclass
class PullReport:
    """What a pull brought. ``versions``: new versions of annotations, ``rows``: rows appended, ``withdrawn``: deleted
    annotations, ``tasks``: tasks on the server, ``done``: those with all the annotations they need, ``problems``: in
    words, each with what to do."""

    url: str = ""
    project: int = 0
    versions: int = 0
    rows: int = 0
    withdrawn: int = 0
    skipped: int = 0
    events: int = 0
    tasks: int = 0
    done: int = 0
    part: str | None = None
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Known:
    """The latest version of an annotation that the workspace has; ``header``: its row of kind ``annotation``."""

    version: int
    state: str
    updated: str
    digest: str
    header: dict[str, Any]


def pull(
    store: ReviewStore, server: Server, settings: Settings, *, project: int | None = None, full: bool = False
) -> PullReport:
    """Append what is new on the server to ``reviews`` and return what was brought.

    ``full``: read every task, not only those changed since the last pull. Raises :class:`InputError` when the project
    is gone or not the only one, and whatever the server's requests raise; nothing is lost then.
    """
    with alone(store, settings.run.lock_seconds):
        report = PullReport(url=server.url)
        project_facts = known_project(store, server, project)
        report.project = project_facts["id"]
        for fault in config_faults(project_facts.get("label_config") or ""):
            report.problems.append(
                f"Someone edited the labelling configuration: {fault}. Put it back with: quit review push "
                "--repair-config"
            )
        known = _known(store)
        rows = _Rows(store, server, known, report)
        events = store.queued()
        cursor = None if full or store.sync.get("project") != project_facts["id"] else store.sync.get("cursor")
        since = _earlier(cursor, settings.review.reread_seconds) if cursor else None
        # Asked before anything is read: what changes while this pull reads is newer, and the next pull's.
        newest = server.newest_change(project_facts["id"]) or cursor
        for event in _read_events(events, report):
            rows.take_event(event)
        for task in server.tasks(project_facts["id"], _FULL, since=since):
            rows.take(task)
        # Asked after everything was read: an annotation made meanwhile is not known yet, so none is withdrawn by
        # mistake.
        project_facts = server.request("GET", f"api/projects/{project_facts['id']}")
        if full or rows.live != project_facts["total_annotations_number"] + project_facts["skipped_annotations_number"]:
            rows.withdraw_missing(server.tasks(project_facts["id"], _LIGHT))
        report.part = store.append(rows.made)
        report.rows = len(rows.made)
        report.events = len(events)
        report.tasks = project_facts["task_number"]
        report.done = project_facts["finished_task_number"]
        store.set_sync(
            {
                "project": project_facts["id"],
                "cursor": newest,
                "tasks": report.tasks,
                "done": report.done,
                "problems": report.problems,
            }
        )
        for path in events:
            path.unlink(missing_ok=True)
    return report


def _known(store: ReviewStore) -> dict[tuple[str, int], _Known]:
    rows = store.read()
    newest: dict[tuple[str, int], _Known] = {}
    for row in rows.filter(pc.equal(rows.column("kind"), "annotation")).to_pylist():
        key = (row["project"], row["annotation"])
        if key not in newest or newest[key].version < row["version"]:
            newest[key] = _Known(row["version"], row["state"], row["updated"], row["digest"], row)
    return newest


def _earlier(moment: str, seconds: float) -> str:
    return _iso(datetime.fromisoformat(moment) - timedelta(seconds=seconds))


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _read_events(paths: Iterable[Path], report: PullReport) -> Iterable[dict[str, Any]]:
    for path in paths:
        try:
            event = json.loads(path.read_bytes())
            if not isinstance(event, dict):
                raise ValueError("no object")
        except (OSError, ValueError) as error:
            report.problems.append(
                f"The event {path.name} could not be read ({error}); the server itself was asked instead."
            )
            continue
        yield event


class _Rows:
    """Collects the rows of one pull."""

    def __init__(
        self, store: ReviewStore, server: Server, known: dict[tuple[str, int], _Known], report: PullReport
    ) -> None:
        self.made: list[dict[str, Any]] = []
        self._server = server
        self._known = known
        self._report = report
        self._project = store.project["key"]
        self._sync = store.next_sync()

    @property
    def live(self) -> int:
        """Number of annotations that the workspace believes to be on the server."""
        return sum(
            project == self._project and latest.state != "withdrawn" for (project, _), latest in self._known.items()
        )

    def take_event(self, event: Mapping[str, Any]) -> None:
        """Take the version of an annotation that a webhook carried: it may have been changed or deleted since."""
        annotation, task = event.get("annotation"), event.get("task")
        if isinstance(annotation, dict) and isinstance(task, dict) and annotation.get("id"):
            # A webhook's annotation names its people by number or by object; only this project's tasks are ours.
            if (task.get("meta") or {}).get("key") and task.get(
                "project", self._report.project
            ) == self._report.project:
                self._take(task, annotation)

    def take(self, task: Mapping[str, Any]) -> None:
        """Take every annotation of a task, oldest change first."""
        if not (task.get("meta") or {}).get("key"):
            if task.get("annotations"):
                self._report.problems.append(
                    f"Task {task['id']} was not made by quit: its {len(task['annotations'])} annotations are not read."
                )
            return
        for annotation in sorted(task.get("annotations") or [], key=lambda entry: (entry["updated_at"], entry["id"])):
            self._take(task, annotation)

    def _take(self, task: Mapping[str, Any], annotation: Mapping[str, Any]) -> None:
        number = annotation["id"]
        before = self._known.get((self._project, number))
        updated = _iso(datetime.fromisoformat(annotation["updated_at"]))
        if before and updated <= before.updated:
            return
        try:
            result = read_result(annotation["result"], task["data"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._report.problems.append(
                f"Annotation {number} of task {task['id']} could not be read ({type(error).__name__}: {error}): the "
                "task's data were edited. Push again to put them back, then pull with --full."
            )
            return
        annotator = self._server.email(_person(annotation.get("completed_by")))
        editor = _person(annotation.get("updated_by"))
        editor_name = None if editor is None else self._server.email(editor)
        state = "submitted"
        if annotation.get("was_cancelled"):
            state = "skipped"
        elif editor_name not in (None, annotator):
            state = "overwritten"
        digest = content_hash(
            state, result.shown, result.answers, result.missing, result.flags, result.note, result.unknown, size=8
        )
        if before and before.digest == digest and before.state == state:
            return
        version = before.version + 1 if before else 1
        question = task["meta"]["key"]
        common = {
            "review_id": content_hash(self._project, number, version, digest, size=8),
            "question_id": question,
            "state": state,
            "annotator": annotator,
            "editor": editor_name if editor_name != annotator else None,
            "created": _iso(datetime.fromisoformat(annotation["created_at"])),
            "updated": updated,
            "lead_seconds": annotation.get("lead_time"),
            "project": self._project,
            "task": task["id"],
            "annotation": number,
            "version": version,
            "shown": result.shown,
            "digest": digest,
            "sync": self._sync,
        }
        rows = [{**common, "kind": "annotation"}]
        if state != "skipped":  # a skipped page still holds its ticks: they say nothing
            rows += [
                {
                    **common,
                    "kind": "answer",
                    "answer_key": key,
                    "answer": answer,
                    "correct": accepted,
                    "suggested": before_hand,
                }
                for key, answer, accepted, before_hand in result.answers
            ]
            rows += [
                {**common, "kind": "missing", "answer_key": normalize_answer(text), "answer": text, "correct": True}
                for text in result.missing
            ]
            rows += [{**common, "kind": "flag", "text": flag} for flag in result.flags]
        if result.note:
            rows.append({**common, "kind": "note", "text": result.note})
        rows += [{**common, "kind": "unknown", "text": choice} for choice in result.unknown]
        if result.unknown:
            self._report.problems.append(
                f"Annotation {number} of task {task['id']} holds choices that the task never had: "
                f"{', '.join(result.unknown)}. They are kept as rows of kind `unknown`; the rest of the annotation "
                "counts."
            )
        if state == "overwritten":
            self._report.problems.append(
                f"Annotation {number} of task {task['id']} by {annotator} was changed by {editor_name}: it does not "
                f"count in this form (an earlier version by {annotator} does, if it was pulled)."
            )
        self.made += rows
        self._known[self._project, number] = _Known(version, state, updated, digest, rows[0])
        self._report.versions += 1
        self._report.skipped += state == "skipped"

    def withdraw_missing(self, listed: Iterable[Mapping[str, Any]]) -> None:
        """Append a withdrawal for every annotation that is gone while its task is there."""
        present: dict[int, set[int]] = {}
        for task in listed:
            present[task["id"]] = {
                int(text) for text in str(task.get("annotations_ids") or "").split(",") if text.strip()
            }
        lost_tasks: set[int] = set()
        for (project, number), known in sorted(self._known.items()):
            task = known.header["task"]
            if project != self._project or known.state == "withdrawn":
                continue
            if task not in present:
                lost_tasks.add(task)
            elif number not in present[task]:
                header = known.header
                self.made.append(
                    {
                        **{name: header[name] for name in ("question_id", "annotator", "created", "project", "task")},
                        "review_id": content_hash(project, number, known.version + 1, "withdrawn", size=8),
                        "kind": "annotation",
                        "state": "withdrawn",
                        "updated": header["updated"],
                        "annotation": number,
                        "version": known.version + 1,
                        "digest": "withdrawn",
                        "sync": self._sync,
                    }
                )
                self._report.withdrawn += 1
        if lost_tasks:
            self._report.problems.append(
                f"{len(lost_tasks)} tasks that people had worked on were deleted on the server. Their reviews still "
                "count: a task that is deleted withdraws nothing. Push again to create the tasks again; to withdraw a "
                "review, delete the annotation, not the task."
            )


def _person(value: Any) -> int | None:
    """Return the number of an account, which the server gives as a number or as an object."""
    if isinstance(value, Mapping):
        return value.get("id")
    return value
