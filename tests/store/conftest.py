"""A workspace with a finished stage, where it is (a URL), which machine works on it, and an S3 service."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from quit import contracts
from quit.common.ranges import ranges
from quit.engine.workspace import Workspace
from quit.store.remote import VARIABLE
from tests.servers.moto import MotoServer

HINTS = contracts.table("usable_hints")
FOLDER = ("filter", 2, "f0")


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoServer]:
    """A real S3 service."""
    with MotoServer(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A URL where nothing is yet."""
    return f"memory://{uuid.uuid4().hex}/W" if request.param == "memory" else f"file://{tmp_path}/shared/W"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Go on on the machine of that name: with its mirrors, in a cache folder of its own."""

    def go(name: str) -> None:
        monkeypatch.setenv(VARIABLE, str(tmp_path / "machines" / name))

    go("first")
    return go


def hints(*numbers: int) -> pa.Table:
    """Rows of the table usable_hints."""
    return HINTS.from_rows([{"hint_id": f"q{number:03d}-h00", "question_id": f"q{number:03d}"} for number in numbers])


def store(workspace: Workspace, parts: list[list[int]]) -> None:
    """Write a finished stage of so many parts, under the lock."""
    folder = workspace.folder(*FOLDER)
    shards = ranges([f"q{number:03d}" for part in parts for number in part], len(parts))
    with workspace.lock(60):
        for shard, numbers in zip(shards, parts, strict=True):
            workspace.write_part(folder, shard, {"usable_hints": hints(*numbers)})
        workspace.finish(folder, ["usable_hints"], len(parts), {"stage": "filter"})
        workspace.set_current({"filter": "f0"})


def opened(place: str) -> Workspace:
    """Open a workspace that is a remote one."""
    workspace = Workspace.open(place)
    assert workspace.store.objects is not None
    return workspace
