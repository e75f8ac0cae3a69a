"""Where the parts of a build meet: sources that moved, reviews applied while a build waits, workspaces behind URLs."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from quit import contracts
from quit.common.progress import Listener, listening
from quit.engine.planning import held_build, last_build
from quit.engine.workspace import Workspace
from quit.operations.backup import backup
from quit.store.parts import write_log_part
from tests.conftest import call_quit

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
    done = call_quit("export", "-w", str(moved / "W"), "-f", "trec", "--out", str(moved / "out"))
    assert done.returncode == 0, done.stderr


def test_what_happens_while_a_build_waits_counts(workspace: Workspace, small_source: Path, tmp_path: Path) -> None:
    ready, over = threading.Event(), threading.Event()

    def other() -> None:
        with Workspace.open(tmp_path / "W").lock(5):
            ready.set()
            over.wait(120)
            (tmp_path / "W" / "reviews").mkdir(exist_ok=True)
            none = contracts.table("reviews").schema.empty_table()
            write_log_part(tmp_path / "W" / "reviews" / "part-00001.parquet", none)
            (tmp_path / "W" / "reviews" / "applied.json").write_text('{"parts": ["part-00001.parquet"]}')

    class Waiting(Listener):
        def noted(self, text: str, loud: bool) -> None:
            assert "Another run holds" in text
            over.set()

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(120)
    with listening(Waiting()), held_build(tmp_path / "W", [f"jsonl:{small_source}"], "embedded", []) as pipeline:
        thread.join()
        assert over.is_set() and pipeline.reviews_applied
        assert pipeline.runs[-1].key == "update"
