"""Where the parts of a build meet: a restored backup of a build whose sources lie elsewhere now."""

import json
import shutil
from pathlib import Path

import pytest

from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.operations.backup import backup
from tests.conftest import call_quit, quit_prints


@pytest.mark.slow
def test_sources_that_are_not_here_are_named_and_their_new_place_is_enough(built, small_source, tmp_path: Path) -> None:
    old, restored = Workspace.open(shutil.copytree(built, tmp_path / "old")), tmp_path / "W"
    gone = f"jsonl:{tmp_path / 'gone' / small_source.name}"
    (old.path / "build.json").write_text(json.dumps({**old.build, "sources": [gone]}))
    backup(old, tmp_path / "b.tar")
    assert f"not here: {gone}" in quit_prints("workspace", "restore", tmp_path / "b.tar", "-w", restored)
    assert "up to date" in call_quit("build", "-w", restored, "--source", f"jsonl:{small_source}").stderr
    assert last_build(Workspace.open(restored)).up_to_date
    quit_prints("export", "-w", restored, "-f", "trec", "--out", tmp_path / "out")
