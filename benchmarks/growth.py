"""How each stage of a build grows with the collection, on the embedded profile.

    OMP_NUM_THREADS=1 python -m benchmarks.growth [--source triviahg:Copilot.json] [--sizes 100,400,1600]

Takes the questions of the starter and of the sources in turn, and after them questions of random words with the lengths
of real ones. Builds each size stage by stage in this process without a scheduler. Prints the CPU seconds of each stage
(which other work on the machine hardly changes), the kilobytes of its tables per question, and the exponent of its
growth between two sizes (1 is linear). Values that are kept by content are kept in a cache of the run's own.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise, zip_longest
from math import log
from pathlib import Path
from random import Random

from benchmarks.measuring import bytes_below, peak_mib
from benchmarks.synthetic import STARTER, begun, carry_out
from quit.sources import parse_source, read_source
from quit.sources.records import RawQuestion
from quit.text.normalize import normalize_question


def main() -> None:
    """Build each size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", action="append", default=[])
    parser.add_argument("--sizes", default="100,400,1600")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    sizes = [int(size) for size in options.sizes.split(",")]
    questions = collection(sizes[-1], options.source)
    measured: dict[int, dict[str, tuple[float, int]]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["QUIT_CACHE"] = str(Path(folder) / "cache")
            measured[size] = _build(Path(folder), questions[:size])
        print(json.dumps({"size": size, "peak_mib": peak_mib(), "stages": measured[size]}), flush=True)
    pairs = list(pairwise(sizes))
    titles = [f"{size}: CPU s" for size in sizes] + ["KB per question"] + [f"exponent {a} to {b}" for a, b in pairs]
    print("| stage | " + " | ".join(titles) + " |\n" + "|---" * (1 + len(titles)) + "|")
    for stage, (_, size) in measured[sizes[-1]].items():
        seconds = {size: measured[size][stage][0] for size in sizes}
        cells = [f"{one:.1f}" for one in seconds.values()] + [f"{size / sizes[-1] / 1000:.1f}"]
        cells += [f"{log(seconds[b] / seconds[a]) / log(b / a):.2f}" if seconds[a] > 0.1 else "" for a, b in pairs]
        print(f"| {stage} | " + " | ".join(cells) + " |")


def collection(count: int, sources: Sequence[str] = ()) -> list[dict]:
    """Return the questions of the starter and of the sources in turn, and after them random ones, as lines of the
    project's own format: ``count``, or all of the sources."""
    questions = _questions([f"jsonl:{STARTER}", *sources])
    return questions + _random_questions(questions, count - len(questions))


def _questions(sources: list[str]) -> list[dict]:
    """Return the sources' questions in turn, each once, as lines of the project's own format."""
    read = [[record.question for record in read_source(parse_source(text)) if record.question] for text in sources]
    found: dict[str, dict] = {}
    for turn in zip_longest(*read):
        for one in turn:
            if one is not None:
                found.setdefault(normalize_question(one.question), _line(one, len(found)))
    return list(found.values())


def _random_questions(real: list[dict], count: int, seed: int = 7) -> list[dict]:
    """Return questions whose texts have as many words as those of a real question, of the same words at random."""
    random = Random(seed)
    words = [word for line in real for hint in line["hints"] for word in hint["hint"].split()]
    names = [word.strip(".,") for word in words if word[0].isupper()]

    def like(text: str) -> str:
        return " ".join(random.choices(words, k=len(text.split())))

    lines = []
    for place in range(len(real), len(real) + count):
        model = random.choice(real)
        hints = [{**hint, "hint": f"{like(hint['hint'])}."} for hint in model["hints"]]
        line = {"id": f"{place:05d}", "question": f"{like(model['question'])}?", "hints": hints}
        lines.append(line | {"answers": [" ".join(random.choices(names, k=2))]})
    return lines


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
