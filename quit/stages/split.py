"""Split: train, dev and test (paper, section 3.1.4).

Parametrically answerable questions make train; of the others some make test, the rest dev. With ``split.train = "any"``
all three are drawn from all questions. A question's place follows from a keyed hash of its normalised text, so a new
source moves no question to another split: with ``share`` never, with ``size`` as long as earlier questions are pinned.
(What may happen with ``share`` too: a new question of dev or test is near-identical to an old one of train, which then
leaves, unless it is pinned.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from quit import contracts
from quit.common.files import file_checksum
from quit.common.ids import draw
from quit.common.parquet import rows_of
from quit.common.rows import Row
from quit.errors import InputError, SettingsError
from quit.evaluate.labels import SPLITS
from quit.settings import Split
from quit.stages.probe import parametric
from quit.stages.questions.alike import near_identical
from quit.stages.stage import Context, Tables, stage


@stage("split", outputs=("splits", "rejects"), sections=("split",), scope="collection", version=2)
def split_stage(context: Context, questions: pa.Table, probe_answers: pa.Table) -> Tables:
    """Draw train, dev and test."""
    return split_questions(questions, parametric(probe_answers), context.settings.split)


def split_questions(questions: pa.Table, parametric: Mapping[str, bool], settings: Split) -> dict[str, pa.Table]:
    """Return the tables ``splits`` and ``rejects`` for the questions named in ``parametric``.

    A train question that is near-identical to one of dev or test is left out (of those two, the pinned one stays).
    Raises :class:`SettingsError` where ``split.train = "any"`` with ``train_size`` leaves nothing for dev and test.
    """
    pinned = read_pins(settings.pinned)
    rows = [
        row
        for row in questions.select(["question_id", "question", "content_key", "source"]).to_pylist()
        if row["question_id"] in parametric
    ]
    for row in rows:
        row["parametric"] = parametric[row["question_id"]]
        row["draw"] = draw(row["content_key"], settings.seed)
        key = row["content_key"]
        row["pinned"] = pinned.get(f"{row['question_id']} {key}") or pinned.get(key)
    rows.sort(key=lambda row: (row["pinned"] is None, row["draw"], row["question_id"]))
    _assign(rows, settings)
    by_size = settings.train == "any" and settings.method == "size"
    if by_size and rows and all(row["split"] == "train" for row in rows):
        raise SettingsError(
            f"split.train = 'any' with split.train_size = {settings.train_size:,} puts all {len(rows):,} questions "
            "into train: set split.train_size lower, or split.method = 'share'."
        )
    reasons = {row["question_id"]: ("not_sampled", _not_sampled(row, settings)) for row in rows if row["split"] is None}
    for loser, other in near_identical(rows, settings.near_duplicate):
        reasons[loser["question_id"]] = (
            "near_duplicate_across_splits",
            f"near-identical to {other['question_id']} in {other['split']}; {loser['split']} gives way",
        )
    rows.sort(key=lambda row: row["question_id"])
    placed = [
        {name: row[name] for name in ("question_id", "parametric", "split", "draw")}
        for row in rows
        if row["question_id"] not in reasons
    ]
    rejects = [
        {"stage": "split", "kind": "question", "reason": reason, "detail": detail, "question_id": identity}
        for identity, (reason, detail) in sorted(reasons.items())
    ]
    return {
        "splits": contracts.table("splits").from_rows(placed),
        "rejects": contracts.table("rejects").from_rows(rejects),
    }


def _assign(rows: list[Row], settings: Split) -> None:
    """Set ``split`` of each row (None: not sampled); rows come pinned first, then by draw."""
    counts = {name: sum(row["pinned"] == name for row in rows) for name in SPLITS}
    for row in rows:
        if row["pinned"]:
            row["split"] = row["pinned"]
            continue
        names = ["train", "test"]
        if settings.train != "any":
            names = ["train"] if row["parametric"] else ["test"]
        row["split"] = "dev" if "test" in names else None
        edge = 0.0
        for name in names:
            of_train = (settings.train_share, settings.train_size)
            share, size = of_train if name == "train" else (settings.test_share, settings.test_size)
            edge += (1 - edge) * share  # of what is left
            if counts[name] < size if settings.method == "size" else row["draw"] < edge:
                row["split"] = name
                counts[name] += 1
                break


def _not_sampled(row: dict, settings: Split) -> str:
    rule = f"train_size={settings.train_size}" if settings.method == "size" else f"train_share={settings.train_share:g}"
    return f"parametrically answerable, but not among those drawn for train ({rule})"


def read_pins(path: str | None) -> dict[str, str]:
    """Return content_key -> split of an earlier release, a folder, after comparing its tables with their checksums.

    Several questions of a release may have one text, so ``QUESTION_ID CONTENT_KEY`` has the question's own split, and
    the content key that of the first. Raises :class:`InputError` for a folder whose tables are missing or were changed
    since.
    """
    if path is None:
        return {}
    folder = Path(path)
    try:
        entries = json.loads((folder / "release.json").read_text(encoding="utf-8"))["content"]["tables"]
        tables = {}
        for name, columns in (("splits", ["question_id", "split"]), ("questions", ["question_id", "content_key"])):
            file = folder / entries[name]["file"]
            if file_checksum(file) != entries[name]["sha256"]:
                raise InputError(f"split.pinned: {file} was changed since it was released (its checksum differs).")
            tables[name] = rows_of(file, columns).to_pylist()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"split.pinned: {folder} is not a complete release. Look at it: quit release verify {folder}"
        ) from error
    split_of = {row["question_id"]: row["split"] for row in tables["splits"]}
    pins = {}
    for identity, key in ((row["question_id"], row["content_key"]) for row in tables["questions"]):
        if identity in split_of:
            pins[f"{identity} {key}"] = split_of[identity]
            pins.setdefault(key, split_of[identity])
    return pins
