"""The review project on a server: found by its key, made, set up, and its labelling page compared with ours.

The workspace has the key before the project exists, and the project's description has it too: the next push after a
kill finds the project by it.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from quit.annotation.client import Server
from quit.annotation.reports import PushReport
from quit.annotation.tasks import SUGGESTIONS
from quit.errors import InputError, ServerError
from quit.review.store import ReviewStore
from quit.settings import Review, Settings

HERE = Path(__file__).parent
STILL_SECONDS = 30.0
"""How long nothing may arrive at a server before what a lost answer was about counts as not carried out."""
_HIDDEN = (
    *("inner_id", "total_predictions", "annotations_results", "annotations_ids", "predictions_score"),
    *("predictions_model_versions", "predictions_results", "file_upload", "storage_filename", "created_at"),
    *("updated_at", "updated_by", "avg_lead_time", "draft_exists"),
    *(f"data.{name}" for name in ("hints_html", "candidates", "key", "version", "answers", "ticked", "blind", "seen")),
)
"""Columns that the list of tasks leaves out: it shows the question, its gold answers, and who did it and when."""
_KEY = re.compile(r"\[quit-review ([0-9a-f]{12})\]")


def label_config() -> str:
    """Return the labelling configuration.

    It has no ``Filter``: that takes the key 1 and does not say so, Enter in it ticks an answer, and ticks that it hides
    are submitted.
    """
    return (HERE / "label_config.xml").read_text(encoding="utf-8")


def guidelines_html() -> str:
    """Return the annotators' guidelines as HTML, for the project's instruction page.

    The page adds a title, and shows lists without bullets or numbers: the text has these itself.
    """
    text = (HERE / "guidelines.md").read_text(encoding="utf-8").partition("\n")[2]
    return MarkdownIt("commonmark").enable("table").render(text)


def settled(look: Callable[[], Any]) -> Any:
    """Return what ``look`` gives once that has stood still: what a lost answer was about may be carried out late."""
    value, since = look(), time.monotonic()
    while time.monotonic() - since < STILL_SECONDS:
        time.sleep(STILL_SECONDS / 20)
        if (now := look()) != value:
            value, since = now, time.monotonic()
    return value


def find_projects(server: Server, key: str) -> list[Any]:
    """Return the server's projects with this key in their description, oldest first."""
    projects: list[Any] = server.ask(lambda studio: list(studio.projects.list(include="id,description", page_size=100)))
    matches = ((project, _KEY.search(project.description or "")) for project in projects)
    return sorted((project for project, match in matches if match and match.group(1) == key), key=lambda row: row.id)


def known_project(store: ReviewStore, server: Server, project: int | None = None) -> Any:
    """Return the workspace's project on this server, as the SDK gives it.

    Raises :class:`InputError` when there is none, or several and none of them is named.
    """
    note = store.project
    if not note:
        raise InputError("Nothing has been pushed from this workspace yet. Run: quit review push")
    numbers = [candidate.id for candidate in find_projects(server, note["key"])]
    if not numbers:
        raise InputError(
            f"{server.url} has no project of this workspace"
            + (f" (it was project {note['id']} of {note['url']})" if note.get("id") else "")
            + ": deleted, or a different server. Reviews that were pulled are safe. Name the right server (--url), or "
            "make a new project: quit review push --new-project"
        )
    matches = [number for number in numbers if project in (None, number)]
    if len(matches) != 1:
        raise InputError(
            f"These projects of {server.url} belong to this workspace: {', '.join(map(str, numbers))}. Name one of "
            "them: --project ID; and delete copies when nobody works there."
        )
    if not note.get("id"):
        store.set_project({"key": note["key"], "url": server.url, "id": matches[0]})
    return server.ask(lambda studio: studio.projects.get(matches[0]))


