"""Time labels and the label update at the paper's size in one process: table work without start, flow and models.

    python -m benchmarks.table_work [--questions 7401] [--reviewed 2590] [--overruled 0.25] [--keep FOLDER]

Makes the workspace of ``benchmarks/synthetic.py`` with answers whose words occur in hints, so that the leakage check of
the update has work. Prints JSON: seconds of the stage ``label``, of deciding what reviews come to, of the update
without the leakage check, of that check (first with nothing kept, then with everything remembered); rows; peak
memory.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.measuring import peak_mib, timed
from benchmarks.synthetic import OVERRULED, PLACES, carry_out, make
from quit.common.ranges import WHOLE
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore
from quit.stages.leaks import kept

WORDS = "river tower engine poem desert island bridge king planet metal opera garden winter harbour signal".split()


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=7401)
    parser.add_argument("--reviewed", type=int, default=2590)
    parser.add_argument("--overruled", type=float, default=OVERRULED)
    parser.add_argument("--keep", type=Path, default=None, help="folder to make the workspace in, or to find it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["QUIT_CACHE"] = str(Path(temporary) / "cache")  # nothing is kept at the first leakage check
        folder = arguments.keep or Path(temporary)
        if not (folder / "W" / "state.json").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            names = np.array([f"{WORDS[i % 15].title()} {WORDS[i // 15 % 15].title()} {i}" for i in range(PLACES)])
            make(folder, arguments.questions, arguments.reviewed, arguments.overruled, names)
        print(json.dumps(measured(folder / "W"), indent=1))


def measured(folder: Path) -> dict[str, Any]:
    """Return what the two stages take in a workspace with answers, verdicts and reviews."""
    seconds: dict[str, float] = {}
    store = ReviewStore(Workspace.open(folder))
    pipeline = last_build(store.workspace)
    label = pipeline.stage_run("label")
    pipeline.workspace.discard(pipeline.folder(label))
    _ = pipeline.models.equivalence, pipeline.models.encoder.encode(["warm"])
    with timed(seconds, "label"):
        carry_out(pipeline, label)
    store.set_applied(store.parts)
    check = kept.cached_leaks_of
    for leak_check in ("leak_check", "leak_check_remembered"):
        pipeline = last_build(store.workspace)
        run = pipeline.stage_run("update")
        pipeline.workspace.discard(pipeline.folder(run))
        seconds.update(decide=0.0, update=0.0)  # those of the second time are printed
        _ = pipeline.models.equivalence, pipeline.models.encoder.encode(["warm"])
        with timed(seconds, "decide"):
            decisions = pipeline.reviews.decisions

        def find_leaks(*given: Any, name: str = leak_check) -> Any:
            with timed(seconds, name):
                return check(*given)

        with patch.object(kept, "cached_leaks_of", find_leaks), timed(seconds, "update"):
            pipeline.run_shard(run, WHOLE)
        seconds["update"] -= seconds[leak_check]
    pipeline.finish(run)
    tables = pipeline.workspace.current()["update"][1]["tables"]
    return {
        "reviewed": len(decisions.column("question_id").unique()),
        **{f"{name}_s": round(value, 2) for name, value in seconds.items()},
        **{f"{name}_rows": tables[name]["rows"] for name in ("labels", "changes", "rejects")},
        "peak_mib": peak_mib(),
    }


if __name__ == "__main__":
    main()
