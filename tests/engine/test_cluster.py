"""The places where shards are worked on: same bytes from each, lost workers and nodes, clusters that are not there."""

import hashlib
import json
import re
import socket
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quit.engine.cluster import Cluster
from quit.engine.workers import Task, program
from quit.errors import MissingDependency, ServerError
from quit.models.factory import Models
from quit.models.generation.portions import FIRST
from quit.settings import RunSettings, Settings, load
from tests.comparing import files_of, tables_of
from tests.paths import FEW
from tests.running import QUIT, call_quit, run_process, start_quit, until
from tests.servers import rude
from tests.servers.builds import AT_S, served, write_profile
from tests.servers.ray_cluster import RayCluster
from tests.servers.rude import RudeServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with RayCluster() as started:
        yield started


def _arguments(workspace: Path, source: Path, runner: str, shards: int = 3, profile: Path = FEW) -> list[str]:
    command = ["build", "-w", str(workspace), "-s", f"jsonl:{source}", "-p", str(profile), "--shards", str(shards)]
    return [*command, "--runner", runner, "--set", "run.cluster_seconds=120"]  # the machine may be busy


def test_a_node_is_killed_and_the_bytes_are_the_same(cluster, few_built, few_source, tmp_path) -> None:
    """SIGKILL to every process of one of two nodes while it works; nothing that was finished is done again."""
    folder = tmp_path / "W"
    node = cluster.start_node()

    def caught_at_work() -> bool:
        for worker in cluster.workers(node):
            worker.suspend()
            if worker in cluster.workers(node):
                return True  # stopped in the middle of its shard
            worker.resume()
        return False

    arguments, errors = _arguments(folder, few_source, cluster.address), tmp_path / "errors"
    process = start_quit(*arguments, log=errors, **cluster.client_environment)
    try:
        until(lambda: any((folder / "tables").glob("02_filter/*/*/part-*")) and caught_at_work(), process)
        before = {path: path.stat().st_mtime_ns for path in (folder / "tables").rglob("part-*.parquet")}
        cluster.kill_node(node)
        process.wait(900)  # six minutes were seen on busy cores
    finally:
        process.kill()
    text = errors.read_text()
    assert process.returncode == 0, text
    assert re.search(r"The shard \d of \S+ has lost its worker \(\w+Error", text), text
    finished = [path for path in before if all(part in before for part in path.parents[1].glob(f"*/{path.name}"))]
    assert {path: path.stat().st_mtime_ns for path in finished} == {path: before[path] for path in finished}
    assert files_of(folder / "tables") == files_of(few_built / "tables")


@pytest.mark.parametrize("scheme", ["ray://", "ray:"])
@pytest.mark.parametrize("mute", [False, True], ids=["nobody listens", "something else listens"])
def test_an_unreachable_cluster_is_one_clear_line(scheme: str, mute: bool) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if mute:
            listening.listen()
        port = listening.getsockname()[1]
        settings = RunSettings(runner=f"{scheme}127.0.0.1:{port}", cluster_seconds=1)
        with pytest.raises(ServerError) as raised:
            Cluster(settings.runner, settings, 2)._start()
    assert f"{scheme}127.0.0.1:{port}" in str(raised.value) and "--runner threads" in str(raised.value)
    # Not after the clients' own patience, which is minutes.
    assert ("(asked for 1 s)" if mute else "no connection within 1 s") in str(raised.value)


def test_too_little_memory_is_no_wrong_installation() -> None:
    cluster = Cluster("ray", RunSettings(runner="ray"), 2)
    for error in (ImportError("libtorch_cpu.so: failed to map segment from shared object"), MemoryError()):
        assert "too little memory" in str(cluster._fault(error))
    assert "has no quit-builder" in str(cluster._fault(ModuleNotFoundError("No module named 'quit'")))


def test_a_missing_client_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependency, match=r"-e .\.\[ray\]"):
        Cluster("ray", RunSettings(runner="ray"), 2)._start()


@dataclass(frozen=True)
class _Echo(Task):
    """Returns the table that it gets."""

    def models_here(self, settings: Settings) -> list[str]:
        return []

    def work(self, settings: Settings, models: Models, whole: Sequence[pa.Table]) -> pa.Table:
        return whole[0]


def test_tables_larger_than_rays_limit_for_messages_travel() -> None:
    settings = load("embedded").settings
    table = pa.table({"text": [character * 1_000_000 for character in "abc"]})
    cluster = Cluster("ray", settings.run, 1)
    try:
        assert cluster._run("shard", _Echo(settings.model_dump_json(), program(), [], None), {"t": table}, 0) == table
    finally:
        cluster.close()


