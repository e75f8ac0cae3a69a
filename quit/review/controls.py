"""Control questions: the owner knows their verdicts, and annotators cannot tell them from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from quit.common.ids import draw
from quit.common.json_lines import json_lines
from quit.errors import InputError
from quit.review.items import ReviewItem
from quit.settings import Review
from quit.text.normalize import normalize_answer

_EXPECTED = '{"question_id": "...", "correct": [...], "incorrect": [...]}'


@dataclass(frozen=True)
class Controls:
    """``known``: question id -> normalised answer -> whether it is correct. ``annotators``: people per question."""

    known: Mapping[str, Mapping[str, bool]]
    annotators: int = 1000

    @property
    def questions(self) -> frozenset[str]:
        return frozenset(self.known)


def load_controls(path: str | Path) -> Controls:
    """Read a JSONL file of ``{question_id, correct: [...], incorrect: [...]}``.

    Raises :class:`InputError` that names the line for anything else, and for an answer that is said to be both.
    """
    known: dict[str, dict[str, bool]] = {}
    for number, row in json_lines(Path(path), "the control questions", _EXPECTED):
        try:
            identity = row["question_id"]
            right = {normalize_answer(text) for text in row.get("correct", [])}
            wrong = {normalize_answer(text) for text in row.get("incorrect", [])}
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path}, line {number}: expected {_EXPECTED} ({error}).") from error
        if both := right & wrong:
            raise InputError(f"{path}, line {number}: {min(both)!r} is said to be both correct and incorrect.")
        if not right | wrong:
            raise InputError(f"{path}, line {number}: neither a correct nor an incorrect answer is given.")
        known[str(identity)] = dict.fromkeys(right, True) | dict.fromkeys(wrong, False)
    if not known:
        raise InputError(f"The control questions {path} hold no line.")
    return Controls(known)


def mixed(items: Sequence[ReviewItem], controls: Controls | None, settings: Review, seed: str) -> list[ReviewItem]:
    """Return the queue with control questions spread evenly through it, at most ``control_share`` of all.

    Which ones follows from a keyed hash, so pushing again takes the same. Control questions that are not to be reviewed
    anyway and are not needed are left out.
    """
    if controls is None:
        return list(items)
    candidates = [item for item in items if item.question_id in controls.questions]
    others = [item for item in items if item.question_id not in controls.questions]
    room = round(len(others) * settings.control_share / (1 - settings.control_share))
    chosen = sorted(candidates, key=lambda item: draw(f"control/{item.question_id}", seed))[:room]
    taken = {item.question_id for item in chosen}
    queue = [item for item in items if item.question_id not in taken and item.split in settings.splits]
    step = (len(queue) + len(chosen)) / max(1, len(chosen))
    for position, item in enumerate(chosen):
        queue.insert(round((position + 0.5) * step), item)
    return queue


def control_scores(live: pa.Table, controls: Controls | None) -> list[dict]:
    """Return for each annotator how many known verdicts they met and how many they got right."""
    tally: dict[str, list[int]] = {}
    if controls is not None:
        asked = live.filter(pc.equal(live.column("kind"), "answer"))
        columns = (asked.column(name).to_pylist() for name in ("annotator", "question_id", "answer_key", "correct"))
        for annotator, identity, key, correct in zip(*columns, strict=True):
            known = controls.known.get(identity, {}).get(key)
            if known is not None and correct is not None:
                mine = tally.setdefault(annotator, [0, 0])
                mine[0] += 1
                mine[1] += known is correct
    return [
        {"annotator": annotator, "asked": asked, "right": right, "accuracy": right / asked}
        for annotator, (asked, right) in sorted(tally.items())
    ]
