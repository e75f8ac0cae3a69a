"""Shared fixtures: the real data folder, the real encoder, and a finished build of a small collection."""

from __future__ import annotations

import atexit
import fcntl
import gc
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from contextvars import copy_context
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from unittest.mock import patch

import pytest
import typer.main

from quit.common.cache import cache_folder
from quit.common.progress import Listener, listening
from quit.text import secrets
from tests.label_studio import live, people, quit_review, review_settings, review_workspace  # noqa: F401
from tests.partly import exact, full  # noqa: F401
from tests.places import machine, place  # noqa: F401
from tests.servers.kept import kept
from tests.servers.real_model import real_model  # noqa: F401

if TYPE_CHECKING:
    from quit.engine.workspace import Workspace

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: workers share the cores
typer.main.get_command = cache(typer.main.get_command)  # it reads the signatures of all commands, once a call
gc.set_threshold(20_000, 20, 50)  # else a tenth of the time is the search for garbage in what was imported
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test needs a hub; a missing model would be looked for at length
os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")  # before Prefect, as the command line does
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ["PREFECT_API_URL"] = ""  # jobs are calls, also where the user's own profile names a server

if os.path.isdir("/dev/shm"):  # in memory, if programs may lie there: on a disk, databases wait for each commit
    room = os.statvfs("/dev/shm")
    if room.f_bavail * room.f_frsize > 8e9 and not room.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
STARTER = ROOT / "quit" / "starter" / "questions.jsonl"
SKIPS = ROOT / "tests" / "skips.txt"
FEW = ROOT / "tests" / "few.toml"
"""A profile of two readers and two hints: four passages a question, for tests that are not about models."""


