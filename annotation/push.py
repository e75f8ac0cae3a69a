"""Push: the review project on the server has one task per question to review, in the order in which they are best done.

Pushing again changes nothing where nothing changed. Every step looks at what the server has before it acts, so a push
that was killed anywhere is finished by the next one: the project is found by its key, a task by its question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from filelock import FileLock, Timeout

from quit.annotation.client import Server, person_of
from quit.annotation.project import absent_adjudicator, check_config, open_project, set_up, settled
from quit.annotation.readings import ANNOTATION_FIELDS, is_copy
from quit.annotation.reports import PushReport
from quit.annotation.tasks import has_new_answers, make_task, next_version, up_to_date
from quit.common.files import writing
from quit.common.ids import draw
from quit.errors import InputError, ServerError, WorkspaceError
from quit.review.controls import Controls, absent_controls, mix_controls
from quit.review.items import ReviewItem, with_blind
from quit.review.store import ReviewStore
from quit.settings import Review, Settings
from quit.text.words import counted, first_names

_CONNECTIONS = 2  # requests at a time where a change has to be sent task by task


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
    if new_project and project:
        raise InputError(f"Push to project {project} (--project), or make another (--new-project): not both.")
    with review_lock(store, settings.run.lock_seconds):
        if (original := store.original) and not new_project:
            raise InputError(
                f"{store.workspace} is a copy of {original}: a push would change the pages of its project. "
                "Nothing was pushed. Make another project: quit review push --new-project. Or delete that folder, if "
                "this one takes its place."
            )
        report = PushReport(url=server.url)
        facts = open_project(store, server, settings, project, new_project, report)
        check_config(server, facts, repair, report)
        set_up(server, facts, settings)
        report.project, report.invitation = facts.id, server.invitation(facts.id)
        _push_items(store, server, settings, items, controls, report, say)
    return report


def _push_items(
    store: ReviewStore,
    server: Server,
    settings: Settings,
    items: Sequence[ReviewItem],
    controls: Controls | None,
    report: PushReport,
    say: Callable[[str], None],
) -> None:
    """Bring the tasks of the project up to date; ``report`` says what was done."""
    number, review = report.project, settings.review
    tasks = _tasks_by_question(server, number, report.problems)
    former_ids = set(store.project.get("tasks") or ())
    seed = settings.split.seed
    order = with_blind(mix_controls(items, controls, review, seed), review.blind, seed)
    report.blind = sum(item.blind for item in order)
    question_ids = {item.question_id for item in order}
    new = [item for item in order if item.question_id not in tasks]
    tasked = [(item, tasks[item.question_id]) for item in order if item.question_id in tasks]
    updates = [(item, task) for item, task in tasked if not up_to_date(item, task)]
    report.problems += absent_controls(items, controls)
    report.problems += absent_adjudicator(server, review)
    for chunk in _chunks(new, review):
        _import(server, number, chunk)
        report.new += len(chunk)
        say(f"{report.new} of {len(new)} new tasks")
    report.controls = len(question_ids & controls.questions) if controls else 0
    _set_overlaps(server, number, overlaps(question_ids, controls, review, seed))
    _change(server, number, {task.id: item for item, task in updates}, review)
    if new or updates:
        _check_tasks(server, number, [*new, *(item for item, _ in updates)])
    report.changed = len(updates)
    report.unchanged = len(order) - len(new) - len(updates)
    report.remade = sum(item.question_id in former_ids for item in new)
    report.gone = len(tasks.keys() - question_ids)
    task_ids = sorted(question_ids | tasks.keys())
    store.set_project({"key": store.project["key"], "url": server.url, "id": number, "tasks": task_ids})
    done_ids = [task.id for item, task in updates if task.total_annotations and has_new_answers(item, task)]
    report.problems += _about_tasks(report, done_ids)


def _about_tasks(report: PushReport, done_ids: Sequence[int]) -> list[str]:
    """Return what to know about finished tasks with new answers (``done_ids``), those made again and those left."""
    lines = []
    if done_ids:
        numbers = first_names([*map(str, done_ids)], 20)
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


def task_key(task: Any) -> str | None:
    """Return the question that a task on the server is about, None where quit did not make the task."""
    return (task.meta or {}).get("key")


def _import(server: Server, project: int, chunk: Sequence[ReviewItem]) -> None:
    """Import tasks in one request. If its answer is lost, wait until no more tasks arrive and send the rest, once."""
    for is_last in (False, True):
        try:
            return _import_once(server, project, chunk)
        except ServerError:
            settled(lambda: server.ask(lambda studio: studio.projects.get(project)).task_number)
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
