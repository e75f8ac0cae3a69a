"""Split: train, dev and test (paper, section 3.1.4).

Parametrically answerable questions make train; of the others some make test, the rest dev. With ``split.train = "any"``
all three are drawn from all questions. A question's place follows from a keyed hash of its normalised text, so a new
source moves no question to another split: with ``share`` never, with ``size`` as long as earlier questions are pinned.
(What may happen with ``share`` too: a new question of dev or test is near-identical to an old one of train, which then
leaves, unless it is pinned.)
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from quit import contracts
from quit.common.arithmetic import products
from quit.common.files import file_checksum
from quit.common.ids import draw
from quit.common.parquet import rows_of
from quit.common.rows import Row, grouped
from quit.errors import InputError, SettingsError
from quit.evaluate.labels import SPLITS
from quit.models.protocols import Encoder
from quit.settings import Split
from quit.stages.probe import parametric
from quit.stages.stage import Context, Tables, stage
from quit.text.answers import answer_key
from quit.text.normalize import STOP_WORDS, normalize_question

PARAPHRASE = 0.8
"""Cosine of two questions from which one may paraphrase the other."""


@stage("split", outputs=("splits", "rejects"), sections=("split",), scope="collection", version=2)
def split_stage(context: Context, questions: pa.Table, probe_answers: pa.Table) -> Tables:
    """Draw train, dev and test."""
    return split_questions(questions, parametric(probe_answers), context.settings.split)


def split_questions(questions: pa.Table, parametric: Mapping[str, bool], settings: Split) -> dict[str, pa.Table]:
    """Return the tables ``splits`` and ``rejects`` for the questions named in ``parametric``.

    A train question that is near-identical to one of dev or test is left out (of those two, the pinned one stays).
    Raises :class:`SettingsError` where ``split.train = "any"`` leaves nothing for dev and test.
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
            edge += (1 - edge) * getattr(settings, f"{name}_share")  # a share of what is left
            full = counts[name] >= getattr(settings, f"{name}_size")
            if not full if settings.method == "size" else row["draw"] < edge:
                row["split"] = name
                counts[name] += 1
                break


def _not_sampled(row: dict, settings: Split) -> str:
    rule = f"train_size={settings.train_size}" if settings.method == "size" else f"train_share={settings.train_share:g}"
    return f"parametrically answerable, but not among those drawn for train ({rule})"


def paraphrases(questions: pa.Table, encoder: Encoder) -> list[tuple[Row, Row]]:
    """Return pairs of questions (question_id, question, answers) that share a gold answer and whose vectors are near:
    in two splits, one may tell the other's answer. Pairs of equal words are among them."""
    by_key = grouped((key, row) for row in questions.to_pylist() for key in {*map(answer_key, row["answers"])})
    groups = [rows for rows in by_key.values() if len(rows) > 1]
    texts = list(dict.fromkeys(row["question"] for rows in groups for row in rows))
    vectors = dict(zip(texts, encoder.encode(texts), strict=True)) if texts else {}
    pairs = {}
    for rows in groups:
        of_rows = np.stack([vectors[row["question"]] for row in rows])
        for first, other in np.argwhere(np.triu(products(of_rows, of_rows), 1) >= PARAPHRASE).tolist():
            pairs[rows[first]["question_id"], rows[other]["question_id"]] = rows[first], rows[other]
    return [pairs[key] for key in sorted(pairs)]


def near_identical(rows: list[Row], threshold: float) -> list[tuple[Row, Row]]:
    """Return (the one to leave out, the other) for near-identical questions on both sides of train | dev, test.

    ``rows``: dicts with question, split (None: in none) and pinned; ``threshold``: Jaccard index of their words, above
    0 and at most 1. The one of train is left out, unless it alone is pinned. Every such pair is there, in the order of
    ``rows``.

    Only pairs that share a word of their prefixes are compared (Chaudhuri, Ganti and Kaushik, 2006: A Primitive
    Operator for Similarity Joins in Data Cleaning). Of two sets with index t or more, each shares ceil(t * its size)
    words with the other, so with its words in one order (rarest first, to compare few) the first shared word is among
    the size - ceil(t * size) + 1 first of both.
    """
    placed = [(row, _content_words(row["question"])) for row in rows if row["split"]]
    questions_with = Counter(word for _, words in placed for word in words)
    prefixes = []
    for _, words in placed:
        rarest_first = sorted(words, key=lambda word: (questions_with[word], word))
        prefixes.append(rarest_first[: len(words) - math.ceil(threshold * len(words)) + 1])
    in_train: dict[str, list[int]] = {}
    for index, (row, _) in enumerate(placed):
        if row["split"] == "train":
            for word in prefixes[index]:
                in_train.setdefault(word, []).append(index)
    pairs = []
    for index, (row, words) in enumerate(placed):
        if row["split"] != "train":
            for other in {other for word in prefixes[index] for other in in_train.get(word, ())}:
                others = placed[other][1]
                if len(words & others) >= threshold * len(words | others):
                    pairs.append((other, index))
    leaving = [pair for pair in pairs if placed[pair[0]][0]["pinned"] and not placed[pair[1]][0]["pinned"]]
    left = {other for _, other in leaving}  # nobody gives way to what leaves itself
    staying = [(other, first) for first, other in pairs if other not in left]
    ordered = sorted([*leaving, *staying], key=sorted)
    return [(placed[loser][0], placed[other][0]) for other, loser in ordered]


def _content_words(question: str) -> frozenset[str]:
    words = frozenset(normalize_question(question).split())
    return words - STOP_WORDS or words


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
