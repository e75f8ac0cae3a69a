"""Time every export format at the paper's size: 7,401 questions, 2.4 million passages, 14.4 million answers.

    python benchmarks/exports.py [--questions 7401] [--formats trec,beir] [--positives 10] [--negatives 10]

Makes synthetic tables once, as Parquet. Then each format runs in a process of its own, which reads the tables and
exports them: seconds (without reading), bytes, seconds that the disk needs for as many bytes, peak memory of the process
and what of it the tables take. Prints JSON lines and, at the end, a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quit.evaluate.normalize import normalize_answer
from quit.export import FORMATS, ExportTables, FineTuning, ReaderInfo, export
from quit.ids import hint_id
from quit.stages.passages import enumerate_passages, permutation_table
from schemas.tables import table

READERS = tuple(
    ReaderInfo(f"{role}-{number}", role, f"{role}-{number}@1", "embedded")
    for role in ("labeler", "reader")
    for number in range(3)
)
POOL, CANDIDATES, RIGHT, HINTS, WORDS_A_HINT = 4_000, 20, 0.15, 5, 16
VOCABULARY = 20_000
SPLITS = ("train",) * 5_000 + ("test",) * 1_547 + ("dev",) * 854
_DICTIONARIES = ["question_id", "permutation", "subset", "answer"]


def synthetic(folder: Path, count: int, seed: int = 7) -> None:
    """Write the tables of a release: every reader draws from its question's twenty answers, the first being right."""
    random = np.random.default_rng(seed)
    ids = [f"syn-{number:05d}" for number in range(count)]
    words = np.array([f"w{number:x}" + "aeiou"[number % 5] * (number % 6) for number in range(VOCABULARY)])
    frequent = (VOCABULARY * random.random((count, HINTS + 1, WORDS_A_HINT)) ** 3).astype(int)  # few words are common
    pool = np.array([f"Name {words[number]} {number}" for number in range(POOL)])
    rows: dict[str, list[dict]] = {
        name: []
        for name in ("questions", "hints", "ranked_hints", "descriptions", "splits", "verdicts", "valid_answers")
    }
    typed = {"coarse": "HUM:HUMAN", "fine": "HUM:ind"}
    step = random.integers(1, POOL // CANDIDATES, count)
    given = (random.integers(0, POOL, count)[:, None] + step[:, None] * np.arange(CANDIDATES)) % POOL
    for place, one in enumerate(ids):
        text = [" ".join(words[line]) for line in frequent[place]]
        answers = pool[given[place]].tolist()
        rows["questions"].append({"question_id": one, "question": f"{text[0][:60]}?", "answers": answers[:1],
                                  "source": "synthetic", "content_key": one, **typed})  # fmt: skip
        split = SPLITS[place * len(SPLITS) // count]
        rows["splits"].append({"question_id": one, "parametric": False, "split": split, "draw": 0.5})
        rows["descriptions"].append(
            {"question_id": one, **typed, "type_confidence": 1.0, "type_producer": "source", "answerability": 0.1,
             "answer_share": 0.1, "completeness": 0.1, "similarity": 0.1, "difficulty": 0.5, "difficulty_bin": "medium",
             "difficulty_producer": "synthetic"}
        )  # fmt: skip
        for number, hint in enumerate(text[1:]):
            shared = {"question_id": one, "hint_id": hint_id(one, number), "hint": hint}
            rows["hints"].append({**shared, "position": number, "source": "synthetic", "file": "none"})
            rows["ranked_hints"].append({**shared, "rank": number, "convergence": 0.5, "producer": "source",
                                         "selected": True})  # fmt: skip
        rows["valid_answers"].append({"question_id": one, "answer": answers[0], "origin": "gold", "passages": 1,
                                      "answer_key": normalize_answer(answers[0])})  # fmt: skip
        rows["verdicts"] += [
            {"question_id": one, "answer_key": normalize_answer(answer), "answer": answer, "correct": not number,
             "basis": "model", "passages": 1, "judge": "synthetic", "producer": "synthetic@1", "raw": "Yes"}
            for number, answer in enumerate(answers)
        ]  # fmt: skip
    for name, some in rows.items():
        pq.write_table(table(name).from_rows(some), folder / f"{name}.parquet")
    passages = enumerate_passages(ids, HINTS)
    pq.write_table(passages, folder / "passages.parquet")
    size = len(permutation_table(HINTS))
    label = np.ones(count * size, dtype=np.int8)
    key = {name: passages[name] for name in ("question_id", "permutation")}
    for info in READERS:
        drawn = random.integers(1, CANDIDATES, count * size)
        drawn[random.random(count * size) < RIGHT] = 0
        if info.role == "labeler":
            label[drawn == 0] = 2
        codes = given[np.repeat(np.arange(count), size), drawn].astype(np.int32)
        answer = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(pool))
        pq.write_table(pa.table({**key, "answer": answer}), folder / f"answers.{info.name}.parquet")
    pq.write_table(pa.table({**key, "label": pa.array(label)}), folder / "labels.parquet")


def load(folder: Path) -> ExportTables:
    """Return the tables, strings of the large ones dictionary-encoded."""
    small = ("questions", "hints", "ranked_hints", "descriptions", "splits", "verdicts", "valid_answers")
    large = ("passages", "labels", *(f"answers.{info.name}" for info in READERS))
    read = {name: pq.read_table(folder / f"{name}.parquet") for name in small}
    read |= {name: pq.read_table(folder / f"{name}.parquet", read_dictionary=_DICTIONARIES) for name in large}
    answers = {info.name: read.pop(f"answers.{info.name}") for info in READERS}
    return ExportTables(**read, answers=answers, readers=READERS, embedded=True)


def one(folder: Path, name: str, wanted: FineTuning) -> None:
    """Export one format in this process and print what it took."""
    tables = load(folder)
    loaded = _peak()
    out = folder / "out"
    start = time.perf_counter()
    export(tables, [name], out, fine_tuning=wanted)
    seconds = time.perf_counter() - start
    peak = _peak()
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(json.dumps({"format": name, "seconds": round(seconds, 1), "bytes": size, "write_seconds":
                      round(_write_seconds(folder / "floor", size), 1), "peak_mib": peak, "tables_mib": loaded}))  # fmt: skip


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _write_seconds(path: Path, size: int) -> float:
    piece = os.urandom(2**24)
    start = time.perf_counter()
    with path.open("wb") as file:
        for begin in range(0, size, len(piece)):
            file.write(piece[: size - begin])
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - start
    path.unlink()
    return seconds


def main() -> None:
    """Make the tables, then measure each format in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=7_401)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--positives", type=int, default=10)
    parser.add_argument("--negatives", type=int, default=10)
    parser.add_argument("--negative-kind", default="other")
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder:
        one(given.folder, given.formats, FineTuning(given.positives, given.negatives, given.negative_kind))
        return
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        synthetic(folder, given.questions)
        for chosen in given.formats.split(","):
            passed = ["--positives", str(given.positives), "--negatives", str(given.negatives)]
            passed += ["--negative-kind", given.negative_kind]
            done = subprocess.run(
                [sys.executable, __file__, "--in", name, "--formats", chosen, *passed],
                stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
            results.append(json.loads(done.stdout.splitlines()[-1]))
            print(json.dumps(results[-1]), flush=True)
            shutil.rmtree(folder / "out")
    print(
        "\n| format | seconds | GB | disk needs, seconds | peak memory, MiB | of it tables, MiB |\n|---|---|---|---|---|---|"
    )
    for row in results:
        print(f"| {row['format']} | {row['seconds']} | {row['bytes'] / 1e9:.2f} | {row['write_seconds']} | "
              f"{row['peak_mib']:,} | {row['tables_mib']:,} |")  # fmt: skip


if __name__ == "__main__":
    main()
