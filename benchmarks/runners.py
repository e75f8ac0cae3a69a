"""What each runner takes on this machine: start-up, a shard with next to no work, a whole build. Bytes are compared.

    python -m benchmarks.runners [--questions 16] [--shards 8] [--runners threads,ray,nodes:1,nodes:3]

``nodes:N``: a Ray cluster of N nodes of one CPU each, all on this machine. With three or more, one is killed (SIGKILL)
while hints are ranked, and another one is added. *Head*: the most memory of the head's own processes, workers apart.
Questions beyond the starter's have random words.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.growth import collection
from tests.paths import ROOT
from tests.servers.ray_cluster import RayCluster


def tables(workspace: Path) -> str:
    """Return a hash over every part of a workspace."""
    digest = hashlib.sha256()
    for path in sorted((workspace / "tables").rglob("*.parquet")):
        digest.update(path.relative_to(workspace).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def measure(runner: str, source: Path, folder: Path, shards: int) -> dict[str, float | str]:
    """Build once, with empty caches; returns seconds to the first part, a shard of ``enumerate`` (hardly any work), and
    the whole, the head's MiB, and a hash of the tables."""
    workspace = folder / runner.replace(":", "-")
    environment = {**os.environ, "QUIT_CACHE": str(workspace.with_suffix(".cache")), "NO_COLOR": "1"}
    command = ["build", "-w", str(workspace), "-s", f"jsonl:{source}", "--shards", str(shards), "-q"]
    kind, _, count = runner.partition(":")
    with ExitStack() as stack:
        cluster = None
        if kind == "nodes":
            cluster = stack.enter_context(RayCluster())
            for _ in range(1, int(count)):
                cluster.start_node()
            environment |= cluster.client_environment
            command += ["--set", f"run.workers={count}"]
        command += ["--runner", cluster.address if cluster else kind]
        start, clock = time.time(), time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "quit", *command], env=environment, cwd=ROOT)
        head, killed = 0, cluster is None or int(count) < 3
        while process.poll() is None:
            time.sleep(0.5)
            if cluster:
                head = max(head, cluster.head_bytes())
            if cluster and not killed and any((workspace / "tables").glob("03_rank/*/*/part-*")):
                cluster.kill_node(1)
                cluster.start_node()
                killed = True
        seconds = time.perf_counter() - clock
    if process.returncode:
        raise SystemExit(f"The build with {runner} failed (exit code {process.returncode}).")
    first = min(path.stat().st_mtime for path in (workspace / "tables" / "01_collect").rglob("part-*"))
    moments = sorted(path.stat().st_mtime for path in (workspace / "tables" / "07_enumerate").rglob("part-*"))
    each = (moments[-1] - moments[0]) / max(1, len(moments) - 1)
    return {"first": first - start, "shard": each, "whole": seconds, "head": head / 2**20, "tables": tables(workspace)}


def main() -> None:
    """Measure the runners one after the other and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=16)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--runners", default="threads,ray")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "collection.jsonl"
        lines = collection(options.questions)[: options.questions]
        source.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        print("| runner | first part, s | a shard of enumerate, s | whole build, s | head, MiB | load | tables |")
        print("|---" * 7 + "|")
        for runner in options.runners.split(","):
            row = measure(runner, source, Path(name), options.shards)
            print(
                f"| {runner} | {row['first']:.1f} | {row['shard']:.2f} | {row['whole']:.0f} | {row['head']:.0f} | "
                f"{os.getloadavg()[0]:.1f} | {row['tables']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
