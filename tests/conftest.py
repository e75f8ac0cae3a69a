"""Shared fixtures: the real data folder, the real encoder, and a finished build of a small collection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.label_studio import live, people, quit_review, review_settings, review_workspace, reviewed_build  # noqa: F401

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
STARTER = ROOT / "quit" / "starter" / "questions.jsonl"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real public data; tests that need it skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"the real data folder {DATA.name} is not beside this checkout")
    return DATA


@pytest.fixture(scope="session")
def encoder():
    """The real MiniLM, remembering what it has encoded."""
    from quit.models.encoders.cache import CachingEncoder
    from quit.models.encoders.minilm import MiniLM

    return CachingEncoder(MiniLM())


def run_quit(*arguments: str, home: Path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does, in a process of its own, with a Prefect home of its own."""
    environment = {**os.environ, "PREFECT_HOME": str(home), "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "quit.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        cwd=ROOT,
    )


@pytest.fixture(scope="session")
def prefect_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prefect")


@pytest.fixture(scope="session")
def small_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first eighteen questions of the starter collection and two broken lines."""
    lines = STARTER.read_text(encoding="utf-8").splitlines()[:18]
    path = tmp_path_factory.mktemp("source") / "small.jsonl"
    path.write_text(
        "\n".join([*lines, '{"id": "broken"', json.dumps({"id": "no-answer", "question": "Who?", "hints": ["x"]})])
        + "\n"
    )
    return path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, small_source: Path, prefect_home: Path) -> Path:
    """A workspace built from the small source by the command line, one shard."""
    workspace = tmp_path_factory.mktemp("built") / "W"
    done = run_quit(
        "build", "-w", str(workspace), "--source", f"jsonl:{small_source}", "--shards", "1", home=prefect_home
    )
    assert done.returncode == 0, done.stderr
    return workspace
