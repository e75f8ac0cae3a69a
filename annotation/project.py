"""Push: the review project on the server has one task a question to review, in the order in which they are best done.

Pushing again changes nothing where nothing changed. Every step looks at what the server has before it acts, so a push
that was killed anywhere is finished by the next one: the project is found by its key, a task by its question.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from markdown_it import MarkdownIt

from quit.annotation.client import Server, person_of
from quit.annotation.reports import PushReport
from quit.annotation.tasks import (
    ANNOTATION_FIELDS,
    SUGGESTIONS,
    has_new_answers,
    is_copy,
    make_task,
    next_version,
    up_to_date,
)
from quit.common.files import writing
from quit.common.ids import draw
from quit.errors import InputError, ServerError, WorkspaceError
from quit.review.controls import Controls, absent_controls, mix_controls
from quit.review.items import ReviewItem, with_blind
from quit.review.store import ReviewStore
from quit.settings import Review, Settings
from quit.text.words import counted

HERE = Path(__file__).parent
STILL_SECONDS = 30.0
"""How long nothing may arrive at a server before what a lost answer was about counts as not carried out."""
_CONNECTIONS = 2  # requests at a time where a change has to be sent task by task
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

    That page has a title of its own and strips every style, list marks included: they are written into the text.
    """
    text = (HERE / "guidelines.md").read_text(encoding="utf-8").partition("\n")[2]
    pieces: list[str] = []
    numbers: list[int | None] = []
    parser = MarkdownIt("commonmark").enable("table")
    for token in parser.parse(text):
        if token.type in ("ordered_list_open", "bullet_list_open"):
            numbers.append(0 if token.type == "ordered_list_open" else None)
        elif token.type in ("ordered_list_close", "bullet_list_close"):
            numbers.pop()
            pieces.append("" if numbers else "<br>")
        elif token.type == "list_item_open":
            if numbers[-1] is not None:
                numbers[-1] += 1
            indent = "&nbsp;&nbsp;&nbsp;&nbsp;" * (len(numbers) - 1)
            pieces.append(f"<p>{indent}{'–' if numbers[-1] is None else f'{numbers[-1]}.'} ")
        elif token.type in ("paragraph_open", "paragraph_close", "list_item_close"):
            opens = token.type == "paragraph_open"
            if not numbers:
                pieces.append("<p>" if opens else "</p><br>")
            elif token.type == "paragraph_close":
                pieces.append("</p>")
        else:
            pieces.append(parser.renderer.render([token], parser.options, {}))
    return "".join(pieces)


@contextmanager
def review_lock(store: ReviewStore, seconds: float):
    """Hold the workspace's reviews: one push or pull at a time. Raises :class:`WorkspaceError` after ``seconds``."""
    with writing(store.folder):
        store.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(store.folder / "lock", timeout=seconds):
            yield
    except Timeout:
        raise WorkspaceError(
            f"Another push or pull has held {store.folder} for more than {seconds:g} s. Try again when it has finished."
        ) from None


