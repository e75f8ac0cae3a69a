"""What a person said: an annotation's result, read as of the version of the page that its annotator saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from quit.annotation.tasks import NONE, TaskData
from quit.stages.labelling.verdicts import FLAGS
from quit.text.answers import answer_key

ANNOTATION_FIELDS = ("annotations", "result", "completed_by", "updated_by", "was_cancelled", "lead_time")
"""What has to be asked for with tasks: the server applies the list to what is inside a task, too."""
Ask = Literal["empty", "both", "gold"]
"""Why an annotator has to be asked.

- ``empty``: nothing was ticked, not even *None of these answers is correct*: no verdict at all;
- ``both``: that was ticked, and so was an answer: no verdict at all;
- ``gold``: a gold answer was not ticked, nor that it is wrong: no verdict on it.
"""


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
    """What an annotation says. ``answers``: those that were seen; ``ask``: why the annotator has to be asked;
    ``blind``: whether the page showed no verdict; ``seen``: hashes of what it showed, question and gold answers, and
    these with the hints."""

    shown: int
    answers: tuple[Verdict, ...]
    missing: tuple[str, ...]
    flags: tuple[str, ...]
    note: str | None
    unknown: tuple[str, ...]
    blind: bool = False
    ask: Ask | None = None
    seen: tuple[str, str] = ("", "")

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
    without_hints, with_hints = data["seen"][str(version)]
    return Reading(
        version,
        answers,
        tuple(dict.fromkeys(missing)),
        tuple(flag for flag in FLAGS if flag in flags),
        "\n".join(note) or None,
        tuple(dict.fromkeys(unknown)),
        version in data["blind"],
        ask,
        seen=(without_hints, with_hints),
    )


def _texts(value: Any) -> list[str]:
    """Return the texts of a control, without characters that no table can hold."""
    texts = [value] if isinstance(value, str) else list(value or [])
    if others := [text for text in texts if not isinstance(text, str)]:
        raise TypeError(f"{others[0]!r} is not text")
    return [text.encode("utf-8", "replace").decode() for text in texts]


def _verdicts(
    data: TaskData, version: int, ticked: set[str], gold_is_wrong: bool
) -> tuple[tuple[Verdict, ...], Ask | None]:
    """Return ``answers`` and ``ask`` of a :class:`Reading`."""
    page_rows = [
        row for row in data["answers"] if row["since"] <= version and (row["until"] is None or version < row["until"])
    ]
    # The page keeps ticks that it cannot show: of an answer that is gone, or of one that a newer prediction ticks.
    ticked = ticked & {NONE, *(row["alias"] for row in page_rows)}
    ask: Ask | None = "both" if {NONE} < ticked else "empty" if not ticked else None
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
