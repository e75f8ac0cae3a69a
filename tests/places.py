"""Fixtures of object stores: where a workspace is, and which machine works on it (each has its cache folder)."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from quit.store.remote import VARIABLE


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A URL where nothing is yet."""
    return f"memory://{uuid.uuid4().hex}/W" if request.param == "memory" else f"file://{tmp_path}/shared/W"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Go on on the machine of that name: with its mirrors."""

    def go(name: str) -> None:
        monkeypatch.setenv(VARIABLE, str(tmp_path / "machines" / name))

    go("first")
    return go
