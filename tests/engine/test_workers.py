"""What a worker in another process checks before it works, and what it reports."""

import dataclasses
import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from quit import errors
from quit.common.ranges import WHOLE
from quit.engine import workers
from quit.engine.parts import read_part
from quit.engine.pipeline import Pipeline
from quit.engine.workers import RemoteBuild, remote_build, wait_for_parts, work_on
from quit.engine.workspace import Workspace
from quit.errors import InputError, QuitError, WorkspaceError
from quit.models.generation.meter import Meter
from quit.settings import ServerSettings
from quit.settings.runner import parse_runner
from tests.building import plan_build
from tests.paths import starter_file
from tests.servers.builds import served, write_profile


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return starter_file(tmp_path / "few.jsonl", 3)


@pytest.fixture
def planned(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipeline]:
    """A build that holds its workspace and has carried out nothing."""
    monkeypatch.setattr(workers, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr(workers, "_PATIENCE", 0.1)
    pipeline = plan_build(tmp_path / "W", source=source, profile="embedded")
    with pipeline.workspace.lock(0):
        pipeline.begin()
        yield pipeline


def _remote(pipeline: Pipeline, stage: str = "collect") -> RemoteBuild:
    return remote_build(pipeline, pipeline.stage_run(stage), 1)


def test_a_worker_writes_the_part_once_and_clocks_of_machines_may_differ(planned: Pipeline) -> None:
    """Files from the past and the future, as a worker with a wrong clock leaves them: nothing looks at their times."""
    build, run, before = _remote(planned), planned.stage_run("collect"), planned.fingerprints
    first = work_on(build, "collect", WHOLE)
    folder = planned.folder(run)
    assert first.host and [read_part(path).num_rows for path in folder.glob("questions/part-*")] == [3]
    half = folder / "questions" / ".part-00000-of-00001.parquet.1-1-0000abcd.tmp"
    half.write_bytes(b"half")
    for path in planned.workspace.path.rglob("*"):
        os.utime(path, (4e9, 4e9) if path == half else (0, 0))
    work_on(build, "collect", WHOLE)
    parts = list(folder.rglob("part-*"))
    assert parts and {path.stat().st_mtime for path in parts} == {0}, "nothing is written twice"
    wait_for_parts(planned, run, WHOLE, first.host)
    planned.finish(run)
    again = Pipeline(planned.workspace, planned.settings, planned.sources)
    assert again.fingerprints == before and again.is_done(again.stage_run("collect"))
    assert not again.missing_inputs(again.stage_run("filter"))
    assert planned.workspace.damaged() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"program": "9.9, workspaces 1, code 0123"}, r"another program.*code 0123.*Worker on"),
        ({"workspace": "/not-mounted/W"}, "cannot see the workspace.*not-mounted.*Mount"),
    ],
)
def test_another_program_and_a_workspace_out_of_sight_are_refused(planned, change: dict, message: str) -> None:
    with pytest.raises(WorkspaceError, match=message) as raised:
        work_on(dataclasses.replace(_remote(planned), **change), "collect", WHOLE)
    assert not raised.value.retryable
    assert not list(planned.workspace.path.rglob("part-*")) and not Path("/not-mounted").exists()


def test_another_folder_of_the_same_name_is_refused(planned: Pipeline, tmp_path: Path) -> None:
    """A machine's own folder under the path of the shared one: a workspace, but nobody or somebody else holds it."""
    other = Workspace.create(tmp_path / "elsewhere")
    own = dataclasses.replace(_remote(planned), workspace=str(other.path))
    for holder in ("sees another folder.*held by nobody", "process 1 on far since then"):
        with pytest.raises(WorkspaceError, match=holder):
            work_on(own, "collect", WHOLE)
        (other.path / "lock.json").write_text('{"pid": 1, "host": "far", "since": "then"}')
    assert not (other.path / "tables").exists()


def test_a_source_that_differs_there_is_refused(planned, source, monkeypatch) -> None:
    build = _remote(planned)
    workers._pipeline.cache_clear()  # a worker's own process has none yet
    source.write_text(source.read_text(encoding="utf-8").replace("?", "??", 1), encoding="utf-8")
    with pytest.raises(WorkspaceError, match="would make other tables in collect"):
        work_on(build, "collect", WHOLE)
    source.unlink()
    with pytest.raises(InputError, match=r"few.jsonl.*Worker on"):
        work_on(build, "collect", WHOLE)


