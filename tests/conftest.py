"""Fixtures for every folder: caches of their own, the real data folder, the real encoder, what jobs note."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from quit.common.cache import cache_folder
from quit.common.progress import Listener, listening
from quit.text import secrets
from tests.paths import DATA, ROOT

pytest_plugins = ("tests.speed", "tests.building", "tests.label_studio", "tests.servers.real_model")
SKIPS = ROOT / "tests" / "skips.txt"

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it; tests wait for it
hypothesis.settings.register_profile("any machine", deadline=None)  # the first example may import a library
hypothesis.settings.load_profile("any machine")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test needs a hub; a missing model would be looked for at length
os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")  # before Prefect, as the command line does
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ["PREFECT_API_URL"] = ""  # jobs are calls, also where the user's own profile names a server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Where ``CI`` is true, a test that is skipped for a reason that is not in ``skips.txt`` has failed."""
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """The same for the tests of a file or folder."""
    return _judged((yield))


def _judged(report: Any) -> Any:
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
