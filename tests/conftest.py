"""Shared fixtures: the real data folder, the real encoder, and a finished build of a small collection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quit.cache import cache_folder
from tests.label_studio import live, people, quit_review, review_settings, review_workspace, reviewed_build  # noqa: F401

if TYPE_CHECKING:
    from tests.servers.vllm import VllmServer

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: workers share the cores
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test needs a hub; a missing model would be looked for at length

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
STARTER = ROOT / "quit" / "starter" / "questions.jsonl"


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The tests, and what they start, keep their caches to themselves; environments and checkpoints last."""
    os.environ.setdefault("QUIT_ENVS", str(cache_folder("envs")))
    os.environ.setdefault("QUIT_TEST_CACHE", str(cache_folder("tests")))
    os.environ["QUIT_CACHE"] = str(tmp_path_factory.mktemp("cache"))


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


@pytest.fixture(scope="session")
def vllm() -> Iterator[VllmServer]:
    """A real vLLM on CPU with a tiny taught model: it answers the starter's first twenty questions, asked alone."""
    from tests.servers.checkpoints import checkpoint, starter_lessons
    from tests.servers.vllm import VllmServer

    with VllmServer(checkpoint("qwen3", 1, lessons=starter_lessons(20)), "tiny", cache_tokens=16384) as server:
        yield server
