"""The settings of these tests are the review's; a workspace without tables, and the server's owner."""

from pathlib import Path

import pytest

from annotation.client import Server
from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore
from quit.settings import Settings
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
