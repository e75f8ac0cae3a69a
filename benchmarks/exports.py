"""Time every export format at the paper's size: 7,401 questions, 2.4 million passages, 14.4 million answers.

    python benchmarks/exports.py [--questions 7401] [--formats trec,beir] [--positives 10] [--negatives 10]

Makes the workspace of ``benchmarks/synthetic.py`` once. Then each format runs in a process of its own, which reads the
tables and exports them: seconds (without reading), bytes, seconds that the disk needs for as many bytes, peak memory of
the process and what of it the tables take. Prints JSON lines and, at the end, a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the file is run by its path

from benchmarks.measuring import bytes_below, peak_mib, timed, write_seconds
from benchmarks.synthetic import carry_out, make
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.export import FORMATS, FineTuning, export
from quit.export.release import frozen_tables
from quit.export.workspace import readers_of
from quit.release.tables import workspace_tables


def one(folder: Path, name: str, wanted: FineTuning) -> None:
    """Export one format in this process and print what it took."""
    pipeline = last_build(Workspace.open(folder / "W"))
    tables = frozen_tables(workspace_tables(pipeline.workspace, pipeline), readers_of(pipeline))
    loaded, figures, out = peak_mib(), dict[str, float](), folder / "out"
    with timed(figures, "export"):
        export(tables, [name], out, fine_tuning=wanted)
    peak, size = peak_mib(), bytes_below(out)
    print(json.dumps({"format": name, "seconds": round(figures["export"], 1), "bytes": size, "write_seconds":
                      round(write_seconds(folder, size), 1), "peak_mib": peak, "tables_mib": loaded}))  # fmt: skip


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
        pipeline = make(folder, given.questions)
        carry_out(pipeline, pipeline.stage_run("label"))
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
        "\n| format | seconds | GB | disk needs, seconds | peak memory, MiB | of it tables, MiB "
        "|\n|---|---|---|---|---|---|"
    )
    for row in results:
        print(f"| {row['format']} | {row['seconds']} | {row['bytes'] / 1e9:.2f} | {row['write_seconds']} | "
              f"{row['peak_mib']:,} | {row['tables_mib']:,} |")  # fmt: skip


if __name__ == "__main__":
    main()