SLOWEST = (
    ("tests/annotation/", "tests/docs/test_notebook.py"),
    ("tests/engine/test_language_models.py", "tests/systems/test_real_model.py"),
    ("tests/test_processors.py",),
    ("tests/flows/test_serve.py",),
    ("tests/engine/test_cluster.py",),
    ("tests/test_frozen.py",),
    ("tests/docs/test_tutorial.py",),
    ("tests/docs/test_fidelity_runs.py",),
    ("tests/store/test_s3.py",),
    ("tests/models/generation/test_in_process.py",),
    ("tests/engine/test_build.py",),
    ("tests/models/test_own.py",),
)
"""Files that share a server, and what takes longest: each group goes to one worker, in this order, before all other
files."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the workers whole files, the slowest first, and together what shares a server."""
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class SlowestFirst(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return next((group[0] for group in SLOWEST if file.startswith(group)), file)

    config.option.loadscopereorder = False
    return SlowestFirst(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def position(item: pytest.Item) -> int:
        return next((position for position, group in enumerate(SLOWEST) if item.nodeid.startswith(group)), len(SLOWEST))

    items.sort(key=position)


def pytest_sessionfinish() -> None:
    gc.freeze()  # else pytest looks at its end three times for garbage, half a second each
    atexit.register(gc.unfreeze)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Where ``CI`` is true, a test that is skipped for a reason that is not in ``skips.txt`` has failed."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        allowed = [line for line in SKIPS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
        if not any(re.search(pattern, str(report.longrepr)) for pattern in allowed):
            report.outcome = "failed"
            report.longrepr = f"{report.longrepr}\nThis reason is not in {SKIPS.name}, so in CI it is a failure."
    return report


class Notes(Listener):
    """Calls a function with each note of a job."""

    def __init__(self, call: Callable[[str], None]) -> None:
        self._call = call

    def noted(self, text: str, loud: bool) -> None:
        self._call(text)


@pytest.fixture
def notes() -> Iterator[list[str]]:
    """What jobs note during the test."""
    texts: list[str] = []
    with listening(Notes(texts.append)):
        yield texts


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run of the tests, the same for all its workers."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Have one worker fill a folder of this run, while the others wait, and return it."""
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not (folder / ".ready").exists():
            make(folder)
            (folder / ".ready").touch()
    return folder


@pytest.fixture(autouse=True)
def _own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that one test sends is not taken out of the next one's texts."""
    monkeypatch.setattr(secrets, "_SENT", dict(secrets._SENT))


@pytest.fixture(scope="session", autouse=True)
def _own_cache(run_folder: Path) -> None:
    """The tests, and what they start, share a cache of this run; environments, checkpoints and fetched models last."""
    os.environ.setdefault("QUIT_ENVS", str(cache_folder("envs")))
    os.environ.setdefault("QUIT_TEST_CACHE", str(cache_folder("tests")))
    fetched = cache_folder("models")
    fetched.mkdir(parents=True, exist_ok=True)
    os.environ["QUIT_CACHE"] = str(run_folder / "cache")
    (run_folder / "cache").mkdir(exist_ok=True)
    with suppress(FileExistsError):  # another worker was first
        (run_folder / "cache" / "models").symlink_to(fetched)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real public data; tests that need it skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"the real data folder {DATA.name} is not beside this checkout")
    return DATA


@pytest.fixture(scope="session")
def encoder():
    """The real MiniLM, remembering what it has encoded, as all that uses this run's cache does."""
    from quit.common.cache import vector_store
    from quit.models.encoders.cache import CachingEncoder
    from quit.models.minilm.encoder import MiniLM

    return CachingEncoder(MiniLM(), store=vector_store())


def call_quit(*arguments: object, stderr: TextIO | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process: seconds faster than :func:`run_quit`, for all that needs no separate
    process.

    ``arguments``: written as texts. ``stderr``: where to write instead of keeping it. ``variables``: of the
    environment, while it runs.
    """
    from quit.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: int | str | None = 0
    environment = patch.dict(os.environ, {"NO_COLOR": "1", "COLUMNS": "200", **variables})
    with environment, redirect_stdout(out), redirect_stderr(stderr or err):
        try:
            copy_context().run(main, list(map(str, arguments)))
        except SystemExit as ended:
            code = ended.code or 0
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def quit_prints(*arguments: object, **variables: str) -> str:
    """Call a command that has to end well, and return what it prints."""
    result = call_quit(*arguments, **variables)
    assert result.returncode == 0, f"quit {' '.join(map(str, arguments))}: {result.stderr}"
    return result.stdout


def run_quit(*arguments: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does, in a process of its own."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "quit.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        cwd=ROOT,
    )


def prefect_database() -> Path:
    """Return the empty database of a Prefect server, which is kept: its migrations are half of a start."""
    import prefect

    def make(folder: Path) -> None:
        url = f"sqlite+aiosqlite:///{folder / 'prefect-test.db'}"
        variables = {**os.environ, "PREFECT_HOME": str(folder / "home"), "PREFECT_SERVER_DATABASE_CONNECTION_URL": url}
        command = [sys.executable, "-m", "prefect", "server", "database", "reset", "-y"]
        subprocess.run(command, env=variables, check=True, capture_output=True)

    return kept(f"prefect-{prefect.__version__}", make) / "prefect-test.db"


@pytest.fixture(scope="session")
def _prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """This worker's Prefect server: the address of its API, and its database."""
    from prefect.settings import PREFECT_API_URL
    from prefect.testing import utilities

    server = tmp_path_factory.mktemp("prefect-server")
    shutil.copy(prefect_database(), server)
    with patch.object(utilities, "mkdtemp", lambda: str(server)), utilities.prefect_test_harness(180):
        yield PREFECT_API_URL.value(), server / "prefect-test.db"


@pytest.fixture
def prefect_server(_prefect_server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Prefect server is named, so jobs of commands are runs there; its database."""
    monkeypatch.setenv("PREFECT_API_URL", _prefect_server[0])
    return _prefect_server[1]


@pytest.fixture(scope="session")
def small_source(run_folder: Path) -> Path:
    """The first eighteen questions of the starter collection and two broken lines."""
    lines = STARTER.read_text(encoding="utf-8").splitlines()[:18]
    bad_lines = ['{"id": "broken"', json.dumps({"id": "no-answer", "question": "Who?", "hints": ["x"]})]
    text = "\n".join([*lines, *bad_lines]) + "\n"
    return (
        once(run_folder / "source", lambda folder: (folder / "small.jsonl").write_text(text, "utf-8")) / "small.jsonl"
    )


@pytest.fixture(scope="session")
def built(run_folder: Path, small_source: Path) -> Path:
    """A workspace built from the small source with every model, one shard; the same for all workers: copy it to change
    it."""
    command = ("build", "--source", f"jsonl:{small_source}", "--shards", 1)
    return once(run_folder / "built", lambda folder: quit_prints(*command, "-w", folder / "W")) / "W"


@pytest.fixture
def workspace(built: Path, tmp_path: Path) -> Workspace:
    """A copy of ``built`` that a test may change."""
    from quit.engine.workspace import Workspace

    return Workspace.open(shutil.copytree(built, tmp_path / "W"))


@pytest.fixture(scope="session")
def few_source(run_folder: Path) -> Path:
    """Six questions of the starter collection, for builds that are about shards, processes and servers."""
    text = "\n".join(STARTER.read_text(encoding="utf-8").splitlines()[:6]) + "\n"
    return once(run_folder / "few", lambda folder: (folder / "few.jsonl").write_text(text, "utf-8")) / "few.jsonl"


@pytest.fixture(scope="session")
def few_built(run_folder: Path, few_source: Path) -> Path:
    """A workspace built undisturbed from ``few_source`` with the profile ``FEW``, in three shards."""
    command = ("build", "-s", f"jsonl:{few_source}", "-p", FEW, "--shards", 3)
    return once(run_folder / "few-built", lambda folder: quit_prints(*command, "-w", folder / "W")) / "W"
