"""What each runner takes on this machine: start-up, a shard with next to no work, a whole build. Bytes are compared.

``python -m benchmarks.runners [--questions 16] [--shards 8] [--runners threads,ray]``
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import timed
from benchmarks.synthetic import starter

ROOT = Path(__file__).parents[1]


def tables(workspace: Path) -> str:
    """Return a hash over every part of a workspace."""
    digest = hashlib.sha256()
    for path in sorted((workspace / "tables").rglob("*.parquet")):
        digest.update(path.relative_to(workspace).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def measure(runner: str, source: Path, folder: Path, shards: int, cache: Path) -> dict[str, float | str]:
    """Build once; returns seconds to the first part, a shard of ``enumerate`` (hardly any work), and the whole."""
    environment = {**os.environ, "QUIT_CACHE": str(cache), "NO_COLOR": "1"}
    workspace = folder / runner.split(":")[0]
    command = [
        "build",
        "-w",
        str(workspace),
        "-s",
        f"jsonl:{source}",
        "--shards",
        str(shards),
        "--runner",
        runner,
        "-q",
    ]
    wall, figures = time.time(), dict[str, float]()
    with timed(figures, "whole"):
        subprocess.run([sys.executable, "-m", "quit", *command], check=True, env=environment, cwd=ROOT)
    first = min(path.stat().st_mtime for path in (workspace / "tables" / "01_collect").rglob("part-*"))
    moments = sorted(path.stat().st_mtime for path in (workspace / "tables" / "07_enumerate").rglob("part-*"))
    each = (moments[-1] - moments[0]) / max(1, len(moments) - 1)
    return {"runner": runner, "first": first - wall, "shard": each, **figures, "bytes": tables(workspace)}


def main() -> None:
    """Measure the runners one after the other and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=16)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--runners", default="threads,ray")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = starter(folder, given.questions)
        print(
            "| runner | first part, s | a shard of enumerate, s | whole build, s | load | tables "
            "|\n|---|---|---|---|---|---|"
        )
        for runner in given.runners.split(","):
            made = measure(runner, source, folder, given.shards, folder / f"cache-{runner.split(':')[0]}")
            load = os.getloadavg()[0]
            print(
                f"| {runner} | {made['first']:.1f} | {made['shard']:.2f} | {made['whole']:.0f} | {load:.1f} | "
                f"{made['bytes']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
