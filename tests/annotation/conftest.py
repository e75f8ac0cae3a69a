"""The settings of these tests are the review's; a workspace without tables, and the server's owner."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore
from quit.settings import Settings, load
from tests.annotation.browser import Annotator, annotator
from tests.label_studio import SETTINGS, Live
from tests.running import call_quit


def pytest_collect_file() -> None:
    pytest.importorskip("label_studio_sdk", reason="the extra review is not installed")


@pytest.fixture(scope="session")
def people(live: Live) -> dict[str, str]:
    """E-mail -> token of two annotators."""
    return {email: live.sign_up(email) for email in ("ada@example.org", "ben@example.org")}


@pytest.fixture(scope="session")
def settings() -> Settings:
    return load("embedded", SETTINGS).settings


@pytest.fixture
def review_workspace(workspace: Workspace) -> Path:
    """A copy of the built workspace that a test may change; its reviews use ``SETTINGS``."""
    workspace.set_build({**workspace.build, "overrides": SETTINGS})
    return workspace.path


@pytest.fixture
def quit_review(live: Live, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Call ``quit review ...``, with the owner's token in the environment, and return what it prints."""
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", live.account.token)
    return lambda *arguments: call_quit("review", *arguments).out


@pytest.fixture
def store(tmp_path: Path) -> ReviewStore:
    return ReviewStore(Workspace.create(tmp_path / "P"))


@pytest.fixture
def server(live: Live, settings: Settings):
    return live.client(settings)


@pytest.fixture(scope="session")
def page(live: Live, people: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Annotator]:
    """One browser for all tests, with Ben logged in."""
    with annotator(live.account.url, tmp_path_factory.mktemp("browser")) as page:
        page.log_in("ben@example.org", "quit-test-1")
        yield page
