"""The settings of these tests are the review's; a workspace without tables, and the server's owner."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quit.annotation.client import Server
from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore
from quit.settings import Settings
from tests.annotation.browser import Annotator, annotator
from tests.label_studio import Live


@pytest.fixture
def settings(review_settings: Settings) -> Settings:
    return review_settings


@pytest.fixture
def store(tmp_path: Path) -> ReviewStore:
    return ReviewStore(Workspace.create(tmp_path / "P"))


@pytest.fixture
def server(live: Live, settings: Settings) -> Server:
    return live.client(settings)


@pytest.fixture(scope="session")
def page(live: Live, people: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Annotator]:
    """One browser for all tests, with Ben logged in."""
    with annotator(live.account.url, tmp_path_factory.mktemp("browser")) as page:
        page.log_in("ben@example.org", "quit-test-1")
        yield page
