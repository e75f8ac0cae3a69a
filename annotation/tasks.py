"""From a question to review to a Label Studio task, in versions.

A task's version rises whenever what its annotators see changes. Each answer carries the version it came with
(``since``) and, once it is gone or gold no more, the one that lacked it (``until``), so an annotation made on an older
version is read as what its annotator saw. The version travels with the result in a hidden field that the page fills in
from the same data: when a page of a newer version is updated, that version is one more line of the field.

The data of a blind task hold no verdict, nor those of its earlier versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, TypedDict

from quit.common.ids import content_hash
from quit.review.items import ReviewAnswer, ReviewItem
from quit.stages.labelling.verdicts import content_of
from quit.text.words import counted

SUGGESTIONS = "quit"
"""Model version of all predictions: the project's must equal it, or nothing is ticked beforehand. Of several
predictions of this version the page takes the newest; the older ones stay as a task's history."""

_NONE_TEXT = "None of these answers is correct"
NONE = "none"
"""Alias of the first choice of a page: that none of its answers is correct."""
LAYOUT = 2
"""Version of how tasks look; part of their digest."""


class PageAnswer(TypedDict):
    """An answer that pages show from version ``since`` until before ``until``; ``alias``: its name in results."""

    alias: str
    key: str
    answer: str
    gold: bool
    since: int
    until: int | None


class History(TypedDict):
    """What a task holds of its versions; ``version``: the newest, as text. By version: ``ticked``, aliases, and
    ``seen``, two hashes of what the page showed; ``blind``: versions."""

    version: str
    answers: list[PageAnswer]
    ticked: dict[str, list[str]]
    seen: dict[str, list[str]]
    blind: list[int]


class TaskData(History):
    """What a task holds, as the page shows it; ``key``: the question's id."""

    key: str
    question: str
    gold: str
    hints_html: str
    candidates: list[dict[str, str]]


class Task(TypedDict):
    """A task as it is sent to the server."""

    data: TaskData
    meta: dict[str, Any]
    predictions: list[dict[str, Any]]


_NO_HISTORY: History = {"version": "0", "answers": [], "ticked": {}, "seen": {}, "blind": []}
"""What a task's data hold of its versions, before the first."""


def alias(question_id: str, answer_key: str) -> str:
    """Return the name under which an answer travels: the same in every version of its task."""
    return "a" + content_hash(question_id, answer_key, size=5)


def digest(item: ReviewItem) -> str:
    """Return a hash of everything an annotator sees of a question."""
    answers = [
        [answer.key, answer.forms, answer.readers, answer.verdict, answer.gold, _html(answer, item.blind)]
        for answer in item.answers
    ]
    return content_hash("task", LAYOUT, item.question, item.gold_answers, item.hints, answers, item.blind, size=8)


def up_to_date(item: ReviewItem, task: Any) -> bool:
    """Whether a task on the server shows the item as it is now; not where someone edited its data."""
    page: Mapping[str, Any] = make_task(item)["data"]
    return (
        task.meta.get("digest") == digest(item)
        and intact(task)
        and all(task.data.get(name) == page[name] for name in page.keys() - _NO_HISTORY.keys())
    )


def has_new_answers(item: ReviewItem, task: Any) -> bool:
    """Whether the item has an answer that no version of its task has shown; False where the task's data were edited."""
    names = {alias(item.question_id, answer.key) for answer in item.answers}
    return intact(task) and not names <= {row["alias"] for row in task.data["answers"]}


def next_version(item: ReviewItem, task: Any) -> Task:
    """Return what :func:`make_task` does for the next version of a task on the server.

    Where someone edited what its data hold of earlier versions, these are lost. A task that has one version only, of
    this item, gets it back as it was.
    """
    former, version = task.data, task.meta.get("version", 1)
    if not intact(task):
        same = version == 1 and task.meta.get("digest") == digest(item)
        former = {**_NO_HISTORY, "version": "0" if same else str(version)}
    return make_task(item, former)


