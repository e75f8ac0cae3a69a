"""Where the parts of a build meet: a copy of a build whose sources lie elsewhere now,
and reviews applied while a build waits."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from quit import contracts
from quit.common.progress import Listener, listening
from quit.engine.parts import write_log_part
from quit.engine.planning import last_build, locked_build
from quit.engine.workspace import Workspace
from tests.running import call_quit


@pytest.mark.slow
def test_sources_that_are_not_here_are_named_and_their_new_place_is_enough(built, small_source, tmp_path: Path) -> None:
    copy = shutil.copytree(built, tmp_path / "W")
    missing_source = f"jsonl:{tmp_path / 'gone' / small_source.name}"
    (copy / "build.json").write_text(json.dumps({**Workspace.open(copy).build, "sources": [missing_source]}))
    assert str(tmp_path / "gone") in call_quit("build", "-w", copy, code=3).err
    assert "up to date" in call_quit("build", "-w", copy, "--source", f"jsonl:{small_source}").err
    assert last_build(Workspace.open(copy)).up_to_date
    call_quit("export", "-w", copy, "-f", "trec", "--out", tmp_path / "out")


@pytest.mark.slow
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
    with listening(Waiting()), locked_build(tmp_path / "W", [f"jsonl:{small_source}"], "embedded", []) as pipeline:
        thread.join()
        assert over.is_set() and pipeline.reviews.parts
        assert pipeline.runs[-1].key == "roles"
