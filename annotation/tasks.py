"""From a question to review to a Label Studio task, and back from an annotation's result to what a person said.

A task's version rises whenever what its annotators see changes. Each answer carries the version it came with
(``since``) and, once it is gone or gold no more, the one that lacked it (``until``), so an annotation made on an older
version is read as what its annotator saw. The version travels with the result in a hidden field that the page fills in
from the same data: when a page of a newer version is updated, that version is one more line of the field.

The data of a blind task hold no verdict, nor those of its earlier versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from quit.common.ids import content_hash
from quit.review.items import ReviewAnswer, ReviewItem
from quit.stages.labelling.verdicts import FLAGS, content_of
from quit.text.answers import answer_key
from quit.text.words import counted

SUGGESTIONS = "quit"
"""Model version of all predictions: the project's must equal it, or nothing is ticked beforehand. Of several
predictions of this version the page takes the newest; the older ones stay as a task's history."""

ANNOTATION_FIELDS = ("annotations", "result", "completed_by", "updated_by", "was_cancelled", "lead_time")
"""What has to be asked for with tasks: the server applies the list to what is inside a task, too."""
_NONE_TEXT = "None of these answers is correct"
NONE = "none"
"""Alias of the first choice of a page: that none of its answers is correct."""
LAYOUT = 2
"""Version of how tasks look; part of their digest."""
TaskData = Mapping[str, Any]
"""What a task holds: ``key`` (the question's id), ``version`` (a text), ``question``, ``gold``, ``hints_html`` and
``candidates``, as the page shows them; and of all versions ``answers`` (alias, key, answer, gold, since, until), and by
version ``ticked`` (aliases), ``seen`` (two hashes) and ``blind`` (a list of versions)."""
_NO_HISTORY: TaskData = {"version": 0, "answers": [], "ticked": {}, "seen": {}, "blind": []}
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
    page = make_task(item)["data"]
    return (
        task.meta.get("digest") == digest(item)
        and intact(task)
        and all(task.data.get(name) == page[name] for name in page.keys() - _NO_HISTORY.keys())
    )


def has_new_answers(item: ReviewItem, task: Any) -> bool:
    """Whether the item has an answer that no version of its task has shown; False where the task's data were edited."""
    names = {alias(item.question_id, answer.key) for answer in item.answers}
    return intact(task) and not names <= {row["alias"] for row in task.data["answers"]}


def next_version(item: ReviewItem, task: Any) -> dict[str, Any]:
    """Return what :func:`make_task` does for the next version of a task on the server.

    Where someone edited what its data hold of earlier versions, these are lost. A task that has one version only, of
    this item, gets it back as it was.
    """
    former, version = task.data, task.meta.get("version", 1)
    if not intact(task):
        same = version == 1 and task.meta.get("digest") == digest(item)
        former = {**_NO_HISTORY, "version": 0 if same else version}
    return make_task(item, former)


def intact(task: Any) -> bool:
    """Whether nobody has edited what a task's data say of its versions: what annotations are read by."""
    return task.meta.get("history") == _history(task.data)


def _history(data: TaskData) -> str:
    return content_hash([data.get(name) for name in _NO_HISTORY], size=8)


