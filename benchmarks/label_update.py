"""Time the label update at the paper's size: 8,095 questions, 2.6 million passages, people's verdicts on dev and test.

    python benchmarks/label_update.py [--questions 8095] [--reviewed 3095] [--overruled 0.25]

Makes the workspace of ``benchmarks/synthetic.py``, runs the stage that ``quit review apply`` runs, and prints JSON:
seconds for deciding, updating, writing; rows; peak memory. The judge's and the readers' work is synthetic, so the
leakage check is timed on text of the bundled collection's kind: short hints, and answers whose words occur in them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the file is run by its path

from benchmarks.measuring import peak_mib, timed
from benchmarks.synthetic import OVERRULED, PLACES, carry_out, make
from quit.common.ranges import WHOLE
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore

WORDS = "river tower engine poem desert island bridge king planet metal opera garden winter harbour signal".split()


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=8095)
    parser.add_argument("--reviewed", type=int, default=3095)
    parser.add_argument("--overruled", type=float, default=OVERRULED)
    parser.add_argument("--keep", type=Path, default=None, help="folder to make the workspace in, or to find it")
    arguments = parser.parse_args()
    folder = arguments.keep or Path(tempfile.mkdtemp())
    if not (folder / "W" / "state.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        names = np.array([f"{WORDS[i % 15].title()} {WORDS[i // 15 % 15].title()} {i}" for i in range(PLACES)])
        made = make(folder, arguments.questions, arguments.reviewed, arguments.overruled, names)
        carry_out(made, made.stage_run("label"))
    store = ReviewStore(Workspace.open(folder / "W"))
    store.set_applied(store.parts)
    pipeline = last_build(store.workspace)
    update = pipeline.stage_run("update")
    pipeline.workspace.discard(pipeline.folder(update))
    _ = pipeline.models.equivalence, pipeline.models.encoder.encode(["warm"])
    seconds: dict[str, float] = {}
    write = pipeline.workspace.write_part

    def write_part(*arguments: Any) -> None:
        with timed(seconds, "write"):
            write(*arguments)

    pipeline.workspace.write_part = write_part  # type: ignore[method-assign]
    with timed(seconds, "total"):
        with timed(seconds, "decide"):
            decisions = pipeline.decisions
        pipeline.work_on(update, WHOLE)
    pipeline.finish(update)
    tables = pipeline.workspace.current()["update"][1]["tables"]
    figures = {
        "questions": arguments.questions,
        "reviewed": len(set(decisions.column("question_id").to_pylist())),
        "decide_s": seconds["decide"],
        "update_s": seconds["total"] - seconds["decide"] - seconds["write"],
        "total_s": seconds["total"],
        **{f"{name}_rows": tables[name]["rows"] for name in ("labels", "changes", "rejects")},
        "peak_mib": peak_mib(),
    }
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
