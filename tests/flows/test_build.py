"""The build flow as its users meet it: real processes, killed and resumed, sharded, raced, and fed bad input."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import schemas
from quit.workspace import Workspace
from tests.comparing import bytes_of, tables_of
from tests.conftest import ROOT, run_quit

pytestmark = pytest.mark.slow


def test_a_build_makes_every_table_and_rejects_bad_lines(built: Path) -> None:
    tables = tables_of(built)
    may_be_empty = ("scores", "leak_findings", "overrides", "drawn_candidates", "second_verdicts", "reviews", "changes")
    assert all(len(tables[name]) for name in schemas.TABLES if name not in may_be_empty)
    assert len(tables["passages"]) == 325 * len(tables["splits"])
    assert len(tables["answers"]) == 6 * len(tables["passages"])
    assert len(tables["labels"]) == len(tables["passages"])
    left_out = [row for row in tables["rejects"].to_pylist() if row["kind"] == "record"]
    assert [(row["reason"], row["position"]) for row in left_out] == [("not_json", 18), ("missing_field", 19)]
    assert all(row["file"] == "small.jsonl" and row["source"] == "jsonl" and row["detail"] for row in left_out)


def test_every_row_names_its_producer(built: Path) -> None:
    tables = tables_of(built)
    for name, column in (
        ("answers", "producer"),
        ("verdicts", "producer"),
        ("descriptions", "type_producer"),
        ("ranked_hints", "producer"),
    ):
        assert all(tables[name].column(column).to_pylist())


def test_a_second_build_runs_nothing(built: Path, prefect_home: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.rglob("*") if path.is_file()}
    started = time.monotonic()
    done = run_quit("build", "-w", str(built), home=prefect_home)
    assert done.returncode == 0 and "up to date" in done.stderr
    assert time.monotonic() - started < 30
    assert {path: path.stat().st_mtime_ns for path in built.rglob("*") if path.is_file()} == before


def test_the_number_of_shards_changes_no_row(
    built: Path, small_source: Path, tmp_path: Path, prefect_home: Path
) -> None:
    done = run_quit(
        "build", "-w", str(tmp_path / "W"), "-s", f"jsonl:{small_source}", "--shards", "7", home=prefect_home
    )
    assert done.returncode == 0, done.stderr
    seven, one = tables_of(tmp_path / "W"), tables_of(built)
    for name in schemas.TABLES:
        assert seven[name].equals(one[name]), name
    assert Workspace.open(tmp_path / "W").state == Workspace.open(built).state


def test_killed_at_any_point_it_resumes_to_the_same_bytes(
    built: Path, small_source: Path, tmp_path: Path, prefect_home: Path
) -> None:
    """kill -9 as soon as a stage has written its first part, in five stages one after the other, then let it finish."""
    folder = tmp_path / "W"
    command = [
        sys.executable,
        "-m",
        "quit.cli",
        "build",
        "-w",
        str(folder),
        "-s",
        f"jsonl:{small_source}",
        "--shards",
        "3",
    ]
    environment = {**os.environ, "PREFECT_HOME": str(prefect_home)}
    for stage in ("02_filter", "04_describe", "05_probe", "08_read_minilm-late", "09_judge"):
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=ROOT,
            start_new_session=True,
        )
        _wait(lambda stage=stage: any((folder / "tables" / stage).rglob("part-*.parquet")), process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)  # its Prefect server holds the pipe too: it has ended
        assert not any((folder / "tables" / "10_label").rglob("manifest.json"))
    finished = {path: path.stat().st_mtime_ns for path in (folder / "tables").rglob("part-*.parquet")}
    done = run_quit("build", "-w", str(folder), home=prefect_home)
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in finished} == finished  # nothing that was done is done again
    undisturbed = tmp_path / "U"
    assert (
        run_quit(
            "build", "-w", str(undisturbed), "-s", f"jsonl:{small_source}", "--shards", "3", home=prefect_home
        ).returncode
        == 0
    )
    assert bytes_of(folder) == bytes_of(undisturbed)


def _wait(ready: Callable[[], bool], process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 300
    while not ready():
        assert process.poll() is None, "the build ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_builds_at_once_take_turns(small_source: Path, tmp_path: Path, prefect_home: Path) -> None:
    arguments = [sys.executable, "-m", "quit.cli", "build", "-w", str(tmp_path / "W"), "-s", f"jsonl:{small_source}"]
    environment = {**os.environ, "PREFECT_HOME": str(prefect_home)}
    both = [
        subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )
        for _ in range(2)
    ]
    ends = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], ends
    assert Workspace.open(tmp_path / "W").damaged() == []


def test_new_settings_rerun_only_what_depends_on_them(built: Path, tmp_path: Path, prefect_home: Path) -> None:
    folder = tmp_path / "W"
    shutil.copytree(built, folder)
    before = Workspace.open(folder).state
    done = run_quit("build", "-w", str(folder), "--set", "judge.threshold=0.9", home=prefect_home)
    assert done.returncode == 0, done.stderr
    after = Workspace.open(folder).state
    same = {run for run in before if before[run] == after[run]}
    assert {"collect", "filter", "rank", "describe"} <= same
    assert not same & {"probe", "judge", "label"}
    back = run_quit("build", "-w", str(folder), "--set", "judge.threshold=0.5", home=prefect_home)
    assert back.returncode == 0 and "up to date" not in back.stderr
    assert Workspace.open(folder).state == before  # older tables are still there: going back costs nothing


def test_a_new_source_moves_no_question_between_splits(
    built: Path, small_source: Path, tmp_path: Path, prefect_home: Path
) -> None:
    lines = (ROOT / "quit" / "starter" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    more = tmp_path / "more.jsonl"
    more.write_text("\n".join(random.Random(0).sample(lines[60:], 6)) + "\n", encoding="utf-8")
    done = run_quit(
        "build", "-w", str(tmp_path / "W"), "-s", f"jsonl:{small_source}", "-s", f"jsonl:{more}", home=prefect_home
    )
    assert done.returncode == 0, done.stderr
    old = {row["question_id"]: row for row in Workspace.open(built).read("splits").to_pylist()}
    new = {row["question_id"]: row for row in Workspace.open(tmp_path / "W").read("splits").to_pylist()}
    assert len(new) > len(old)
    for identity, row in old.items():
        # A larger pool of answers can change who is parametrically answerable; the draw itself never moves.
        assert new[identity]["draw"] == row["draw"]
        if new[identity]["parametric"] == row["parametric"]:
            assert new[identity]["split"] == row["split"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-s", "triviahg:nowhere.json"], 3, "nowhere.json does not exist"),
        (["-s", "trivia:x.json"], 4, "'triviahg'"),
        (["-s", "jsonl:{tmp}/binary.jsonl"], 3, "binary.jsonl"),
        (["-s", "jsonl:{tmp}/empty.jsonl"], 3, "empty"),
        (["-s", "jsonl:{tmp}/few.jsonl"], 3, "five|hints|question"),
        (["-s", "wikihint:{tmp}/few.jsonl"], 3, "few.jsonl"),
        (["-s", "starter", "-p", "papre"], 4, "no profile 'papre'"),
        (["-s", "starter", "--set", "labels.max_tokens=3"], 4, "max_new_tokens"),
        ([], 3, "--source"),
    ],
)
def test_bad_input_is_one_clear_line(
    tmp_path: Path, prefect_home: Path, arguments: list[str], code: int, said: str
) -> None:
    import re

    (tmp_path / "binary.jsonl").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "few.jsonl").write_text(
        json.dumps({"id": 1, "question": "Who?", "answers": ["me"], "hints": ["a hint"]}) + "\n"
    )
    filled = [text.replace("{tmp}", str(tmp_path)) for text in arguments]
    done = run_quit("build", "-w", str(tmp_path / "W"), *filled, home=prefect_home)
    assert done.returncode == code, done.stderr
    assert re.search(said, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 6


def test_an_unwritable_workspace_is_one_clear_line(small_source: Path, prefect_home: Path) -> None:
    done = run_quit("build", "-w", "/proc/nowhere/W", "-s", f"jsonl:{small_source}", home=prefect_home)
    assert done.returncode == 7 and "Could not write" in done.stderr and "Traceback" not in done.stderr


def test_works_with_a_server(small_source: Path, tmp_path: Path, prefect_home: Path) -> None:
    """With a Prefect server: the flow run, its tasks and its artifacts are there to see."""
    from prefect.client.orchestration import get_client
    from prefect.testing.utilities import prefect_test_harness

    from flows.build import build

    with prefect_test_harness(server_startup_timeout=60):
        summary = build(str(tmp_path / "W"), [f"jsonl:{small_source}"], "embedded", ["run.shards=2"])
        assert "Labels" in summary or "label 2" in summary
        with get_client(sync_client=True) as client:
            assert [run.state.type for run in client.read_flow_runs()] == ["COMPLETED"]
            names = [run.name for run in client.read_task_runs()]
            keys = {artifact.key for artifact in client.read_artifacts()}
    assert {"collect-0", "filter-0", "filter-1", "label-1"} <= set(names)
    assert {"quit-build", "quit-build-summary"} <= keys
