"""The build flow as its users meet it: killed and resumed, sharded, raced, and fed bad input."""

import os
import signal
from pathlib import Path

import pytest

from quit import contracts
from quit.engine.workspace import Workspace
from tests.comparing import files_of, tables_of
from tests.paths import FEW
from tests.running import call_quit, start_quit, until

pytestmark = pytest.mark.slow


def test_a_build_makes_every_table_and_rejects_bad_lines(built: Path) -> None:
    tables = tables_of(built)
    may_be_empty = {"scores", "leak_findings", "overrides", "drawn_candidates", "second_verdicts", "reviews", "changes"}
    assert all(len(tables[name]) for name in contracts.TABLES if name not in may_be_empty)
    assert len(tables["passages"]) == 325 * len(tables["splits"])
    assert len(tables["answers"]) == 6 * len(tables["passages"])
    assert len(tables["labels"]) == len(tables["passages"])
    left_out = [row for row in tables["rejects"].to_pylist() if row["kind"] == "record"]
    assert [(row["reason"], row["position"]) for row in left_out] == [("not_json", 18), ("missing_field", 19)]
    assert all(row["file"] == "small.jsonl" and row["source"] == "jsonl" and row["detail"] for row in left_out)


def _build(workspace: Path, source: Path, *more: str) -> list[str]:
    return ["build", "-w", str(workspace), "-s", f"jsonl:{source}", "-p", str(FEW), "--shards", "3", *more]


def test_a_second_build_runs_nothing(workspace: Workspace) -> None:
    before = {path: path.stat().st_mtime_ns for path in workspace.path.rglob("*") if path.is_file()}
    result = call_quit("build", "-w", str(workspace.path))
    assert "up to date" in result.err
    assert {path: path.stat().st_mtime_ns for path in workspace.path.rglob("*") if path.is_file()} == before


def test_killed_at_any_point_it_resumes_to_the_same_bytes(few_built, few_source, tmp_path) -> None:
    """kill -9 as soon as a stage has written its first part, in four stages one after the other, then let it finish."""
    folder = tmp_path / "W"
    for stage in ("02_filter", "05_probe_minilm-late", "08_read_minilm-late", "09_judge"):
        process = start_quit(*_build(folder, few_source), log=tmp_path / "errors")
        until(lambda stage=stage: any((folder / "tables" / stage).rglob("part-*.parquet")), process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)
        assert not any((folder / "tables" / "10_label").rglob("manifest.json"))
    before = {path: path.stat().st_mtime_ns for path in (folder / "tables").rglob("part-*.parquet")}
    call_quit("build", "-w", str(folder))
    finished = [path for path in before if all(part in before for part in path.parents[1].glob(f"*/{path.name}"))]
    assert finished  # shards that had all their tables: none of them is done again
    assert {path: path.stat().st_mtime_ns for path in finished} == {path: before[path] for path in finished}
    assert files_of(folder / "tables") == files_of(few_built / "tables")


def test_two_builds_at_once_take_turns(few_source: Path, tmp_path: Path) -> None:
    """Both wait for a lock that is held; then one does all the work, and the other finds nothing to do."""
    workspace = Workspace.create(tmp_path / "W")
    errors = [tmp_path / "errors-0", tmp_path / "errors-1"]
    with workspace.lock(0):
        both = [start_quit(*_build(workspace.path, few_source), log=path) for path in errors]
        for process, path in zip(both, errors, strict=True):
            until(lambda path=path: "Another run holds" in path.read_text(), process)
        assert not (workspace.path / "tables").exists()
    assert [process.wait(timeout=600) for process in both] == [0, 0], [path.read_text() for path in errors]
    assert sorted("up to date: nothing to run" in path.read_text() for path in errors) == [False, True]
    assert workspace.damaged() == []


def test_an_unwritable_workspace_is_one_clear_line(few_source: Path) -> None:
    result = call_quit("build", "-w", "/proc/nowhere/W", "-s", f"jsonl:{few_source}", code=7)
    assert "Could not write" in result.err