def make_task(item: ReviewItem, former: TaskData | None = None) -> dict[str, Any]:
    """Return ``data``, ``meta`` and ``predictions`` of a task; ``former`` is the data of its last version, if it had
    one.

    Everything that goes into HTML is escaped: names come from models and sources.
    """
    former = former or _NO_HISTORY
    version = int(former["version"]) + 1
    past = former["answers"]
    current = {(row["alias"], row["gold"]): row for row in past if row["until"] is None}
    rows: list[dict[str, Any]] = []
    candidates = [{"value": f"({_NONE_TEXT})", "alias": NONE, "html": f"<i>{_NONE_TEXT}</i>", "hint": _NONE_TEXT}]
    for answer in item.answers:
        name = alias(item.question_id, answer.key)
        row = current.pop((name, answer.gold), None)
        texts = {"alias": name, "key": answer.key, "answer": answer.forms[0], "gold": answer.gold}
        rows.append({**texts, "since": row["since"] if row else version, "until": None})
        forms, hint = " / ".join(answer.forms), ", ".join(answer.readers) or "expected"
        # The page searches the value: every surface form.
        candidates.append({"value": forms, "alias": name, "html": _html(answer, item.blind), "hint": hint})
    # What was gone before stays as it is: an answer that comes back has a row for each time that it was shown.
    old_rows = [row for row in past if row["until"] is not None] + [
        {**row, "until": version} for row in current.values()
    ]
    ticks = {} if item.blind else former["ticked"]
    data = {
        "key": item.question_id,
        "version": str(version),  # a text field takes texts only
        "question": item.question,
        "gold": "; ".join(item.gold_answers),
        "hints_html": f"<ol>{''.join(f'<li>{escape(hint)}</li>' for hint in item.hints)}</ol>",
        "candidates": candidates,
        "answers": rows + old_rows,
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


def is_copy(annotation: Mapping[str, Any]) -> bool:
    """Whether nobody submitted an annotation (fields: ``ANNOTATION_FIELDS``) on a page: it came by a button or an
    import, of which the server names nobody who saved it, or by a program that gives neither the page's version nor a
    time."""
    annotator = annotation.get("completed_by")
    if annotator is not None and annotation.get("updated_by", annotator) is None:
        return True
    names_page = any(entry.get("from_name") == "shown" for entry in annotation["result"])
    return annotation.get("lead_time") is None and not names_page


class Verdict(NamedTuple):
    """What an annotation says of an answer, as columns of ``reviews``. ``correct``: None where the annotator has to be
    asked; ``suggested``: whether it was ticked beforehand."""

    answer_key: str
    answer: str
    correct: bool | None
    suggested: bool | None


@dataclass(frozen=True)
class Reading:
    """What an annotation says. ``answers``: those that were seen. ``ask``: why the annotator has to be asked:

    - ``empty``: nothing was ticked, not even *None of these answers is correct*: no verdict at all;
    - ``both``: that was ticked, and so was an answer: no verdict at all;
    - ``gold``: a gold answer was not ticked, nor that it is wrong: no verdict on it.

    ``blind``: whether the page showed no verdict."""

    shown: int
    answers: tuple[Verdict, ...]
    missing: tuple[str, ...]
    flags: tuple[str, ...]
    note: str | None
    unknown: tuple[str, ...]
    blind: bool = False
    ask: str | None = None
    seen: tuple[str, str] = ("", "")
    """What the page showed: hashes of question and gold answers, and of these with the hints."""

    @property
    def empty(self) -> bool:
        """Whether the annotator said nothing at all."""
        return self.ask == "empty" and not self.missing and not self.flags


def read_result(result: list[dict[str, Any]], data: TaskData, former: int | None = None) -> Reading:
    """Return what an annotation's ``result`` says about the task with this ``data``.

    ``former``: the version of the page as which it was read before. What another program wrote names no version: it is
    read as that one, or as the only one there is. What does not fit (a choice the task never had, a control that the
    configuration never had) is kept under ``unknown``, never dropped. Raises ``KeyError`` or ``TypeError`` for task
    data that are not ours, and ``ValueError`` where the version is not known.
    """
    ticks: set[str] = set()
    missing: list[str] = []
    flags: list[str] = []
    unknown: list[str] = []
    note: list[str] = []
    newest = int(data["version"])
    version = former or (newest if newest == 1 else None)
    by_alias = {row["alias"]: row for row in data["answers"]}
    for entry in result:
        name, value = entry.get("from_name"), entry.get("value") or {}
        texts, choices = _texts(value.get("text")), _texts(value.get("choices"))
        if name == "correct":
            for choice in choices:
                (ticks.add if choice in by_alias or choice == NONE else unknown.append)(choice)
        elif name == "flags":
            for choice in choices:
                (flags if choice in FLAGS else unknown).append(choice)
        elif name == "missing":
            missing += [text.strip() for text in texts if answer_key(text)]
        elif name == "note":
            note += [text.strip() for text in texts if text.strip()]
        elif name == "shown":
            if texts and str(texts[-1]).isdecimal():
                version = min(newest, int(texts[-1]))
        else:
            unknown.append(f"{name}: {value}")
    if version is None:
        raise ValueError(f"it does not say which of the {newest} versions of its page was seen")
    answers, ask = _verdicts(data, version, ticks, gold_is_wrong="gold_wrong" in flags)
    return Reading(
        version,
        answers,
        tuple(dict.fromkeys(missing)),
        tuple(flag for flag in FLAGS if flag in flags),
        "\n".join(note) or None,
        tuple(dict.fromkeys(unknown)),
        version in data["blind"],
        ask,
        tuple(data["seen"][str(version)]),
    )


def _texts(value: Any) -> list[str]:
    """Return the texts of a control, without characters that no table can hold."""
    texts = [value] if isinstance(value, str) else list(value or [])
    if others := [text for text in texts if not isinstance(text, str)]:
        raise TypeError(f"{others[0]!r} is not text")
    return [text.encode("utf-8", "replace").decode() for text in texts]


def _verdicts(
    data: TaskData, version: int, ticked: set[str], gold_is_wrong: bool
) -> tuple[tuple[Verdict, ...], str | None]:
    """Return ``answers`` and ``ask`` of a :class:`Reading`."""
    page_rows = [
        row for row in data["answers"] if row["since"] <= version and (row["until"] is None or version < row["until"])
    ]
    # The page keeps ticks that it cannot show: of an answer that is gone, or of one that a newer prediction ticks.
    ticked = ticked & {NONE, *(row["alias"] for row in page_rows)}
    ask = "both" if {NONE} < ticked else None
    if not ticked:
        ask = "empty"
    asks_gold = ask is None and not gold_is_wrong
    suggestions = data["ticked"].get(str(version))
    answers: dict[str, Verdict] = {}
    for row in page_rows:
        name = row["alias"]
        verdict: bool | None = name in ticked
        if asks_gold and not verdict and row["gold"]:
            ask, verdict = "gold", None
        elif ask in ("empty", "both"):
            verdict = None
        answers[name] = Verdict(
            row["key"], row["answer"], verdict, None if suggestions is None else name in suggestions
        )
    return tuple(answers.values()), ask
