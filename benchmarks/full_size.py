"""Time the table work at the paper's size, command by command, and how it grows: 100, 740 and 7,401 questions.

    python -m benchmarks.full_size [--sizes 100,740,7401] [--formats trec,beir] [--keep FOLDER]

Makes a synthetic collection (five hints a question; twenty-five answers a question, given with falling frequency by six readers) and
a workspace whose stages up to the readers' answers are filled in without a model; every other step is the real one, as people run it, in a
process of its own. A row: seconds of the process, its peak memory, bytes it wrote, and the seconds that the disk needs to take as many
bytes and that one core needs to encode as many characters as UTF-8. The paper's index scripts (``tests/export/plain_index.py``) run
beside ``paper-index`` on the same data: the baseline. Prints JSON lines and, at the end, a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import quit
import schemas
from quit.evaluate.normalize import normalize_answer
from quit.export import FORMATS
from quit.pipeline import Pipeline
from quit.planning import last_build, plan_build
from quit.review.store import ReviewStore

STARTER = Path(quit.__file__).parent / "starter" / "questions.jsonl"  # its words make the hints
PLACES = 4_000
CANDIDATES, REVIEWED, OVERRULED = 25, 0.38, 0.25
TRAIN, DEV = 0.65, 0.77
"""Splits as in the paper, by place: train up to 65%, dev up to 77%."""


def make(folder: Path, count: int, seed: int = 7) -> None:
    """Write the collection and a workspace with everything up to the readers' answers and the judge's verdicts."""
    random = np.random.default_rng(seed)
    words = np.array(sorted(set(re.findall(r"[a-z]{2,}", STARTER.read_text(encoding="utf-8")))))
    drawn = words[(len(words) * random.random((count, 6, 16)) ** 3).astype(int)]  # few words are common
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
    pipeline = plan_build(
        folder / "W", [f"jsonl:{folder / 'collection.jsonl'}"], "embedded", [f"run.shards={max(1, count // 64)}"]
    )
    pipeline.begin()
    carry_out(pipeline, "collect")
    ids = pipeline.workspace.read("questions").column("question_id").to_pylist()
    _fill(pipeline, _described(pipeline, ids))
    carry_out(pipeline, "enumerate")
    given = dict(zip(ids, choices, strict=True))
    _fill_answers(pipeline, given, random)
    _fill(pipeline, {"judge": {"verdicts": [_verdicts(one, given[one]) for one in ids], "second_verdicts": []}})
    asked = [one for place, one in enumerate(ids) if place >= TRAIN * count][: int(REVIEWED * count)]
    ReviewStore(pipeline.workspace).append(_reviews(asked, given, random))


def carry_out(pipeline: Pipeline, stage: str) -> None:
    """Carry out a real stage, shard by shard."""
    run = pipeline.stage_run(stage)
    for shard in pipeline.pending(run):
        pipeline.work_on(run, shard)
    pipeline.finish(run)


def _described(pipeline: Pipeline, ids: Sequence[str]) -> dict[str, dict[str, list]]:
    hints = pipeline.workspace.read("hints").to_pylist()
    place = {one: number / len(ids) for number, one in enumerate(ids)}
    level = {one: "easy" if share < 0.3 else "medium" if share < 0.6 else "hard" for one, share in place.items()}
    return {
        "filter": {"usable_hints": [{"hint_id": row["hint_id"], "question_id": row["question_id"]} for row in hints],
                   "leak_findings": [], "rejects": []},
        "rank": {"ranked_hints": [
            {"question_id": row["question_id"], "rank": int(row["hint_id"][-2:]), "hint_id": row["hint_id"], "hint": row["hint"],
             "convergence": 0.5, "producer": "source", "selected": True} for row in hints], "drawn_candidates": [], "rejects": []},
        "describe": {"descriptions": [
            {"question_id": one, "coarse": "HUM:HUMAN", "fine": "ind:Individual", "type_confidence": 1.0, "type_producer": "source",
             "answerability": 0.1, "answer_share": 0.1, "completeness": 0.1, "similarity": 0.1, "difficulty": share,
             "difficulty_bin": level[one], "difficulty_producer": "synthetic"} for one, share in place.items()], "rejects": []},
        "probe": {"probe_answers": []},
        "split": {"splits": [
            {"question_id": one, "parametric": False, "draw": share, "split": "train" if share < TRAIN else "dev" if share < DEV else "test"}
            for one, share in place.items()], "rejects": []},
    }  # fmt: skip


def _fill(pipeline: Pipeline, made: dict[str, dict[str, list]]) -> None:
    """Write rows as the tables of stages, under the fingerprints that these stages would have."""
    for stage, tables in made.items():
        run = pipeline.stage_run(stage)
        for shard in pipeline.shards(run):
            pieces = {}
            for name, rows in tables.items():
                flat = [row for item in rows for row in (item if isinstance(item, list) else [item])]
                mine = [row for row in flat if shard.holds(row["question_id"], row["question_id"])]
                pieces[name] = schemas.table(name).from_rows(mine)
            pipeline.workspace.write_part(pipeline.folder(run), shard, pieces)
        pipeline.finish(run)


def _fill_answers(pipeline: Pipeline, given: dict[str, np.ndarray], random: np.random.Generator) -> None:
    weights = 1 / np.arange(1, CANDIDATES + 1)
    bounds = np.cumsum(weights / weights.sum())
    for reader in pipeline.settings.readers:
        run = pipeline.stage_run(f"read:{reader.name}")
        for shard in pipeline.shards(run):
            passages = pipeline.workspace.read("passages", shard)
            ids = passages.column("question_id").to_pylist()
            picked = np.minimum(np.searchsorted(bounds, random.random(len(ids))), CANDIDATES - 1)
            answers = pa.array([given[one][choice] for one, choice in zip(ids, picked.tolist(), strict=True)])
            rows = pa.table(
                {"question_id": passages["question_id"], "permutation": passages["permutation"],
                 "reader": pa.repeat(reader.name, len(ids)), "answer": answers, "raw": answers,
                 "producer": pa.repeat("synthetic", len(ids))}, schema=schemas.table("answers").schema,
            )  # fmt: skip
            pipeline.workspace.write_part(pipeline.folder(run), shard, {"answers": rows})
        pipeline.finish(run)


def _verdicts(question: str, answers: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"question_id": question, "answer_key": normalize_answer(answer), "answer": str(answer), "correct": place in (0, 7),
         "basis": "model", "passages": 10, "judge": "synthetic", "producer": "synthetic", "raw": ""}
        for place, answer in enumerate(answers)
    ]  # fmt: skip


def _reviews(asked: Sequence[str], given: dict[str, np.ndarray], random: np.random.Generator) -> list[dict[str, Any]]:
    """Return one annotation a question; in a share of them one verdict differs from the judge's."""
    made = []
    for number, question in enumerate(asked, start=1):
        common = {"review_id": f"r{number}", "question_id": question, "state": "submitted", "annotator": "a", "created": "2026",
                  "updated": "2026", "project": "p", "task": number, "annotation": number, "version": 1, "digest": "d",
                  "sync": 1}  # fmt: skip
        flipped = int(random.integers(0, CANDIDATES)) if random.random() < OVERRULED else -1
        made.append({**common, "kind": "annotation"})
        for place, answer in enumerate(given[question]):
            correct = (place in (0, 7)) is not (place == flipped)
            made.append({**common, "kind": "answer", "answer_key": normalize_answer(answer), "answer": str(answer), "correct": correct})  # fmt: skip
    return made