def test_a_lost_worker_and_a_lost_head_lose_the_replies_of_a_portion(few_source: Path, tmp_path: Path) -> None:
    """A worker is killed, then all of the cluster; the build goes on in threads. The reader is a user's class."""
    folder, log = tmp_path / "W", tmp_path / "log"
    with RudeServer(lambda number, payload: rude.slow(0.03), reply=_reply) as server, RayCluster() as cluster:
        own = {"class": "tests.models.test_user_models:ServerReader", "extra": {"url": server.base_url}}
        sections = {
            "readers": [{"name": "mine", "role": "labeler", "kind": "python", **own}],
            "passages": {"hints": 3},
            "split": {"method": "share"},
            "probe": {"repetitions": 1},
        }
        profile = write_profile(tmp_path / "profile.toml", sections)

        def arguments(folder: Path, runner: str) -> list[str]:
            return [*_arguments(folder, few_source, runner, profile=profile), "--set", "run.workers=1"]

        cache = {"QUIT_CACHE": str(tmp_path)}
        impatient = {"RAY_CLIENT_RECONNECT_GRACE_PERIOD": "5", "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "30"}
        variables = {**cache, **cluster.client_environment, **impatient}
        process = start_quit(*arguments(folder, cluster.address), log=log, **variables)
        try:
            until(lambda: len(server.requests) > 20, process)
            [worker] = cluster.workers(0)
            worker.kill()
            until(lambda: "has lost its worker" in log.read_text(), process)
            until(lambda: len(server.requests) > FIRST + 40, process)
            cluster.kill_node(0)
            assert process.wait(300) == ServerError.exit_code, log.read_text()
        finally:
            process.kill()
        assert "start it and run the same command again, or use --runner threads" in log.read_text()
        call_quit(*arguments(folder, "threads"), **cache)
        twice = len(server.requests) - len({json.dumps(request.payload) for request in server.requests})
        assert 0 < twice <= 2 * FIRST
        call_quit(*arguments(tmp_path / "same", "threads"), **cache)
    assert files_of(folder / "tables") == files_of(tmp_path / "same" / "tables")


def _reply(payload: dict[str, Any]) -> str:
    """A reply that follows from what was asked alone."""
    draw = hashlib.sha256(json.dumps(payload["messages"]).encode()).digest()[0]
    return ("Yes", "No")[draw % 2] if payload["model"] == "judge" else ("NO ANSWER", "Paris", "the moon")[draw % 3]


def test_on_ray_the_build_asks_servers_pays_once_reports_what_own_classes_asked_and_makes_the_same_rows(
    few_source: Path, tmp_path: Path
) -> None:
    """In another number of shards; the second reader is a user's own class, which works on Ray."""
    outcomes = {}
    with RudeServer(lambda number, payload: rude.slow(0.05), reply=_reply) as server, RudeServer() as other:
        few = {"passages": {"hints": 3}, "split": {"method": "share"}, "probe": {"repetitions": 1}}
        sections = served(server.base_url, "reader-a", server={"concurrency": 6}, **few)
        own = {"class": "tests.models.test_user_models:ServerReader", "extra": {"url": other.base_url}}
        sections["readers"].append({"name": "mine", "role": "labeler", "kind": "python", **own})
        sections["judge"] = {"name": "judge", **AT_S, "model": "judge"}
        profile = write_profile(tmp_path / "profile.toml", sections)
        for runner, shards in (("threads", 3), ("ray", 2)):
            for each in (server, other):
                each.requests.clear()
            arguments = _arguments(tmp_path / runner, few_source, runner, shards, profile)
            result = run_process(
                *QUIT, *arguments, "--set", "run.workers=2", QUIT_CACHE=str(tmp_path / f"cache-{runner}")
            )
            assert "Ray" not in result.err and "token" not in result.err, "the terminal is the build's"
            payloads = [request.payload for request in (*server.requests, *other.requests)]
            requests = Counter(json.dumps(payload, sort_keys=True) for payload in payloads)
            assert set(requests.values()) == {1}, "something was asked for twice"
            assert 1 < server.most_at_once <= 6
            status = call_quit("status", "-w", tmp_path / runner, "--json").json()
            counts = {name: model["requests"] for name, model in status["language_models"].items()}
            assert sum(counts.values()) == len(requests) and counts["mine"] == len(other.requests)
            outcomes[runner] = (counts, tables_of(tmp_path / runner))
    (asked, threads), (same, ray) = outcomes["threads"], outcomes["ray"]
    assert asked == same and [name for name in threads if threads[name] != ray[name]] == []
