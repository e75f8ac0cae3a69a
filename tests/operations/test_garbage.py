"""Garbage collection over a real build: what is needed stays to the byte, the rest goes."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.errors import InputError, WorkspaceError
from quit.operations.garbage import remove_tables, unused_tables
from tests.comparing import files_of

pytestmark = pytest.mark.slow  # the build it works on


def _old(workspace: Workspace, run: str, fingerprint: str, days: float, complete: bool = True) -> Path:
    """Copy a stage run under another fingerprint, as it was so many days ago."""
    folder, _ = workspace.current()[run]
    target = folder.with_name(fingerprint)
    shutil.copytree(folder, target)
    if not complete:
        (target / "manifest.json").unlink()
    for path in target.rglob("*"):
        os.utime(path, (time.time() - days * 86400,) * 2)
    return target


def test_what_is_old_goes_and_everything_else_stays(workspace) -> None:
    before = files_of(workspace.path / "tables")
    old = _old(workspace, "rank", "00aa", 3)
    reader = _old(workspace, "read:minilm-late", "00bb", 2)
    half = _old(workspace, "judge", "00cc", 1, complete=False)
    folders = unused_tables(workspace)
    runs = {(*tables.stage_run[:2], tables.complete) for tables in folders}
    assert runs == {("rank", "00aa", True), ("read:minilm-late", "00bb", True), ("judge", "00cc", False)}
    size = sum(path.stat().st_size for folder in (old, reader, half) for path in folder.rglob("*") if path.is_file())
    assert sum(tables.bytes for tables in folders) == size
    assert remove_tables(workspace, folders) == size
    assert files_of(workspace.path / "tables") == before
    assert last_build(workspace).up_to_date


def test_the_newest_can_be_left(workspace) -> None:
    for number in range(3):
        _old(workspace, "rank", f"00a{number}", 10 * number + 1)
    assert [tables.stage_run.fingerprint for tables in unused_tables(workspace, keep=1)] == ["00a1", "00a2"]


def test_an_unfinished_build_keeps_what_it_has(workspace) -> None:
    folder, _ = workspace.current()["label"]
    (folder / "manifest.json").unlink()
    workspace.set_current({run: fingerprint for run, fingerprint in workspace.state.items() if run != "label"})
    assert unused_tables(workspace) == []
    build = {**workspace.build, "sources": ["jsonl:/nowhere/gone.jsonl"]}
    (workspace.path / "build.json").write_text(json.dumps(build))
    assert unused_tables(workspace) == []  # it cannot be planned: unfinished runs may be its


def test_a_run_that_became_current_meanwhile_is_not_removed(workspace) -> None:
    _old(workspace, "rank", "00aa", 3)
    folders = unused_tables(workspace)
    workspace.set_current({**workspace.state, "rank": "00aa"})
    with pytest.raises(WorkspaceError, match="in use again"):
        remove_tables(workspace, folders)
    assert folders[0].stage_run.folder.is_dir()


def test_what_is_behind_a_link_is_not_removed(workspace) -> None:
    outside = workspace.path.with_name("outside")
    folder = _old(workspace, "label", "0" * 32, days=9)
    folder.rename(outside)
    folder.symlink_to(outside)
    before = files_of(outside)
    with pytest.raises(InputError, match=f"{folder} is a link: files outside the workspace would be removed"):
        remove_tables(workspace, unused_tables(workspace))
    assert files_of(outside) == before
