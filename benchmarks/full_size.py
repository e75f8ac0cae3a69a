"""Time the table work at the paper's size, command by command, and how it grows: 100, 740 and 7,401 questions.

    python -m benchmarks.full_size [--sizes 100,740,7401] [--formats trec,beir] [--keep FOLDER]

Makes a synthetic collection (five hints a question; twenty-five answers a question, given with falling frequency by six
readers) and a workspace whose stages up to the readers' answers are filled in without a model; every other step is the
real one, as people run it, in a process of its own. A row: seconds of the process, its peak memory, bytes it wrote, and
the seconds that the disk needs to take as many bytes and that one core needs to encode as many characters as UTF-8.
Vectors and findings are kept in a cache of the run's own, so that the first row of each kind is a cold one. Two rows
are floors: to start a process, and to read all answers with Arrow. The
paper's index scripts (``tests/export/plain_index.py``) run beside ``paper-index`` on the same data: the baseline.
Prints JSON lines and, at the end, a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.measuring import bytes_below, timed, write_seconds
from benchmarks.synthetic import carry_out, make
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.export import FORMATS
from quit.report.lookup import Lookup, Search


def measured(name: str, command: Sequence[str], wrote: Sequence[Path], count: int) -> dict[str, Any]:
    """Run a command as a process of its own; return what it took. ``wrote``: patterns of the files and folders it
    wrote. Raises ``SystemExit`` with its output when it fails."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryFile() as output:
        with timed(figures, "seconds"):
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
        if status:
            output.seek(0)
            raise SystemExit(f"{name} failed:\n{output.read().decode()[-3000:]}")
    size = sum(bytes_below(path) for pattern in wrote for path in pattern.parent.glob(pattern.name))
    return {"questions": count, "step": name, "seconds": round(figures["seconds"], 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
            "peak_mib": used.ru_maxrss // 1024, "bytes": size}  # fmt: skip


def limits(folder: Path, size: int) -> dict[str, float]:
    """Return the seconds that the disk needs for so many bytes (flushed), and one core to encode as many characters."""
    text, figures = "It was first seen near a river. " * 2**19, dict[str, float]()
    with timed(figures, "core"):
        for _ in range(4):
            (text + "é").encode()
    core = figures["core"] / (4 * len(text)) * size
    return {"disk_seconds": round(write_seconds(folder, size), 2), "utf8_seconds": round(core, 2)}


def measure(folder: Path, count: int, formats: Sequence[str]) -> list[dict[str, Any]]:
    """Run every step at one size; returns the rows, and prints them as they come."""
    workspace, out = folder / "W", folder / "exports"
    rows: list[dict[str, Any]] = []

    def step(name: str, command: Sequence[str], *wrote: Path) -> None:
        row = measured(name, command, wrote, count)
        rows.append(row | limits(folder, row["bytes"]))
        print(json.dumps(rows[-1]), flush=True)

    def quit_(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "quit", *arguments]

    inner = [sys.executable, "-m", "benchmarks.full_size", "--workspace", str(workspace), "--stage"]
    w = ["-w", str(workspace)]
    step("floor: start", quit_("--version"))
    step("floor: scan of all answers", [*inner, "scan"])
    step("enumerate", [*inner, "enumerate"], workspace / "tables" / "07_*")
    step("label", [*inner, "label"], workspace / "tables" / "10_*")
    step("update, nothing kept", [*inner, "update"], workspace / "tables" / "11_*")
    step("update, all findings kept", [*inner, "update"], workspace / "tables" / "11_*")
    step("roles", [*inner, "roles"], workspace / "tables" / "12_*")
    step("release create", quit_("release", "create", *w, "--name", "v1"), workspace / "releases" / "v1")
    step("release verify", quit_("release", "verify", str(workspace / "releases" / "v1")))
    step("review apply", quit_("review", "apply", *w), workspace / "tables" / "11_*")
    step("release create, reviewed", quit_("release", "create", *w, "--name", "v2"), workspace / "releases" / "v2")
    step(
        "release diff", quit_("release", "diff", *(str(workspace / "releases" / one) for one in ("v1", "v2")), "--json")
    )
    step("report", quit_("report", *w, "--quiet", "--out", str(folder / "report.html")), folder / "report.html")
    step("browse: first page", [*inner, "browse"])
    for name in formats:
        keys = ["--paper-keys"] if name in ("release-json", "paper-index") else []
        command = quit_("export", "-w", str(workspace / "releases" / "v2"), "-f", name, *keys, "--out", str(out))
        step(f"export {name}", command, out / name)
        if name == "release-json":
            imported = folder / "imported"
            step("release import", quit_("release", "import", str(out / name), "--out", str(imported)), imported)
    if {"release-json", "paper-index"} <= set(formats):
        script = (
            "import sys, pathlib; from tests.export.plain_index import plain_index; "
            "plain_index(*map(pathlib.Path, sys.argv[1:]))"
        )
        step(
            "baseline: index scripts",
            [sys.executable, "-c", script, str(out / "release-json"), str(folder / "plain")],
            folder / "plain",
        )
        for path in (folder / "plain").rglob("*.jsonl"):
            if path.read_bytes() != (out / "paper-index" / path.relative_to(folder / "plain")).read_bytes():
                raise SystemExit(f"{path.name} differs from the paper-index export")
    return rows


def run_alone(what: str, workspace: Path) -> None:
    """Carry out one stage again, make the browser view's table (``browse``), or a floor: ``scan`` reads
    the columns of all readers' answers that labels and exports need."""
    if what == "scan":
        for path in workspace.glob("tables/08_read_*/*/answers/*.parquet"):
            with pq.ParquetFile(path, read_dictionary=["question_id", "permutation"]) as part:
                part.read(["question_id", "permutation", "number"])
    elif what == "browse":
        Lookup(Workspace.open(workspace), labelers=3).search(Search())
    else:
        pipeline = last_build(Workspace.open(workspace))
        run, state = pipeline.stage_run(what), pipeline.workspace.state
        pipeline.workspace.discard(pipeline.folder(run))
        carry_out(pipeline, run)
        pipeline.workspace.set_current(state | {run.key: pipeline.fingerprints[run.key]})


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
            told.append(f"| {row['step']} | {row['seconds']} | {row['peak_mib']:,} | {row['bytes'] / 1e9:.2f} | "
                        f"{row['disk_seconds']} | "
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
        run_alone(given.stage, given.workspace)
        return
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for count in map(int, given.sizes.split(",")):
            folder = (given.keep or Path(temporary)) / str(count)
            folder.mkdir(parents=True)
            os.environ["QUIT_CACHE"] = str(folder / "cache")
            command = [sys.executable, "-m", "benchmarks.full_size", "--make", str(count), "--keep", str(folder)]
            subprocess.run(command, check=True)
            rows += measure(folder, count, given.formats.split(","))
    print("\n" + table(rows))


if __name__ == "__main__":
    main()