def test_parts_that_have_not_arrived_are_not_taken_for_empty_ones(planned: Pipeline) -> None:
    with pytest.raises(WorkspaceError, match="does not see the tables of collect"):
        work_on(_remote(planned, "filter"), "filter", WHOLE)
    assert not list(planned.workspace.path.rglob("part-*"))
    with pytest.raises(WorkspaceError, match="far says that it has written part 0 of collect"):
        wait_for_parts(planned, planned.stage_run("collect"), WHOLE, "far")


def test_the_builds_cache_is_the_workers_unless_it_has_its_own(planned, monkeypatch) -> None:
    monkeypatch.delenv("QUIT_CACHE")
    for cache in ("/local/cache", "/other"):
        work_on(dataclasses.replace(_remote(planned), cache=cache), "collect", WHOLE)
        assert os.environ["QUIT_CACHE"] == "/local/cache"


def test_every_error_travels_with_what_it_says() -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, QuitError)]
    assert len(kinds) > 6
    for kind in kinds:
        there = pickle.loads(pickle.dumps(kind("what, where, what to do")))
        assert type(there) is kind and str(there) == "what, where, what to do"
        assert (there.exit_code, there.retryable) == (kind.exit_code, kind.retryable)


def test_the_program_is_its_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = [workers.program()]
    (tmp_path / "quit").mkdir()
    monkeypatch.setattr(workers, "__file__", str(tmp_path / "quit" / "engine" / "workers.py"))
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        (tmp_path / "quit" / "x.py").write_text(text)
        workers.program.cache_clear()
        programs.append(workers.program())
    workers.program.cache_clear()
    assert programs[1] == programs[3] and len({*programs}) == 3


def test_what_workers_asked_is_counted_once_each() -> None:
    worker, build = Meter(), Meter()
    worker.add("a", requests=3, prompt_tokens=30, seconds=4.0)
    build.merge(worker.take(), processes=2)
    build.merge(worker.take(), processes=2)
    worker.add("a", requests=2, cached=1, seconds=2.0)
    worker.add("judge", requests=1)
    build.merge(worker.take(), processes=2)
    # Six seconds in two processes at a time.
    expected = {"a": {"requests": 5, "cached": 1, "prompt_tokens": 30, "seconds": 3.0}, "judge": {"requests": 1}}
    counts = build.snapshot()
    assert {name: {key: counts[name][key] for key in expected[name]} for name in expected} == expected


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_processes_together_keep_a_servers_limits(processes: int) -> None:
    server = ServerSettings(name="s", base_urls=("http://h/v1",), concurrency=32, requests_per_minute=600)
    share = server.divided(processes)
    assert 1 <= share.concurrency * processes <= server.concurrency
    assert share.requests_per_minute * processes == pytest.approx(600)
    assert share.tokens_per_minute == 0, "no budget stays no budget"
    assert share.name == server.name and share.urls() == server.urls()


@pytest.mark.parametrize(("runner", "at_a_time"), [("threads", 6), ("ray", 2)])
def test_fewer_shards_at_a_time_than_requests_in_flight_allowed(source, tmp_path: Path, runner, at_a_time) -> None:
    profile = write_profile(tmp_path / "p.toml", served("http://h/v1", "a", server={"concurrency": 2}))
    overrides = ["run.workers=6", f"run.runner={runner}"]
    assert plan_build(tmp_path / "W", *overrides, source=source, profile=profile).workers == at_a_time


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("threads", ("threads", "")), ("ray", ("ray", "local")),
        ("ray:auto", ("ray", "auto")), ("ray:10.0.0.1:6379", ("ray", "10.0.0.1:6379")),
        ("ray://head.lan:10001", ("ray", "ray://head.lan:10001")), ("ray://[::1]:10001", ("ray", "ray://[::1]:10001")),
    ],
)  # fmt: skip
def test_a_text_names_a_runner(text: str, meant: tuple[str, str]) -> None:
    assert parse_runner(text) == meant


@pytest.mark.parametrize(
    "text", ["", "thread", "ray://", "ray://h", "ray://me:secret@h:1", "dask://h:8786", "http://h:1", "ray ://h:1"]
)
def test_a_text_that_names_none_is_refused_without_its_password(text: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises(errors.SettingsError, match=r"run\.runner.*ray://HOST:10001") as raised:
        plan_build(tmp_path / "W", f"run.runner={json.dumps(text)}", source=source, profile="embedded")
    assert "secret" not in str(raised.value)
    assert not (tmp_path / "W").exists()
