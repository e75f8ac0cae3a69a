"""Split: train, dev and test (paper, section 3.1.4).

Parametrically answerable questions make train; of the others some make test, the rest dev. With ``split.train = "any"``
all three are drawn from all questions. A question's place follows from a keyed hash of its normalised text, so a new
source moves no question to another split: with ``share`` never, with ``size`` as long as earlier questions are pinned.
(What may happen with ``share`` too: a new question of dev or test is near-identical to an old one of train, which then
leaves, unless it is pinned.)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from quit import contracts
from quit.common.checksums import file_checksum
from quit.common.ids import content_hash, draw
from quit.common.parquet import rows_of
from quit.common.rows import first_by, tuples
from quit.errors import InputError, SettingsError
from quit.settings import Split
from quit.stages.probe import parametric
from quit.stages.questions.alike import PlacedQuestion, near_identical
from quit.stages.stage import Context, Tables, stage


@stage(
    "split",
    outputs=("splits", "rejects"),
    sections=("split",),
    contents={"split.pinned": lambda path: content_hash("pins", read_pins(path))},
    scope="collection",
    version=2,
)
def split_stage(context: Context, questions: pa.Table, probe_answers: pa.Table) -> Tables:
    """Draw train, dev and test."""
    return split_questions(questions, parametric(probe_answers), context.settings.split)


class _Drawn(NamedTuple):
    """A probed question. ``draw``: 0 to 1; ``pinned``: the split that an earlier release gives it, if any."""

    question_id: str
    question: str
    parametric: bool
    draw: float
    pinned: str | None


def split_questions(questions: pa.Table, parametric: Mapping[str, bool], settings: Split) -> dict[str, pa.Table]:
    """Return the tables ``splits`` and ``rejects`` for the questions named in ``parametric``.

    A train question that is near-identical to one of dev or test is left out (of those two, the pinned one stays).
    Raises :class:`SettingsError` where ``split.train = "any"`` with ``train_size`` leaves nothing for dev and test.
    """
    pins = read_pins(settings.pinned)
    drawn = [
        _Drawn(name, text, parametric[name], draw(key, settings.seed), pins.split_of(name, key))
        for name, text, key in tuples(questions, "question_id", "question", "content_key")
        if name in parametric
    ]
    drawn.sort(key=lambda each: (each.pinned is None, each.draw, each.question_id))
    splits = _assigned(drawn, settings)
    if settings.train == "any" and settings.method == "size" and {*splits.values()} == {"train"}:
        raise SettingsError(
            f"split.train = 'any' with split.train_size = {settings.train_size:,} puts all {len(drawn):,} questions "
            "into train: set split.train_size lower, or split.method = 'share'."
        )
    reasons = {name: ("not_sampled", _not_sampled(settings)) for name, split in splits.items() if split is None}
    placed = [
        PlacedQuestion(each.question_id, each.question, split, each.pinned is not None)
        for each in drawn
        if (split := splits[each.question_id])
    ]
    for loser, other in near_identical(placed, settings.near_duplicate):
        reasons[loser.question_id] = (
            "near_duplicate_across_splits",
            f"near-identical to {other.question_id} in {other.split}; {loser.split} gives way",
        )
    rows = [
        {"question_id": name, "parametric": parametric[name], "split": splits[name], "draw": each.draw}
        for each in drawn
        if (name := each.question_id) not in reasons
    ]
    rejects = [
        {"stage": "split", "kind": "question", "reason": reason, "detail": detail, "question_id": identity}
        for identity, (reason, detail) in sorted(reasons.items())
    ]
    return {
        "splits": contracts.table("splits").from_rows(sorted(rows, key=itemgetter("question_id"))),
        "rejects": contracts.table("rejects").from_rows(rejects),
    }


def _assigned(drawn: Sequence[_Drawn], settings: Split) -> dict[str, str | None]:
    """Return the split of each question (None: not sampled); questions come pinned first, then by draw."""
    counts, splits = Counter(each.pinned for each in drawn), dict[str, str | None]()
    for each in drawn:
        if each.pinned:
            splits[each.question_id] = each.pinned
            continue
        names = ["train", "test"]
        if settings.train != "any":
            names = ["train"] if each.parametric else ["test"]
        splits[each.question_id] = "dev" if "test" in names else None
        edge = 0.0
        for name in names:
            of_train = (settings.train_share, settings.train_size)
            share, size = of_train if name == "train" else (settings.test_share, settings.test_size)
            edge += (1 - edge) * share  # of what is left
            if counts[name] < size if settings.method == "size" else each.draw < edge:
                splits[each.question_id] = name
                counts[name] += 1
                break
    return splits


def _not_sampled(settings: Split) -> str:
    rule = f"train_size={settings.train_size}" if settings.method == "size" else f"train_share={settings.train_share:g}"
    return f"parametrically answerable, but not among those drawn for train ({rule})"


class Pins(NamedTuple):
    """Splits of an earlier release. ``questions``: question id -> content key and split; ``texts``: content key ->
    split of the first question with it, since several may have one text."""

    questions: Mapping[str, tuple[str, str]] = {}
    texts: Mapping[str, str] = {}

    def split_of(self, question_id: str, content_key: str) -> str | None:
        """Return the split of a question or, where the release has it not with this text, of its text; None where it
        has neither."""
        key, split = self.questions.get(question_id, ("", None))
        return split if key == content_key else self.texts.get(content_key)


def read_pins(path: str | None) -> Pins:
    """Return the splits of an earlier release, a folder, after comparing its tables with their checksums; none without
    one. Raises :class:`InputError` for a folder whose tables are missing or were changed since."""
    if path is None:
        return Pins()
    folder = Path(path)
    try:
        entries = json.loads((folder / "release.json").read_text(encoding="utf-8"))["content"]["tables"]
        tables = {}
        for name, columns in (("splits", ["question_id", "split"]), ("questions", ["question_id", "content_key"])):
            file = folder / entries[name]["file"]
            if file_checksum(file) != entries[name]["sha256"]:
                raise InputError(f"split.pinned: {file} was changed since it was released (its checksum differs).")
            tables[name] = [*tuples(rows_of(file, columns), *columns)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"split.pinned: {folder} is not a complete release. Look at it: quit release verify {folder}"
        ) from error
    split_of = dict(tables["splits"])
    questions = {name: (key, split_of[name]) for name, key in tables["questions"] if name in split_of}
    return Pins(questions, first_by(questions.values()))