def intact(task: Any) -> bool:
    """Whether nobody has edited what a task's data say of its versions: what annotations are read by."""
    return task.meta.get("history") == _history(task.data)


def _history(data: Mapping[str, Any]) -> str:
    return content_hash([data.get(name) for name in _NO_HISTORY], size=8)


def make_task(item: ReviewItem, former: History | None = None) -> Task:
    """Return the next version of a task; ``former``: the data of its last one, if it had one.

    Everything that goes into HTML is escaped: names come from models and sources.
    """
    former = former or _NO_HISTORY
    version = int(former["version"]) + 1
    past = former["answers"]
    current = {(row["alias"], row["gold"]): row for row in past if row["until"] is None}
    rows: list[PageAnswer] = []
    candidates = [{"value": f"({_NONE_TEXT})", "alias": NONE, "html": f"<i>{_NONE_TEXT}</i>", "hint": _NONE_TEXT}]
    for answer in item.answers:
        name = alias(item.question_id, answer.key)
        row = current.pop((name, answer.gold), None)
        since = row["since"] if row else version
        rows.append({
            "alias": name, "key": answer.key, "answer": answer.forms[0], "gold": answer.gold, "since": since,
            "until": None,
        })  # fmt: skip
        forms, hint = " / ".join(answer.forms), ", ".join(answer.readers) or "expected"
        # The page searches the value: every surface form.
        candidates.append({"value": forms, "alias": name, "html": _html(answer, item.blind), "hint": hint})
    # What was gone before stays as it is: an answer that comes back has a row for each time that it was shown.
    rows += [row for row in past if row["until"] is not None]
    rows += [{**row, "until": version} for row in current.values()]
    ticks = {} if item.blind else former["ticked"]
    data: TaskData = {
        "key": item.question_id,
        "version": str(version),  # a text field takes texts only
        "question": item.question,
        "gold": "; ".join(item.gold_answers),
        "hints_html": f"<ol>{''.join(f'<li>{escape(hint)}</li>' for hint in item.hints)}</ol>",
        "candidates": candidates,
        "answers": rows,
        "ticked": {**ticks, str(version): _ticks(item)},
        "seen": {**former["seen"], str(version): _versions(item)},
        "blind": [*former["blind"], *([version] if item.blind else ())],
    }
    meta = {"key": item.question_id, "version": version, "digest": digest(item), "history": _history(data)}
    return {"data": data, "meta": meta, "predictions": [_prediction(item)]}


def _prediction(item: ReviewItem) -> dict[str, Any]:
    ticks = _ticks(item)
    choices = {"from_name": "correct", "to_name": "question", "type": "choices", "value": {"choices": ticks}}
    return {"model_version": SUGGESTIONS, "result": [choices] if ticks else []}


def _versions(item: ReviewItem) -> list[str]:
    return [content_of(item.question, item.gold_answers, hints) for hints in (None, item.hints)]


def _ticks(item: ReviewItem) -> list[str]:
    return [alias(item.question_id, answer.key) for answer in item.answers if answer.verdict]


def _html(answer: ReviewAnswer, blind: bool) -> str:
    first = escape(answer.forms[0])
    parts = [f'<b class="correct">{first}</b>' if answer.gold else f"<b>{first}</b>"]
    if len(answer.forms) > 1:
        parts.append(f"<small>also {escape('; '.join(answer.forms[1:]))}</small>")
    facts = ["expected"] if answer.gold else []
    facts.append(f"given {counted(answer.passages, 'time')}")
    if not (answer.gold or blind):
        facts.append(_opinion("judge", answer.verdict))
        if answer.second is not None or answer.second_probability is not None:
            facts.append(_opinion("2nd judge", answer.second))
    parts.append(f"<small>{' · '.join(facts)}</small>")
    return " ".join(parts)


def _opinion(judge: str, verdict: bool | None) -> str:
    name, word = {True: ("correct", "correct"), False: ("wrong", "wrong"), None: ("unread", "unreadable")}[verdict]
    return f'{judge}: <span class="{name}">{word}</span>'
