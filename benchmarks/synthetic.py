"""A synthetic collection and a workspace whose stages are filled in without a model: what the benchmarks of table work
run on.

Five hints a question of the starter's words, few of them common; twenty-five answers a question, given with falling
frequency by six readers; people's reviews of the questions in dev and test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import quit
from quit import contracts
from quit.common.ids import draw
from quit.common.rows import grouped, tuples
from quit.contracts.tables import HARD_FROM, MEDIUM_FROM
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun
from quit.engine.planning import checked_build
from quit.engine.request import Request
from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore
from quit.stages.labelling.answers import number_answers
from quit.text.answers import answer_key

Rows = Callable[[str], list[dict[str, Any]]]
"""The rows of a table of one question."""

STARTER = Path(quit.__file__).parent / "starter" / "questions.jsonl"
PLACES, CANDIDATES = 4_000, 25
REVIEWED, OVERRULED = 0.35, 0.25
"""Shares: of the questions that are in dev and test, and reviewed, as in the paper; of these, whose reviewer overrules
one verdict."""
DEV = 0.12 / 0.35  # of the questions that are in dev and test


def starter(folder: Path, questions: int = 0) -> Path:
    """Write the first questions of the starter (0: all) as ``collection.jsonl`` and return the file."""
    lines = STARTER.read_text(encoding="utf-8").splitlines(keepends=True)
    target = folder / "collection.jsonl"
    target.write_text("".join(lines[: questions or None]), encoding="utf-8")
    return target


def make(
    folder: Path,
    count: int,
    reviewed: int | None = None,
    overruled: float = OVERRULED,
    names: np.ndarray | None = None,
    seed: int = 7,
) -> Pipeline:
    """Write ``collection.jsonl`` and the workspace ``W`` with everything up to the readers' answers and the judge's
    verdicts.

    ``reviewed``: how many questions are in dev and test, and reviewed. ``names``: the 4,000 answers of the collection,
    by default such as occur in no hint.
    """
    reviewed = round(REVIEWED * count) if reviewed is None else reviewed
    random = np.random.default_rng(seed)
    words = np.array(sorted(set(re.findall(r"[a-z]{2,}", STARTER.read_text(encoding="utf-8")))))
    drawn = words[(len(words) * random.random((count, 6, 16)) ** 3).astype(int)]  # few words are common
    if names is None:
        names = np.array([f"Qz{'bcdfg'[i % 5]}{i:x} Yv{i * 7919 % PLACES:x}" for i in range(PLACES)])
    choices = names[
        np.argsort(random.random((count, 60)), axis=1)[:, :CANDIDATES] * 66 + random.integers(0, 66, (count, 1))
    ]
    with (folder / "collection.jsonl").open("w", encoding="utf-8") as file:
        for place in range(count):
            text = [" ".join(line) for line in drawn[place]]
            row = {"id": f"{place:05d}", "question": f"{text[0][:70]} {place}?", "answers": [choices[place, 0]],
                   "hints": [{"hint": f"{hint}.", "convergence": 0.5} for hint in text[1:]],
                   "question_type": {"coarse": "HUM:HUMAN", "fine": "ind:Individual"}}  # fmt: skip
            file.write(json.dumps(row) + "\n")
    pipeline = begun(folder)
    carry_out(pipeline, pipeline.stage_run("collect"))
    ids = pipeline.workspace.read("questions").column("question_id").to_pylist()
    _fill(pipeline, ids, _described(pipeline, ids, 1 - reviewed / count))
    carry_out(pipeline, pipeline.stage_run("enumerate"))
    given = dict(zip(ids, choices, strict=True))
    passages = _fill_answers(pipeline, given, random)
    judged: dict[str, Rows] = {
        "verdicts": lambda one: _verdicts(one, given[one], passages[one]),
        "second_verdicts": _none,
    }
    _fill(pipeline, ids, {"judge": judged})
    ReviewStore(pipeline.workspace).append(_reviews(ids[count - reviewed :], given, overruled, random))
    return pipeline


def begun(folder: Path, overrides: Sequence[str] = ()) -> Pipeline:
    """Return a build of ``collection.jsonl`` into the workspace ``W`` of the same folder, on the embedded profile."""
    settings, sources = checked_build([f"jsonl:{folder / 'collection.jsonl'}"], "embedded", overrides)
    requested = Request([], "embedded", list(overrides))
    pipeline = Pipeline(Workspace.create(folder / "W"), settings, sources, requested=requested)
    pipeline.begin()
    return pipeline


def carry_out(pipeline: Pipeline, run: StageRun) -> None:
    """Carry out a real stage in this process, shard by shard."""
    for shard in pipeline.pending(run):
        pipeline.run_shard(run, shard)
    pipeline.finish(run)


def _described(pipeline: Pipeline, ids: Sequence[str], train: float) -> dict[str, dict[str, Rows]]:
    """Return what the stages before the readers say of each question; ``train``: the share of train."""
    hints: dict[str, list[dict[str, Any]]] = {one: [] for one in ids}
    for row in pipeline.workspace.read("hints").to_pylist():
        hints[row["question_id"]].append(row)
    key_of = dict(tuples(pipeline.workspace.read("questions"), "question_id", "content_key"))
    place = {one: number / len(ids) for number, one in enumerate(ids)}
    dev = train + DEV * (1 - train)

    def usable(one: str) -> list[dict[str, Any]]:
        return [{"hint_id": row["hint_id"], "question_id": one} for row in hints[one]]

    def ranked(one: str) -> list[dict[str, Any]]:
        common = {"question_id": one, "convergence": 0.5, "producer": "source", "selected": True}
        return [{**common, "rank": int(row["hint_id"][-2:]), "hint_id": row["hint_id"], "hint": row["hint"]}
                for row in hints[one]]  # fmt: skip

    def described(one: str) -> list[dict[str, Any]]:
        level = ("easy", "medium", "hard")[np.searchsorted([MEDIUM_FROM, HARD_FROM], place[one], "right")]
        numbers = dict.fromkeys(("answerability", "answer_share", "completeness", "similarity"), 0.1)
        return [{"question_id": one, "coarse": "HUM:HUMAN", "fine": "ind:Individual", "type_confidence": 1.0,
                 "type_producer": "source", **numbers, "difficulty": place[one], "difficulty_bin": level,
                 "difficulty_producer": "synthetic"}]  # fmt: skip

    def split(one: str) -> list[dict[str, Any]]:
        name = "train" if place[one] < train else "dev" if place[one] < dev else "test"
        drawn = draw(key_of[one], pipeline.settings.split.seed)
        return [{"question_id": one, "parametric": False, "draw": drawn, "split": name}]

    return {
        "filter": {"usable_hints": usable, "leak_findings": _none, "rejects": _none},
        "rank": {"ranked_hints": ranked, "drawn_candidates": _none, "rejects": _none},
        "describe": {"descriptions": described, "rejects": _none},
        **{run.key: {"probe_answers": _none} for run in pipeline.runs if run.stage.name == "probe"},
        "split": {"splits": split, "rejects": _none},
    }


def _none(_: str) -> list[dict[str, Any]]:
    return []


def _fill(pipeline: Pipeline, ids: Sequence[str], stages: dict[str, dict[str, Rows]]) -> None:
    """Write rows as the tables of stages, under the fingerprints that these stages would have."""
    for stage, tables in stages.items():
        run = pipeline.stage_run(stage)
        for shard in pipeline.shards(run):
            inside = [one for one in ids if not shard.misses(one, one)]
            pieces = {
                name: contracts.table(name).from_rows([row for one in inside for row in rows(one)])
                for name, rows in tables.items()
            }
            pipeline.workspace.write_part(pipeline.folder(run), shard, pieces)
        pipeline.finish(run)


def _fill_answers(
    pipeline: Pipeline, given: dict[str, np.ndarray], random: np.random.Generator
) -> dict[str, np.ndarray]:
    """Write the answers; return how many passages each of a question's answers has, of all readers."""
    passages_of = {one: np.zeros(CANDIDATES, np.int64) for one in given}
    weights = 1 / np.arange(1, CANDIDATES + 1)
    bounds = np.cumsum(weights / weights.sum())
    for reader in pipeline.settings.readers:
        run = pipeline.stage_run(f"read:{reader.name}")
        for shard in pipeline.shards(run):
            passages = pipeline.workspace.read("passages", shard)
            ids = passages.column("question_id").to_pylist()
            picked = np.minimum(np.searchsorted(bounds, random.random(len(ids))), CANDIDATES - 1)
            answers = pa.array([given[one][choice] for one, choice in zip(ids, picked.tolist(), strict=True)])
            for one, rows in grouped(zip(ids, picked.tolist(), strict=True)).items():
                passages_of[one] += np.bincount(rows, minlength=CANDIDATES)
            replies = passages.append_column("answer", answers)
            replies = replies.append_column("reader", pa.repeat(reader.name, len(ids)))
            replies = replies.append_column("producer", pa.repeat("synthetic", len(ids)))
            pipeline.workspace.write_part(pipeline.folder(run), shard, number_answers(replies))
        pipeline.finish(run)
    return passages_of


