"""The places where shards are worked on: same bytes from each, lost workers and nodes, clusters that are not there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import schemas
from quit.errors import MissingDependency, ServerError
from quit.settings import Run
from tests.comparing import bytes_of, tables_of
from tests.conftest import ROOT, STARTER, run_quit
from tests.servers import rude
from tests.servers.builds import write_profile
from tests.servers.ray_cluster import RayCluster, hiding
from tests.servers.rude import RudeServer

pytestmark = pytest.mark.slow
QUESTIONS = 8
SHARDS = 4


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "eight.jsonl"
    path.write_text("\n".join(STARTER.read_text(encoding="utf-8").splitlines()[:QUESTIONS]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def by_threads(source: Path, tmp_path_factory: pytest.TempPathFactory, prefect_home: Path) -> Path:
    workspace = tmp_path_factory.mktemp("threads") / "W"
    done = run_quit(*_arguments(workspace, source, "threads"), home=prefect_home)
    assert done.returncode == 0, done.stderr
    return workspace


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with RayCluster() as started:
        yield started


def _arguments(workspace: Path, source: Path, runner: str, shards: int = SHARDS) -> list[str]:
    command = ["build", "-w", str(workspace), "-s", f"jsonl:{source}", "--shards", str(shards), "--runner", runner]
    return [*command, "--set", "run.cluster_seconds=120"]  # the machine may be busy


@pytest.mark.parametrize("runner", ["processes", "dask"])
def test_a_runner_of_this_machine_makes_the_same_bytes(
    by_threads: Path, source: Path, tmp_path: Path, prefect_home: Path, runner: str
) -> None:
    done = run_quit(*_arguments(tmp_path / "W", source, runner), home=prefect_home)
    assert done.returncode == 0, done.stderr
    assert bytes_of(tmp_path / "W") == bytes_of(by_threads)
    shown = re.findall(r"^ *\d+ (\S+): (\d+) of (\d+) shards$", done.stderr, re.M)
    assert ("collect", "1", "1") in shown and ("label", str(SHARDS), str(SHARDS)) in shown


def test_local_ray_and_another_number_of_shards_make_the_same_rows(
    by_threads: Path, source: Path, tmp_path: Path, prefect_home: Path
) -> None:
    done = run_quit(*_arguments(tmp_path / "W", source, "ray", shards=3), home=prefect_home)
    assert done.returncode == 0, done.stderr
    three, four = tables_of(tmp_path / "W"), tables_of(by_threads)
    for name in schemas.TABLES:
        assert three[name].equals(four[name]), name
    assert "Ray" not in done.stderr and "token" not in done.stderr, "the terminal is the build's"


def test_a_node_is_killed_and_the_bytes_are_the_same(
    by_threads: Path, source: Path, tmp_path: Path, prefect_home: Path
) -> None:
    """SIGKILL to every process of one of two nodes while it reads; nothing that was finished is done again."""
    folder = tmp_path / "W"
    with RayCluster() as own:
        node = own.start_node()
        process = subprocess.Popen(
            [sys.executable, "-m", "quit.cli", *_arguments(folder, source, own.address)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **own.client_environment, "PREFECT_HOME": str(prefect_home), "COLUMNS": "300"},
            cwd=ROOT,
        )
        try:
            deadline = time.monotonic() + 400
            while not (any((folder / "tables").glob("08_read*/*/answers/part-*")) and own.workers(node)):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            finished = {path: path.stat().st_mtime_ns for path in (folder / "tables").rglob("part-*.parquet")}
            own.kill_node(node)
            _, said = process.communicate(timeout=400)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert re.search(r"read:\S+: part \d has lost its worker \(\w+Error", said), said
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert bytes_of(folder) == bytes_of(by_threads)


def test_a_killed_process_of_the_pool_is_replaced(
    by_threads: Path, source: Path, tmp_path: Path, prefect_home: Path
) -> None:
    import psutil

    folder = tmp_path / "W"
    process = subprocess.Popen(
        [sys.executable, "-m", "quit.cli", *_arguments(folder, source, "processes")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PREFECT_HOME": str(prefect_home), "COLUMNS": "300"},
        cwd=ROOT,
    )
    try:
        deadline = time.monotonic() + 400
        while not any((folder / "tables").glob("08_read*/*/answers/part-*")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        workers = [
            one
            for one in psutil.Process(process.pid).children(recursive=True)
            if "spawn_main" in " ".join(one.cmdline())
        ]
        workers[-1].kill()
        _, said = process.communicate(timeout=400)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "has lost its worker" in said
    assert bytes_of(folder) == bytes_of(by_threads)


def test_a_worker_with_another_program_is_refused(
    cluster: RayCluster, source: Path, tmp_path: Path, prefect_home: Path
) -> None:
    """The build runs a copy of the program that differs in one comment; the cluster has ours."""
    other = tmp_path / "other"
    for package in ("quit", "schemas", "flows", "annotation"):
        shutil.copytree(ROOT / package, other / package, ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "quit" / "ids.py").open("a") as file:
        file.write("# newer\n")
    environment = {
        **os.environ,
        **cluster.client_environment,
        "PREFECT_HOME": str(prefect_home),
        "PYTHONPATH": str(other),
    }
    done = subprocess.run(
        [sys.executable, "-m", "quit.cli", *_arguments(tmp_path / "W", source, cluster.address)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=other,
        timeout=300,
    )
    assert done.returncode == 7, done.stderr
    assert "another program than the build" in done.stderr and f"(Worker on {socket.gethostname()}.)" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "W" / "tables").rglob("part-*"))


def test_a_worker_that_cannot_see_the_workspace_says_so_and_makes_no_folder(
    source: Path, tmp_path: Path, prefect_home: Path
) -> None:
    """The worker's root holds everything but the workspace's folder, as on a machine without the mount."""
    blindfold = hiding(tmp_path / "share")
    if blindfold is None:
        pytest.skip("this system lets nobody mount in a namespace of one's own")
    with RayCluster(prefix=blindfold) as blind:
        environment = {**os.environ, **blind.client_environment, "PREFECT_HOME": str(prefect_home)}
        done = subprocess.run(
            [
                *(sys.executable, "-m", "quit.cli"),
                *_arguments(tmp_path / "share" / "W", source, blind.address),
                *("--set", "run.visible_seconds=1"),
            ],
            capture_output=True,
            text=True,
            env=environment,
            cwd=ROOT,
            timeout=300,
        )
    assert done.returncode == 7, done.stderr
    assert "cannot see the workspace" in done.stderr and "Mount the shared folder" in done.stderr


@pytest.mark.parametrize("scheme", ["ray://", "ray:", "dask://"])
@pytest.mark.parametrize("mute", [False, True], ids=["nobody listens", "something else listens"])
def test_an_unreachable_cluster_is_one_clear_line_within_seconds(scheme: str, mute: bool) -> None:
    from flows.runners import Runner

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if mute:
            listening.listen()
        port = listening.getsockname()[1]
        settings = Run(runner=f"{scheme}127.0.0.1:{port}", cluster_seconds=2)
        began = time.monotonic()
        with Runner(settings.runner, settings, 2) as runner, pytest.raises(ServerError) as raised:
            runner.submit(None, {}, print)
    assert time.monotonic() - began < 15
    assert f"{scheme}127.0.0.1:{port}" in str(raised.value) and "--runner threads" in str(raised.value)


def test_no_ray_on_this_machine_is_said(tmp_path: Path) -> None:
    """Looked for where no cluster can be: another temporary folder, and no process of Ray in sight."""
    import psutil

    from flows.runners import Runner

    if any("raylet" in (one.info["name"] or "") for one in psutil.process_iter(["name"])):
        pytest.skip("a Ray of someone else runs on this machine, and would be found")
    with Runner("ray:auto", Run(runner="ray:auto"), 2) as runner, pytest.raises(ServerError, match="ray:auto.*running"):
        runner.submit(None, {}, print)


def test_a_missing_client_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.runners import Runner

    monkeypatch.setitem(sys.modules, "prefect_ray.task_runners", None)
    with Runner("ray", Run(runner="ray"), 2) as runner, pytest.raises(MissingDependency, match=r"-e .\.\[ray\]"):
        runner.submit(None, {}, print)


def test_a_scheduled_run_takes_its_runner_from_its_parameters(by_threads: Path, source: Path, tmp_path: Path) -> None:
    """The flow itself, with a server, as a deployment calls it."""
    from prefect.client.orchestration import get_client
    from prefect.testing.utilities import prefect_test_harness

    from flows.build import build

    with prefect_test_harness(server_startup_timeout=120):
        build(str(tmp_path / "W"), [f"jsonl:{source}"], "embedded", [f"run.shards={SHARDS}", "run.runner=processes"])
        with get_client(sync_client=True) as client:
            names = {run.name for run in client.read_task_runs()}
    assert {"collect-0", "filter-0", f"label-{SHARDS - 1}"} <= names, "workers report to the build's server"
    assert bytes_of(tmp_path / "W") == bytes_of(by_threads)


def _reply(payload: dict[str, Any]) -> str:
    """A reply that follows from what was asked alone."""
    draw = hashlib.sha256(json.dumps(payload["messages"]).encode()).digest()[0]
    return ("Yes", "No")[draw % 2] if payload["model"] == "judge" else ("NO ANSWER", "Paris", "the moon")[draw % 3]


def test_processes_together_keep_a_servers_limit_pay_once_and_report_what_they_asked(
    source: Path, tmp_path: Path, prefect_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join(source.read_text(encoding="utf-8").splitlines()[:4]) + "\n", encoding="utf-8")
    limit, found = 6, {}
    for runner in ("threads", "processes"):
        monkeypatch.setenv("QUIT_CACHE", str(tmp_path / f"cache-{runner}"))
        with RudeServer(lambda number, payload: rude.slow(0.01), reply=_reply) as server:
            # Two readers of one server would have twice its limit, with threads too: so one reader, and the judge after it.
            profile = write_profile(
                tmp_path / f"{runner}.toml",
                {"reader-a": ("reader", server.base_url)},
                ("judge", server.base_url),
                concurrency=limit,
                more="[probe]\nrepetitions = 1",
            )
            arguments = _arguments(tmp_path / runner, few, runner)
            done = run_quit(*arguments, "-p", str(profile), "--set", "run.workers=2", home=prefect_home)
            assert done.returncode == 0, done.stderr
            asked = Counter(json.dumps(request.payload, sort_keys=True) for request in server.requests)
            assert set(asked.values()) == {1}, "something was asked for twice"
            assert 1 < server.most_at_once <= limit
        status = json.loads(run_quit("status", "-w", str(tmp_path / runner), "--json", home=prefect_home).stdout)
        counted = {name: model["requests"] for name, model in status["language_models"].items()}
        assert sum(counted.values()) == len(asked)
        found[runner] = (counted, bytes_of(tmp_path / runner))
    assert found["processes"] == found["threads"]