def push(
    store: ReviewStore,
    server: Server,
    settings: Settings,
    items: Sequence[ReviewItem],
    controls: Controls | None = None,
    *,
    project: int | None = None,
    new_project: bool = False,
    repair: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> PushReport:
    """Bring the project up to date with ``items`` (the most informative first) and return what was done.

    ``project``: use this one where several have the workspace's key. ``new_project``: leave the known one and make
    another. ``repair``: put back a labelling page that someone edited. Raises :class:`InputError` when the
    project is not usable as it is, and whatever the server's requests raise; what was done by then stays and is not
    done again.
    """
    review = settings.review
    if new_project and project:
        raise InputError(f"Push to project {project} (--project), or make another (--new-project): not both.")
    with review_lock(store, settings.run.lock_seconds):
        report = PushReport(url=server.url)
        if (original := store.original) and not new_project:
            raise InputError(
                f"{store.workspace} is a copy of {original}: a push would change the pages of its project. "
                "Nothing was pushed. Make another project: quit review push --new-project. Or delete that folder, if "
                "this one takes its place."
            )
        facts = _project(store, server, settings, project, new_project, report)
        number = report.project = facts.id
        _check_config(server, facts, repair, report)
        _set_up(server, facts, settings)
        tasks = _tasks_by_question(server, number, report.problems)
        former_ids = set(store.project.get("tasks") or ())
        seed = settings.split.seed
        order = with_blind(mix_controls(items, controls, review, seed), review.blind, seed)
        report.blind = sum(item.blind for item in order)
        question_ids = {item.question_id for item in order}
        new = [item for item in order if item.question_id not in tasks]
        updates = [
            item for item in order if item.question_id in tasks and not up_to_date(item, tasks[item.question_id])
        ]
        report.problems += absent_controls(items, controls)
        report.problems += server.absent_adjudicator()
        for chunk in _chunks(new, review):
            _import(server, number, chunk)
            report.new += len(chunk)
            say(f"{report.new} of {len(new)} new tasks")
        report.controls = len(question_ids & controls.questions) if controls else 0
        _set_overlaps(server, number, overlaps(question_ids, controls, review, seed))
        _change(server, number, {tasks[item.question_id].id: item for item in updates}, review)
        if new or updates:
            _check_tasks(server, number, [*new, *updates])
        report.changed = len(updates)
        report.unchanged = len(order) - len(new) - len(updates)
        report.remade = sum(item.question_id in former_ids for item in new)
        report.gone = len(tasks.keys() - question_ids)
        task_ids = sorted(question_ids | tasks.keys())
        store.set_project({"key": store.project["key"], "url": server.url, "id": number, "tasks": task_ids})
    done_ids = [
        task.id
        for item in updates
        if (task := tasks[item.question_id]).total_annotations and has_new_answers(item, task)
    ]
    report.problems += _about_tasks(report, done_ids)
    return report


def _about_tasks(report: PushReport, done_ids: Sequence[int]) -> list[str]:
    """Return what to know about finished tasks with new answers (``done_ids``), those made again and those left."""
    lines = []
    if done_ids:
        numbers = ", ".join([*map(str, done_ids[:20]), *(["..."] if done_ids[20:] else [])])
        lines.append(
            f"New answers in {counted(len(done_ids), 'finished task')}, which nobody has judged: {numbers}. Ask the "
            f"annotators to open each of them ({report.url}/projects/{report.project}/data?task={done_ids[0]}, ...), "
            "tick what is correct and press Update."
        )
    if report.remade:
        lines.append(
            f"{report.remade} tasks had been deleted on the server and were created again; reviews pulled before "
            "still count."
        )
    if report.gone:
        lines.append(
            f"{report.gone} tasks are about questions that are no longer reviewed (left the splits, or the collection "
            "changed): they stay on the server, and their reviews change nothing."
        )
    return lines


def _chunks(values: Sequence[Any], review: Review) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), review.page_tasks):
        yield values[start : start + review.page_tasks]


def _tasks_by_question(server: Server, project: int, problems: list[str]) -> dict[str, Any]:
    """Return question id -> its task on the server. A double on which nobody has worked is deleted; others, and tasks
    that are not ours, become problems."""
    tasks: dict[str, Any] = {}
    fields = ["id", "meta", "data", "total_annotations", "cancelled_annotations", "draft_exists"]
    for task in server.tasks(project, fields):
        key = task_key(task)
        if key is None:
            problems.append(f"Task {task.id} was not made by quit: it is left alone.")
        elif key in tasks:
            double, tasks[key] = sorted((tasks[key], task), key=lambda each: (_has_work(each), -each.id))
            if _has_work(double):
                problems.append(f"Task {double.id} doubles task {tasks[key].id} ({key}): delete one of them.")
            else:
                _delete_task(server, double.id)
        else:
            tasks[key] = task
    return tasks


def _delete_task(server: Server, number: int) -> None:
    server.ask(lambda studio: studio.tasks.delete(str(number)))


def _has_work(task: Any) -> bool:
    return bool(task.total_annotations or task.cancelled_annotations or task.draft_exists)


def _check_tasks(server: Server, project: int, items: Sequence[ReviewItem]) -> None:
    """Raise :class:`ServerError` unless the server shows these items as they are now."""
    tasks = _tasks_by_question(server, project, [])
    names = [item.question_id for item in items]
    if lost := [name for name, item in zip(names, items) if name not in tasks or not up_to_date(item, tasks[name])]:
        raise ServerError(
            f"{server.url} accepted tasks that it does not show: {len(lost)} of {len(items)} ({', '.join(lost[:5])}, "
            "...). Nothing is lost: run the same command again; if it stays so, ask who runs that server."
        )


def _settled(look: Callable[[], Any]) -> Any:
    """Return what ``look`` gives once that has stood still: what a lost answer was about may be carried out late."""
    value, since = look(), time.monotonic()
    while time.monotonic() - since < STILL_SECONDS:
        time.sleep(STILL_SECONDS / 20)
        if (now := look()) != value:
            value, since = now, time.monotonic()
    return value


def task_key(task: Any) -> str | None:
    """Return the question that a task on the server is about, None where quit did not make the task."""
    return (task.meta or {}).get("key")


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


def _project(
    store: ReviewStore, server: Server, settings: Settings, project: int | None, new: bool, report: PushReport
) -> Any:
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
        if not _settled(lambda: [candidate.id for candidate in find_projects(server, key)]):
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


def _set_up(server: Server, project: Any, settings: Settings) -> None:
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


