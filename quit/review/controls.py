"""Control questions: the owner knows their verdicts, and annotators cannot tell them from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from quit.common.ids import draw
from quit.common.rows import grouped, tuples
from quit.errors import InputError
from quit.review.items import ReviewItem
from quit.settings import Review
from quit.sources.lines import keyed_lines
from quit.text.answers import answer_key
from quit.text.words import first_names

_EXPECTED = '{"question_id": "...", "correct": [...], "incorrect": [...]}'


@dataclass(frozen=True)
class Controls:
    """``known``: question id -> answer's key -> whether it is correct. ``annotators``: people per question."""

    known: Mapping[str, Mapping[str, bool]]
    annotators: int = 1000

    @property
    def questions(self) -> frozenset[str]:
        return frozenset(self.known)


class ControlScore(TypedDict):
    """How many known verdicts an annotator met, and how many of these they got right."""

    annotator: str
    asked: int
    right: int
    accuracy: float


def load_controls(path: str | Path) -> Controls:
    """Read a JSONL file of ``{question_id, correct: [...], incorrect: [...]}``.

    Raises :class:`InputError` that names the line for anything else, for a second line about a question, and for an
    answer that is said to be both.
    """
    verdicts: dict[str, dict[str, bool]] = {}
    for where, row in keyed_lines(Path(path), _EXPECTED, ("question_id", "correct", "incorrect")):
        right, wrong = (_answers(row, name, where) for name in ("correct", "incorrect"))
        if both := right & wrong:
            raise InputError(f"{where}: {min(both)!r} is said to be both correct and incorrect.")
        if not right | wrong:
            raise InputError(f"{where}: neither a correct nor an incorrect answer is given.")
        verdicts[row["question_id"]] = dict.fromkeys(right, True) | dict.fromkeys(wrong, False)
    return Controls(verdicts)


def controls_of(settings: Review) -> Controls | None:
    """Return the control questions that the settings name, or None."""
    return load_controls(settings.controls) if settings.controls else None


def _answers(row: Mapping[str, Any], name: str, where: str) -> set[str]:
    texts = row.get(name, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{where}: {name!r} must be a list of texts, found {str(texts)[:40]!r}.")
    keys = {*map(answer_key, texts)}
    if "" in keys:
        raise InputError(f"{where}: {name!r} has a blank answer.")
    return keys


def mix_controls(
    items: Sequence[ReviewItem], controls: Controls | None, settings: Review, seed: str
) -> list[ReviewItem]:
    """Return the queue with control questions spread evenly through it, at most ``control_share`` of all.

    Which ones follows from a keyed hash, so pushing again takes the same. Control questions that are not to be reviewed
    anyway and are not needed are left out.
    """
    if controls is None:
        return list(items)
    candidates = [item for item in items if item.question_id in controls.questions]
    room = round((len(items) - len(candidates)) * settings.control_share / (1 - settings.control_share))
    sample = sorted(candidates, key=lambda item: draw(f"control/{item.question_id}", seed))[:room]
    sample_ids = {item.question_id for item in sample}
    others = (item for item in items if item.audited or item.split in settings.splits)
    queue = [item for item in others if item.question_id not in sample_ids]
    step = (len(queue) + len(sample)) / max(1, len(sample))
    for position, item in enumerate(sample):
        queue.insert(round((position + 0.5) * step), item)
    return queue


def absent_controls(items: Sequence[ReviewItem], controls: Controls | None) -> list[str]:
    """Return in a sentence which control questions are not among the ``items``, if any."""
    absent = sorted(controls.questions - {item.question_id for item in items}) if controls else []
    if not absent:
        return []
    return [f"Control questions that are no labelled questions here are left out: {first_names(absent)}."]


def control_scores(live: pa.Table, controls: Controls | None) -> list[ControlScore]:
    """Return for each annotator how many known verdicts they met and how many they got right."""
    known = controls.known if controls else {}
    answers = live.filter(pc.equal(live.column("kind"), "answer"))
    hits = grouped(
        (annotator, truth is correct)
        for annotator, name, key, correct in tuples(answers, "annotator", "question_id", "answer_key", "correct")
        if (truth := known.get(name, {}).get(key)) is not None and correct is not None
    )
    return [
        {"annotator": annotator, "asked": len(each), "right": sum(each), "accuracy": sum(each) / len(each)}
        for annotator, each in sorted(hits.items())
    ]
