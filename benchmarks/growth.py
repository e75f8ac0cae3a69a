"""How each stage of a build grows with the collection, on the embedded profile.

    OMP_NUM_THREADS=1 python -m benchmarks.growth --source triviahg:Copilot.json --source wikihint:test.json [--sizes
    33,66,132,264]

Takes the first questions of the starter and of the sources in turn, builds them stage by stage in this process without
a scheduler, and prints CPU seconds of each stage (which other work on the machine hardly changes), bytes of its tables,
and by how much doubling the collection multiplies the CPU seconds (2 is linear). Values that are kept by content are
kept in a cache of the run's own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from itertools import zip_longest
from pathlib import Path

from benchmarks.measuring import bytes_below, peak_mib
from benchmarks.synthetic import STARTER, begun, carry_out
from quit.sources import parse_source, read_source
from quit.sources.records import RawQuestion
from quit.text.normalize import normalize_question


def main() -> None:
    """Build each size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", action="append", default=[])
    parser.add_argument("--sizes", default="33,66,132,264")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    questions = _questions([f"jsonl:{STARTER}", *options.source])
    sizes = [size for size in map(int, options.sizes.split(",")) if size <= len(questions)]
    if not sizes:
        parser.error(f"the sources have {len(questions)} questions")
    measured: dict[int, dict[str, tuple[float, int]]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["QUIT_CACHE"] = str(Path(folder) / "cache")
            measured[size] = _build(Path(folder), questions[:size])
        print(json.dumps({"size": size, "peak_mib": peak_mib(), "stages": measured[size]}), flush=True)
    last, before = sizes[-1], sizes[-2] if len(sizes) > 1 else sizes[-1]
    print("| stage | " + " | ".join(f"{size}: CPU s" for size in sizes) + " | KB a question | growth |")
    print("|---" * (3 + len(sizes)) + "|")
    for stage in measured[last]:
        seconds = [measured[size][stage][0] for size in sizes]
        growth = measured[last][stage][0] / max(1e-9, measured[before][stage][0])
        doubled = growth ** (1 / math.log2(last / before)) if last > before else growth
        kilobytes = measured[last][stage][1] / last / 1000
        print(f"| {stage} | " + " | ".join(f"{one:.1f}" for one in seconds) + f" | {kilobytes:.1f} | {doubled:.2f} |")


def _questions(sources: list[str]) -> list[dict]:
    """Return the sources' questions in turn, each once, as lines of the project's own format."""
    read = [[record.question for record in read_source(parse_source(text)) if record.question] for text in sources]
    found: dict[str, dict] = {}
    for turn in zip_longest(*read):
        for one in turn:
            if one is not None:
                found.setdefault(normalize_question(one.question), _line(one, len(found)))
    return list(found.values())


def _line(one: RawQuestion, place: int) -> dict:
    hints = []
    for hint in one.hints:
        told = {"hint": hint.text, "convergence": hint.convergence, "scores": hint.scores}
        hints.append({key: value for key, value in told.items() if value is not None})
    line = {"id": f"{place:05d}", "question": one.question, "answers": list(one.answers), "hints": hints}
    return line | ({"candidates": list(one.candidates)} if one.candidates else {})


def _build(folder: Path, lines: list[dict]) -> dict[str, tuple[float, int]]:
    source = folder / "collection.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    pipeline = begun(folder)
    found = {}
    for run in pipeline.runs:
        start = time.process_time()
        carry_out(pipeline, run)
        found[run.key] = (round(time.process_time() - start, 2), bytes_below(pipeline.folder(run)))
    return found


if __name__ == "__main__":
    main()
