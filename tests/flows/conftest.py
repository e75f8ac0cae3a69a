"""A Prefect server."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.servers.prefect import prefect_database


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