def _verdicts(question: str, answers: Sequence[str], passages: np.ndarray) -> list[dict[str, Any]]:
    """Return the verdict on each answer that a reader gave; the first answer is the gold one."""
    return [
        {"question_id": question, "answer_key": answer_key(answer), "answer": str(answer),
         "correct": place in (0, 7),
         "basis": "model" if place else "exact", "passages": int(passages[place]), "judge": "synthetic",
         "producer": "synthetic", "raw": ""}
        for place, answer in enumerate(answers)
        if passages[place]
    ]  # fmt: skip


def _reviews(
    asked: Sequence[str], given: dict[str, np.ndarray], overruled: float, random: np.random.Generator
) -> list[dict[str, Any]]:
    """Return one annotation a question; in a share of them one verdict differs from the judge's."""
    made = []
    for number, question in enumerate(asked, start=1):
        common = {"review_id": f"r{number}", "question_id": question, "state": "submitted", "annotator": "a",
            "created": "2026",
                  "updated": "2026", "project": "p", "task": number, "annotation": number, "version": 1, "digest": "d",
                  "sync": 1}  # fmt: skip
        flipped = int(random.integers(0, CANDIDATES)) if random.random() < overruled else -1
        made.append({**common, "kind": "annotation"})
        for place, answer in enumerate(given[question]):
            correct = (place in (0, 7)) is not (place == flipped)
            made.append({**common, "kind": "answer", "answer_key": answer_key(answer), "answer": str(answer),
                "correct": correct})  # fmt: skip
    return made