# Measuring


def measured(name: str, command: Sequence[str], wrote: Sequence[Path], count: int) -> dict[str, Any]:
    """Run a command as a process of its own; return what it took. Raises ``SystemExit`` with its output when it fails."""
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            said.seek(0)
            raise SystemExit(f"{name} failed:\n{said.read().decode()[-3000:]}")
    size = sum(
        path.stat().st_size
        for root in wrote
        for path in ([root] if root.is_file() else root.rglob("*"))
        if path.is_file()
    )
    return {"questions": count, "step": name, "seconds": round(seconds, 2), "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
            "peak_mib": used.ru_maxrss // 1024, "bytes": size}  # fmt: skip


def limits(folder: Path, size: int) -> dict[str, float]:
    """Return the seconds that the disk needs for so many bytes (flushed), and one core to encode as many characters."""
    piece, text = os.urandom(2**24), "It was first seen near a river. " * 2**19
    start = time.perf_counter()
    with (folder / "floor").open("wb") as file:
        for begin in range(0, size, len(piece)):
            file.write(piece[: size - begin])
        file.flush()
        os.fsync(file.fileno())
    disk = time.perf_counter() - start
    (folder / "floor").unlink()
    start = time.perf_counter()
    for _ in range(4):
        (text + "é").encode()
    core = (time.perf_counter() - start) / (4 * len(text)) * size
    return {"disk_seconds": round(disk, 2), "utf8_seconds": round(core, 2)}


def measure(folder: Path, count: int, formats: Sequence[str]) -> list[dict[str, Any]]:
    """Run every step at one size; returns the rows, and prints them as they come."""
    workspace, out = folder / "W", folder / "exports"
    rows: list[dict[str, Any]] = []

    def step(name: str, command: Sequence[str], *wrote: Path) -> None:
        row = measured(name, command, wrote, count)
        rows.append(row | limits(folder, row["bytes"]))
        print(json.dumps(rows[-1]), flush=True)

    def quit_(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "quit.cli", *arguments]

    inner = [sys.executable, "-m", "benchmarks.full_size", "--workspace", str(workspace), "--stage"]
    w = ["-w", str(workspace)]
    step("enumerate", [*inner, "enumerate"], *workspace.glob("tables/07_*"))
    step("label", [*inner, "label"], *workspace.glob("tables/10_*"))
    step("release create", quit_("release", "create", *w, "--name", "v1"), workspace / "releases" / "v1")
    step("release verify", quit_("release", "verify", str(workspace / "releases" / "v1")))
    step("review apply", quit_("review", "apply", *w), *workspace.glob("tables/11_*"))
    step("release create, reviewed", quit_("release", "create", *w, "--name", "v2"), workspace / "releases" / "v2")
    step(
        "release diff", quit_("release", "diff", *(str(workspace / "releases" / one) for one in ("v1", "v2")), "--json")
    )
    for name in formats:
        keys = ["--paper-keys"] if name in ("release-json", "paper-index") else []
        command = quit_("export", "--release", str(workspace / "releases" / "v2"), "-f", name, *keys, "--out", str(out))
        step(f"export {name}", command, out / name)
    if {"release-json", "paper-index"} <= set(formats):
        script = "import sys, pathlib; from tests.export.plain_index import plain_index; plain_index(*map(pathlib.Path, sys.argv[1:]))"
        step(
            "baseline: index scripts",
            [sys.executable, "-c", script, str(out / "release-json"), str(folder / "plain")],
            folder / "plain",
        )
        for path in (folder / "plain").rglob("*.jsonl"):
            if path.read_bytes() != (out / "paper-index" / path.relative_to(folder / "plain")).read_bytes():
                raise SystemExit(f"{path.name} differs from the paper-index export")
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as Markdown: the largest size in full, the smaller ones by their seconds."""
    sizes = sorted({row["questions"] for row in rows}, reverse=True)
    by = {(row["questions"], row["step"]): row for row in rows}
    told = [
        "| step | seconds | peak MiB | GB | disk, s | UTF-8, s | "
        + " | ".join(f"{size:,}: s" for size in sizes[1:])
        + " |",
        "|---" * (6 + len(sizes) - 1) + "|",
    ]
    for row in rows:
        if row["questions"] == sizes[0]:
            smaller = [str(by[size, row["step"]]["seconds"]) for size in sizes[1:]]
            told.append(f"| {row['step']} | {row['seconds']} | {row['peak_mib']:,} | {row['bytes'] / 1e9:.2f} | {row['disk_seconds']} | "
                        f"{row['utf8_seconds']} | {' | '.join(smaller)} |")  # fmt: skip
    return "\n".join(told)


def main() -> None:
    """Make each size and measure every step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100,740,7401")
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--keep", type=Path, help="folder to work in, kept afterwards")
    parser.add_argument("--workspace", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--make", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        make(given.keep, given.make)
        return
    if given.stage:
        from quit.workspace import Workspace

        pipeline = last_build(Workspace.open(given.workspace))
        run, state = pipeline.stage_run(given.stage), pipeline.workspace.state
        for path in pipeline.folder(run).rglob("*"):
            if path.is_file():
                path.unlink()
        carry_out(pipeline, given.stage)
        pipeline.workspace.set_current(state | {run.key: pipeline.fingerprints[run.key]})
        return
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for count in map(int, given.sizes.split(",")):
            folder = (given.keep or Path(temporary)) / str(count)
            folder.mkdir(parents=True)
            command = [sys.executable, "-m", "benchmarks.full_size", "--make", str(count), "--keep", str(folder)]
            subprocess.run(command, check=True)
            rows += measure(folder, count, given.formats.split(","))
    print("\n" + table(rows))


if __name__ == "__main__":
    main()