def _check_config(server: Server, project: Any, repair: bool, report: PushReport) -> None:
    problem = edited(server, project)
    if problem and not repair:
        raise InputError(f"{problem} Nothing was pushed.")
    if problem:
        _update_project(server, project.id, label_config=label_config())
        report.problems.append("The labelling page was put back.")


def _import(server: Server, project: int, chunk: Sequence[ReviewItem]) -> None:
    """Import tasks in one request. If its answer is lost, wait until no more tasks arrive and send the rest, once."""
    for is_last in (False, True):
        try:
            return _import_once(server, project, chunk)
        except ServerError:
            _settled(lambda: server.ask(lambda studio: studio.projects.get(project)).task_number)
            keys = {task_key(task) for task in server.tasks(project, ["id", "meta"])}
            chunk = [item for item in chunk if item.question_id not in keys]
            if not chunk:
                return
            if is_last:
                raise


def _import_once(server: Server, project: int, chunk: Sequence[ReviewItem]) -> None:
    tasks: Any = [make_task(item) for item in chunk]
    server.ask(lambda studio: studio.projects.import_tasks(project, request=tasks), again=False)


def _change(server: Server, project: int, items: Mapping[int, ReviewItem], review: Review) -> None:
    """Give changed tasks (by number) a new version, the digest last: a killed push begins them again.

    What is done until then is read as of the old page, whose data have the old version.
    """
    if len(items) * 10 < review.page_tasks:
        tasks = _each(items, lambda number: server.ask(lambda studio: studio.tasks.get(str(number))))
    else:
        tasks = [
            task for task in server.tasks(project, ["id", "meta", "data", "predictions", "result"]) if task.id in items
        ]
    versions = {task.id: next_version(items[task.id], task) for task in tasks}
    # The page ticks what the newest prediction says; one that a killed push has left is not sent again.
    predictions: Any = [
        {"task": task.id, **versions[task.id]["predictions"][0]}
        for task in tasks
        if versions[task.id]["predictions"][0]["result"] != _newest_result(task.predictions)
    ]
    for chunk in _chunks(predictions, review):
        _import_predictions(server, project, chunk)
    # Earlier predictions are a task's history, but the page of a blind task must not offer them.
    old_predictions = [
        prediction.id
        for task in tasks
        if items[task.id].blind
        for prediction in task.predictions
        if prediction.result != versions[task.id]["predictions"][0]["result"]
    ]
    _each(old_predictions, lambda number: server.ask(lambda studio: studio.predictions.delete(number)))
    values = {number: {name: versions[number][name] for name in ("data", "meta")} for number in versions}
    _each(values, lambda number: _update(server, number, **values[number]))


def _newest_result(predictions: Sequence[Any]) -> Any:
    return max(predictions, key=lambda prediction: prediction.id).result if predictions else None


def _import_predictions(server: Server, project: int, predictions: Any) -> None:
    server.ask(lambda studio: studio.projects.import_predictions(project, request=predictions), again=False)


def overlaps(question_ids: Iterable[str], controls: Controls | None, review: Review, seed: str) -> dict[str, int]:
    """Return question id -> how many people do it: everyone a control question; of the others, ``review.overlap`` those
    whose draw, a keyed hash of the id, is below ``review.overlap_share``, so that a new question changes no other's
    number; and one person the rest."""
    of_question = {
        question: review.overlap if draw(f"overlap/{question}", seed) < review.overlap_share else 1
        for question in question_ids
    }
    return of_question | (dict.fromkeys(controls.questions, controls.annotators) if controls else {})


def _set_overlaps(server: Server, project: int, numbers: Mapping[str, int]) -> None:
    """Set how many people do each task (``numbers``, by question), and whether it is finished: the server does not
    open it again by itself.

    Its queue counts annotations, not people: what somebody did twice, or nobody submitted, is added.
    """
    differing = {}
    for task in server.tasks(project, ["id", "meta", "overlap", "is_labeled", *ANNOTATION_FIELDS]):
        if number := numbers.get(task_key(task) or ""):
            annotations = [item for item in task.annotations or () if not item.get("was_cancelled")]
            people = {person_of(item) or -item["id"] for item in annotations if not is_copy(item)}
            values = {"overlap": number + len(annotations) - len(people), "is_labeled": len(people) >= number}
            if values != {name: getattr(task, name) for name in values}:
                differing[task.id] = values
    _each(differing, lambda number: _update(server, number, **differing[number]))


def _update(server: Server, task: int, **values: Any) -> None:
    server.ask(lambda studio: studio.tasks.update(str(task), **values))


def _each(numbers: Iterable[int], call: Callable[[int], Any]) -> list[Any]:
    """Return what ``call`` gives for each task: the server changes tasks one by one only."""
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        return list(pool.map(call, numbers))
