"""Where the parts of a build meet: sources that moved, reviews applied while a build waits, workspaces behind URLs."""

import json
import shutil
from pathlib import Path

import pytest

from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.operations.backup import backup
from tests.conftest import call_quit, quit_prints

pytestmark = pytest.mark.slow  # the build they work on


@pytest.fixture
def moved(built: Path, tmp_path: Path) -> Path:
    """A restored backup of a build whose sources lie elsewhere now."""
    shutil.copytree(built, tmp_path / "old")
    known = Workspace.open(tmp_path / "old").build
    [source] = known["sources"]
    gone = tmp_path / "gone" / Path(source.partition(":")[2]).name
    (tmp_path / "old" / "build.json").write_text(json.dumps({**known, "sources": [f"jsonl:{gone}"]}))
    backup(Workspace.open(tmp_path / "old"), tmp_path / "b.tar")
    return tmp_path


def test_sources_that_are_not_here_are_named_and_their_new_place_is_enough(moved: Path, small_source: Path) -> None:
    done = call_quit("workspace", "restore", str(moved / "b.tar"), "-w", str(moved / "W"))
    assert f"not here: jsonl:{moved / 'gone'}" in done.stdout, done.stderr
    done = call_quit("build", "-w", str(moved / "W"), "--source", f"jsonl:{small_source}")
    assert "up to date" in done.stdout + done.stderr
    assert last_build(Workspace.open(moved / "W")).up_to_date
    quit_prints("export", "-w", str(moved / "W"), "-f", "trec", "--out", str(moved / "out"))
