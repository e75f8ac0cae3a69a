"""The whole way over a real S3 service: build, kill, resume on another machine, review, release, refusals."""

import hashlib
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quit.engine.workspace import Workspace
from quit.store.objects import Objects, open_objects
from tests.comparing import files_of
from tests.paths import FEW
from tests.running import call_quit, start_quit, until
from tests.servers.moto import MotoServer
from tests.store.conftest import hints, opened, store

pytestmark = pytest.mark.slow
LEASE = ("--set", "remote.lease_seconds=6")


@pytest.fixture(autouse=True)
def environment(s3: MotoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def place(request: pytest.FixtureRequest, s3: MotoServer) -> str:
    digest = hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    return f"{s3.bucket(f'bucket-{digest}')}/some/W"


def test_of_many_who_create_one_object_exactly_one_is_told_so(place: str) -> None:
    stores = [open_objects(place) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        created = list(pool.map(lambda number: stores[number].create("one", b"%d" % number), range(6)))
    assert sum(created) == 1 and stores[0].read("one") == b"%d" % created.index(True)
    assert stores[0]._refuses  # by a condition on the request, not by waiting


def _written(store: Objects) -> dict[str, object]:
    """Return when each object of the tables was written."""
    return {key: store._files.info(store._path(key))["LastModified"] for key in sorted(store.listing("tables"))}


@pytest.fixture
def guarded(s3: MotoServer) -> Iterator[None]:
    yield
    s3.enforce(False)


def test_who_may_only_read_reads_and_writing_is_refused_in_one_line(s3, place, machine, monkeypatch, guarded) -> None:
    store(Workspace.create(place), [[0, 1], [2, 3]])
    before = open_objects(place).listing()
    reader = s3.user("reader", "s3:GetObject", "s3:ListBucket")
    nobody = s3.user("nobody")
    s3.enforce()
    for user, name in ((reader, "reads"), (nobody, "nobody"), (s3.keys("AKIAUNKNOWN", "x"), "unknown")):
        machine(name)
        for key, value in user.items():
            monkeypatch.setenv(key, value)
        status = call_quit("status", "-w", place, code=0 if name == "reads" else 7)
        build = call_quit("build", "-w", place, "-s", "starter", code=7)
        assert user["AWS_SECRET_ACCESS_KEY"] not in status.err + build.err
        if name == "reads":
            assert opened(place).read("usable_hints").equals(hints(0, 1, 2, 3))
            assert f"No permission to write to {place} at {s3.url}" in build.err and "s3:PutObject" in build.err
        elif name == "nobody":
            assert f"No permission to list {place}" in status.err
        else:
            assert "does not accept the credentials" in status.err
    s3.enforce(False)
    for key, value in s3.environment.items():
        monkeypatch.setenv(key, value)
    assert open_objects(place).listing() == before


def test_a_bucket_that_is_not_there_is_named() -> None:
    for command in (["status"], ["build", "-s", "starter"]):
        result = call_quit(*command, "-w", "s3://no-such-bucket-here/W", code=7)
        assert "There is no bucket for s3://no-such-bucket-here/W" in result.err
        assert result.err.count("\n") == 1


def test_a_build_that_was_killed_goes_on_on_another_machine_to_the_same_bytes(
    place: str, few_source: Path, few_built: Path, tmp_path: Path, machine
) -> None:
    """kill -9 and another mirror: the same bytes as a folder's, and the same release."""
    command = ("build", "-w", place, "-s", f"jsonl:{few_source}", "-p", FEW, "--shards", 3, *LEASE)
    process = start_quit(*command, log=tmp_path / "first")
    mirror, there = tmp_path / "machines" / "first", open_objects(place)
    until(lambda: next(mirror.rglob("tables/02_*/**/part-*"), None), process)  # the stage before is in the store
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = _written(there)
    assert before and not [key for key in before if key.startswith("tables/10_label")]
    machine("second")
    result = call_quit(*command)
    assert "Another run holds" in result.err
    assert before.items() <= _written(there).items(), "what was there is not written again"
    contents = {key.removeprefix("tables/"): there.read(key) for key in _written(there)}
    assert contents == files_of(few_built / "tables") and Workspace.open(place).state == Workspace.open(few_built).state

    local = Path(shutil.copytree(few_built, tmp_path / "local"))
    created, frozen = (call_quit("release", "create", "-w", folder, "--name", "v1") for folder in (place, local))
    assert f"{place}/releases/v1: release v1" in created.out
    assert created.out.split()[-1] == frozen.out.split()[-1]  # the same content id
    machine("third")
    verified = call_quit("release", "verify", f"{place}/releases/v1")
    assert "is what was frozen" in verified.out
    assert "already holds this release" in call_quit("release", "create", "-w", place, "--name", "v1").out
    there.write("releases/v1/tables/labels.parquet", b"changed")
    verified = call_quit("release", "verify", f"{place}/releases/v1", code=3)
    assert "tables/labels.parquet: was changed" in verified.err
    assert call_quit("release", "list", "-w", place).out.startswith("v1 ")
