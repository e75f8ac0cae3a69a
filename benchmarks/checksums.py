"""What it costs to compare parts with their manifests before they are read.

    python -m benchmarks.checksums [--questions 740] [--formats mteb,beir,trec]

Makes the synthetic workspace of ``benchmarks.synthetic`` and runs each command in a separate process: processor seconds
of the whole command (with its start), those of :func:`quit.engine.parts.fault_of` in it, and the mebibytes that were
hashed. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from benchmarks.synthetic import carry_out, make
from quit.common.manifests import FileState


def measure(arguments: list[str]) -> dict[str, float]:
    """Run a command of ``quit`` in this process; returns ``seconds``, ``checking`` and ``mib``."""
    import quit.engine.parts
    import quit.engine.repair
    import quit.engine.workspace
    from quit.cli import main

    compare, checked = quit.engine.parts.fault_of, {"seconds": 0.0, "bytes": 0}
    seen: set[Path] = set()

    def timed(path: Path, described: FileState | None) -> str | None:
        start = time.process_time()
        fault = compare(path, described)
        checked["seconds"] += time.process_time() - start
        if path not in seen:
            seen.add(path)
            checked["bytes"] += path.stat().st_size
        return fault

    with (
        patch.object(quit.engine.repair, "fault_of", timed),
        patch.object(quit.engine.workspace, "fault_of", timed),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        main(arguments)
    return {"seconds": time.process_time(), "checking": checked["seconds"], "mib": checked["bytes"] / (1 << 20)}


def main() -> None:
    """Make the workspace and print a row a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=740)
    parser.add_argument("--formats", default="mteb,beir,trec")
    parser.add_argument("--measure", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pipeline = make(folder, given.questions)
        for stage in ("label", "update"):
            carry_out(pipeline, pipeline.stage_run(stage))
        commands = {
            f"export {name}": ["export", "-f", name, "--out", str(folder / "E")] for name in given.formats.split(",")
        }
        commands |= {"report": ["report"], "build, up to date": ["build", "--quiet"]}
        print("| command | processor seconds | of these, comparing parts | MiB compared |\n|---|---|---|---|")
        for name, arguments in commands.items():
            command = [sys.executable, "-m", "benchmarks.checksums", "--measure", *arguments, "-w", str(folder / "W")]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            row = json.loads(done.stdout.splitlines()[-1])
            share = row["checking"] / row["seconds"]
            print(
                f"| {name} | {row['seconds']:.1f} | {row['checking']:.2f} ({share:.1%}) | {row['mib']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
