"""Time the label update at the paper's size: 8,095 questions, 2.6 million passages, people's verdicts on dev and test.

    python benchmarks/label_update.py [--questions 8095] [--reviewed 3095] [--overruled 0.25]

Makes a synthetic workspace (answers drawn from a pool, one seed), runs the stage that ``quit review apply`` runs, and
prints JSON: seconds for deciding, updating, writing; rows; peak memory. The judge's and the readers' work is synthetic, so the leakage
check is timed on real text of the bundled collection's kind: short hints and answers.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import schemas
from quit.evaluate.normalize import normalize_answer
from quit.models.factory import Models
from quit.ranges import Range, ranges
from quit.review.store import ReviewStore
from quit.review.verdicts import decide
from quit.settings import load
from quit.stages import STAGES, Context, Inputs
from quit.stages.label import label_passages
from quit.stages.passages import enumerate_passages
from quit.workspace import Workspace

WORDS = "river tower engine poem desert island bridge king planet metal opera garden winter harbour signal".split()
READERS = 6


def synthetic(path: Path, questions: int, reviewed: int, seed: int = 7) -> tuple[Workspace, list[str]]:
    """Write a workspace whose build is finished up to the labels; returns it and its dev and test questions."""
    generator = np.random.default_rng(seed)
    workspace = Workspace.create(path)
    settings = load("embedded").settings
    ids = [f"syn-{number:05d}" for number in range(questions)]
    pool = np.array([f"{WORDS[i % 15].title()} {WORDS[i // 15 % 15].title()} {i}" for i in range(4000)])
    state: dict[str, str] = {}

    def store(run: str, number: int, tables: dict[str, list[pa.Table]]) -> None:
        folder = workspace.folder(run, number, "synthetic")
        parts = len(next(iter(tables.values())))
        for index, shard in enumerate(ranges(ids, parts)):
            workspace.write_part(folder, shard, {name: pieces[index] for name, pieces in tables.items()})
        workspace.finish(folder, list(tables), parts, {"stage": run.partition(":")[0]})
        state[run] = "synthetic"
        workspace.set_current(state)

    gold = pool[generator.integers(0, 4000, questions)]
    rows = [
        {
            "question_id": one,
            "question": f"Which thing is number {place}?",
            "answers": [str(gold[place])],
            "source": "syn",
            "content_key": one,
        }
        for place, one in enumerate(ids)
    ]
    store("collect", 1, {"questions": [schemas.table("questions").from_rows(rows)]})
    hints = [
        {
            "question_id": one, "rank": rank, "hint_id": f"{one}-h{rank:02d}", "convergence": 1.0, "producer": "syn", "selected": True,
            "hint": f"It was first seen near a {WORDS[(place + rank) % 15]} and a {WORDS[(place * 3 + rank) % 15]} by people who kept records.",
        }
        for place, one in enumerate(ids)
        for rank in range(5)
    ]  # fmt: skip
    store("rank", 3, {"ranked_hints": [schemas.table("ranked_hints").from_rows(hints)]})
    split = ["dev" if place % 3 else "test" if place < reviewed else "train" for place in range(questions)]
    split = [name if place < reviewed else "train" for place, name in enumerate(split)]
    kept = [
        {"question_id": one, "parametric": False, "split": name, "draw": 0.5}
        for one, name in zip(ids, split, strict=True)
    ]
    store("split", 6, {"splits": [schemas.table("splits").from_rows(kept)]})
    parts = max(1, questions // 64)
    cuts = [ids[questions * index // parts : questions * (index + 1) // parts] for index in range(parts)]
    passages = [enumerate_passages(pa.chunked_array([pa.array(cut)]), 5) for cut in cuts]
    # Twenty-five candidate answers a question, given with falling frequency.
    choices = pool[generator.integers(0, 4000, (questions, 25))]
    choices[:, 0] = gold
    weights = 1 / np.arange(1, 26)
    start, answers = 0, {}
    names = [reader.name for reader in settings.readers]
    for name in names:
        answers[name] = []
    for cut, piece in zip(cuts, passages, strict=True):
        for name in names:
            picked = generator.choice(25, size=(len(cut), 325), p=weights / weights.sum())
            texts = choices[start : start + len(cut)][np.arange(len(cut))[:, None], picked].ravel()
            answers[name].append(
                pa.table(
                    {
                        "question_id": piece.column("question_id"), "permutation": piece.column("permutation"),
                        "reader": pa.repeat(name, len(piece)), "answer": pa.array(texts.tolist()), "raw": pa.array(texts.tolist()),
                        "producer": pa.repeat("syn", len(piece)),
                    },
                    schema=schemas.table("answers").schema,
                )
            )  # fmt: skip
        start += len(cut)
    for name in names:
        store(f"read:{name}", 8, {"answers": answers[name]})
    verdicts, labels, valid = [], [], []
    asked = workspace.read("questions")
    for index, cut in enumerate(cuts):
        made = []
        for one in cut:
            place = int(one[4:])
            for answer in sorted(set(choices[place])):
                right = answer == gold[place] or (place % 4 == 0 and answer == choices[place][2])
                made.append(
                    {
                        "question_id": one, "answer_key": normalize_answer(answer), "answer": answer, "correct": bool(right),
                        "basis": "model", "passages": 10, "judge": "syn", "producer": "syn", "raw": "",
                    }
                )  # fmt: skip
        verdicts.append(schemas.table("verdicts").from_rows(made))
        mine = asked.filter(pa.compute.is_in(asked.column("question_id"), pa.array(cut)))
        named = {name: answers[name][index] for name in names[:3]}
        both = label_passages(mine, passages[index], named, verdicts[-1])
        labels.append(both["labels"])
        valid.append(both["valid_answers"])
    store("judge", 9, {"verdicts": verdicts})
    store("label", 10, {"labels": labels, "valid_answers": valid})
    return workspace, [one for one, name in zip(ids, split, strict=True) if name != "train"]


def reviews(workspace: Workspace, questions: list[str], overruled: float, seed: int = 8) -> list[dict]:
    """Return one submitted annotation a question; in a share of them one verdict differs from the judge's."""
    generator = np.random.default_rng(seed)
    by_question: dict[str, list[dict]] = {}
    wanted = set(questions)
    for row in workspace.read("verdicts").to_pylist():
        if row["question_id"] in wanted:
            by_question.setdefault(row["question_id"], []).append(row)
    made = []
    for number, question in enumerate(questions, start=1):
        common = {
            "review_id": f"r{number}", "question_id": question, "state": "submitted", "annotator": "a", "created": "2026", "updated": "2026",
            "project": "p", "task": number, "annotation": number, "version": 1, "digest": "d", "sync": 1,
        }  # fmt: skip
        made.append({**common, "kind": "annotation"})
        flipped = int(generator.integers(0, 25)) if generator.random() < overruled else -1
        for place, row in enumerate(by_question[question]):
            correct = row["correct"] is not (place == flipped)
            made.append(
                {
                    **common,
                    "kind": "answer",
                    "answer_key": row["answer_key"],
                    "answer": row["answer"],
                    "correct": correct,
                }
            )
    return made


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=8095)
    parser.add_argument("--reviewed", type=int, default=3095)
    parser.add_argument("--overruled", type=float, default=0.25)
    parser.add_argument("--keep", type=Path, default=None, help="folder to make the workspace in, or to find it")
    arguments = parser.parse_args()
    folder = arguments.keep or Path(tempfile.mkdtemp()) / "W"
    if (folder / "state.json").is_file():
        workspace = Workspace.open(folder)
        asked = [row["question_id"] for row in workspace.read("splits").to_pylist() if row["split"] != "train"]
    else:
        workspace, asked = synthetic(folder, arguments.questions, arguments.reviewed)
        ReviewStore(workspace).append(reviews(workspace, asked, arguments.overruled))
    settings = load("embedded").settings
    stage = next(one for one in STAGES if one.name == "update")
    models = Models(settings)
    _ = models.equivalence, models.encoder.encode(["warm"])
    figures: dict[str, float] = {"questions": arguments.questions, "reviewed": len(asked)}
    clock = time.perf_counter()
    decisions = decide(ReviewStore(workspace).read(), settings.review)
    figures["decide_s"] = time.perf_counter() - clock

    def only(name, identities, columns, reader):
        return workspace.read_questions(name, identities, columns, [f"read:{reader}"])

    inputs = Inputs(stage.inputs, workspace.read, only)
    made = stage.run(inputs, Context({"decisions": decisions}, settings, models))
    figures["update_s"] = time.perf_counter() - clock - figures["decide_s"]
    target = folder / "tables" / "11_update" / "benchmark"
    workspace.write_part(target, Range(0, 1), {name: made[name] for name in stage.outputs})
    figures["total_s"] = time.perf_counter() - clock
    figures |= {f"{name}_rows": len(made[name]) for name in ("labels", "changes", "rejects")}
    figures["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