def open_project(
    store: ReviewStore, server: Server, settings: Settings, project: int | None, new: bool, report: PushReport
) -> Any:
    """Return the workspace's project, made where there is none or a ``new`` one is asked for; ``report`` says so.

    Raises as :func:`known_project`.
    """
    note = store.project
    if note and not new:
        if "id" in note or find_projects(server, note["key"]):
            return known_project(store, server, project)
    if not note or new:
        # The key is on disk before the project exists: a push killed in between finds its project again.
        store.set_project({"key": uuid.uuid4().hex[:12]})
    key = store.project["key"]
    try:
        server.ask(
            lambda studio: studio.projects.create(
                title=settings.review.title,
                description=f"Human verification of generated answers. [quit-review {key}] (this mark belongs to the "
                "project)",
                label_config=label_config(),
                **_project_settings(settings),
            ),
            again=False,
        )
    except ServerError:
        if not settled(lambda: [candidate.id for candidate in find_projects(server, key)]):
            raise
    report.created = True
    return known_project(store, server)


def _project_settings(settings: Settings) -> dict[str, Any]:
    review = settings.review
    return {
        "expert_instruction": guidelines_html(),
        "show_instruction": True,
        "show_collab_predictions": True,
        "model_version": SUGGESTIONS,
        "sampling": "Sequential sampling",
        "show_skip_button": True,
        "enable_empty_annotation": True,
        "maximum_annotations": review.overlap if review.overlap_share >= 0.5 else 1,  # what most need: see overlaps
        "overlap_cohort_percentage": 100,  # below 100 the server draws again at each import, controls too
    }


def set_up(server: Server, project: Any, settings: Settings) -> None:
    """Set what the queue and the ticks depend on; only what differs is sent."""
    differing = {name: value for name, value in _project_settings(settings).items() if getattr(project, name) != value}
    if "expert_instruction" in differing and _text(project.expert_instruction) == _text(guidelines_html()):
        del differing["expert_instruction"]  # the server may clean HTML; the words are what counts
    if annotators := differing.pop("maximum_annotations", 0):
        # The server changes only tasks that several people do, if there are any, but all for 1: then there are none.
        for number in (annotators, 1, annotators):
            _update_project(server, project.id, maximum_annotations=number)
    if differing:
        _update_project(server, project.id, **differing)
    if not server.ask(lambda studio: studio.views.list(project=project.id)):
        view: Any = {
            **{"title": "Questions", "type": "list", "target": "tasks"},
            "hiddenColumns": {"explore": [f"tasks:{name}" for name in _HIDDEN], "labeling": []},
            "columnsWidth": {"tasks:data.question": 330, "tasks:data.gold": 190},
        }
        server.ask(lambda studio: studio.views.create(project=project.id, data=view))


def _update_project(server: Server, project: int, **values: Any) -> None:
    server.ask(lambda studio: studio.projects.update(project, **values))


def _text(html: str | None) -> str:
    return re.sub(r"<[^>]+>|\s+|&\w+;", "", html or "")


def edited(server: Server, project: Any) -> str:
    """Return what to say of a labelling page that is not ours, empty where it is."""
    if (project.label_config or "").strip() == label_config().strip():
        return ""
    return (
        f"The labelling page of project {project.id} of {server.url} was edited. Put it back with: quit review push "
        "--repair-config."
    )


def absent_adjudicator(server: Server, review: Review) -> list[str]:
    """Return in a sentence that the person who settles disagreements has no account on the server, if so."""
    name = review.adjudicator
    if review.adjudication != "adjudicator" or not name:
        return []
    if name.lower() in {email.lower() for email in server.accounts().values()}:
        return []
    return [
        f"review.adjudicator is {name}, and {server.url} has no such account: disagreements wait until that person "
        "has one and annotates. Check the address."
    ]


def check_config(server: Server, project: Any, repair: bool, report: PushReport) -> None:
    problem = edited(server, project)
    if problem and not repair:
        raise InputError(f"{problem} Nothing was pushed.")
    if problem:
        _update_project(server, project.id, label_config=label_config())
        report.repaired = True
        report.problems.append("The labelling page was put back.")
