"""Deployments on a real Prefect server: runs by schedule and by hand, races, failures, timeouts, workers."""

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from quit.engine.workspace import Workspace
from quit.stages.order import STAGES
from tests.paths import FEW, PYTHONPATH, ROOT, starter_lines
from tests.running import run_process, start_quit, until
from tests.servers import rude
from tests.servers.builds import TWO_HINTS, served, write_profile
from tests.servers.prefect import prefect_database, prefect_server
from tests.servers.rude import RudeServer
from tests.servers.serving import serving as answering

pytestmark = pytest.mark.slow
LINES = starter_lines()
QUESTIONS = [*LINES[:4], LINES[5]]  # the fifth has too few hints
FINAL = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
LOOK = 0.4
"""Seconds between two questions to the server."""
QUICK = {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "2"}
"""Seconds between two looks of the server for due schedules, else 60."""


class Live:
    """A Prefect server, and what tests ask of it."""

    def __init__(self, url: str, home: Path) -> None:
        self.url = url
        self.environment = {**os.environ, "PREFECT_HOME": str(home), "PREFECT_API_URL": url, "PYTHONPATH": PYTHONPATH}
        no_idle = httpx.Limits(max_keepalive_connections=0)  # which the server may close as they are used again
        self.client = httpx.Client(base_url=url, timeout=60, limits=no_idle)

    def post(self, path: str, body: Any) -> Any:
        for _ in range(5):
            answer = self.client.post(path, json=body)
            if answer.status_code < 500:
                break
            time.sleep(2)  # SQLite is busy
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def deployment(self, name: str) -> dict[str, Any]:
        return self.client.get(f"deployments/name/{name}").raise_for_status().json()

    def start(self, name: str, **parameters: Any) -> str:
        """Ask for a run, as the button in the pages does."""
        body = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        return self.post(f"deployments/{self.deployment(name)['id']}/create_flow_run", body)["id"]

    def run(self, identity: str) -> dict[str, Any]:
        return self.client.get(f"flow_runs/{identity}").raise_for_status().json()

    def ended(self, *identities: str, seconds: float = 600) -> list[dict[str, Any]]:
        until(lambda: all(self.run(one)["state_type"] in FINAL for one in identities), seconds=seconds, every=LOOK)
        return [self.run(one) for one in identities]

    def tasks(self, identity: str) -> list[dict[str, Any]]:
        return self.post("task_runs/filter", {"flow_runs": {"id": {"any_": [identity]}}})

    def runs_of(self, deployment: str) -> list[dict[str, Any]]:
        mine = {"id": {"any_": [self.deployment(deployment)["id"]]}}
        return self.post("flow_runs/filter", {"deployments": mine, "sort": "EXPECTED_START_TIME_ASC"})

    def artifacts(self, identity: str) -> dict[str, str]:
        rows = self.post("artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [identity]}}})
        return {one["key"]: one["data"] if isinstance(one["data"], str) else json.dumps(one["data"]) for one in rows}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    home = tmp_path_factory.mktemp("home")
    shutil.copy(prefect_database(), home / "prefect.db")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"PREFECT_HOME": str(home), **QUICK}.items():
            patch.setenv(name, value)
        with prefect_server(home) as url:
            yield Live(url, home)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source of four questions, a profile whose deployments tests start, and the workspace W, of which
    no more is there than how it is built."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "mine.jsonl").write_text("\n".join(QUESTIONS[:4]) + "\n", encoding="utf-8")
    schedules = [{"flow": "build"}, {"flow": "build", "name": "short", "timeout_seconds": 15}]
    sections = {"serving": {"poll_seconds": 1}, "schedules": schedules}
    profile = write_profile(folder / "mine.toml", {**tomllib.loads(FEW.read_text(encoding="utf-8")), **sections})
    build = {"profile": str(profile), "overrides": [], "sources": [f"jsonl:{folder / 'mine.jsonl'}"]}
    Workspace.create(folder / "W").set_build(build)
    return folder


@pytest.fixture(scope="module")
def notices(server: Live, place: Path) -> Iterator[list[dict[str, str]]]:
    """What the automation of the docs posts to a block: one that takes JSON, else mostly mail or a chat."""
    posts: list[dict[str, str]] = []
    with answering(lambda method, path, headers, body: (204, b"", posts.append(json.loads(body)) or {})) as url:
        block = "from prefect.blocks.notifications import CustomWebhookNotificationBlock as Block\n"
        block += f"Block(name='hook', url={url!r}, json_data={{'subject': '{{{{subject}}}}', 'body': '{{{{body}}}}'}})"
        run_process(sys.executable, "-c", f"{block}.save('team')", env=server.environment)
        documents = server.post("block_documents/filter", {"block_documents": {"name": {"any_": ["team"]}}})
        automation = (ROOT / "automation.yaml").read_text(encoding="utf-8")
        placeholder = "00000000-0000-0000-0000-000000000000"
        (place / "automation.yaml").write_text(automation.replace(placeholder, documents[0]["id"]), encoding="utf-8")
        create = ("automation", "create", "--from-file", place / "automation.yaml")
        run_process(sys.executable, "-m", "prefect", *create, env=server.environment)
        yield posts


@pytest.fixture(scope="module")
def serving(server: Live, place: Path) -> Iterator[Callable[[], subprocess.Popen]]:
    """Starts ``quit serve`` for the workspace W; it runs until the module ends, or a test stops it."""
    server.environment["QUIT_TEST_TOKEN"] = "very-secret"
    names = ("PREFECT_HOME", "PREFECT_API_URL", "QUIT_TEST_TOKEN")
    variables = {name: server.environment[name] for name in names}
    running: list[subprocess.Popen] = []

    def start() -> subprocess.Popen:
        running[:] = [one for one in running if one.poll() is None]
        if not running:
            process = start_quit("serve", "-w", str(place / "W"), log=place / "serve.log", **variables)
            running.append(process)
            until(lambda: len(server.post("deployments/filter", {})) == 5, process, 300, LOOK)
        return running[0]

    yield start
    for process in running:
        process.terminate()
        process.wait(120)


def _scheduled(server: Live, identity: str, interval: int) -> Any:
    """Give a deployment a schedule; returns nothing where the server is too busy to take it."""
    soon = datetime.now(UTC) + timedelta(seconds=2)
    schedules = [{"active": True, "schedule": {"interval": interval, "anchor_date": soon.isoformat()}}]
    reply = server.client.post(f"deployments/{identity}/schedules", json=schedules)
    return reply.json() if reply.is_success else None


def test_first_everything_then_nothing_new_then_one_source_more_on_a_schedule(server, serving, place) -> None:
    serving()
    identity = server.deployment("build/build-W")["id"]
    every = 20  # seconds between runs; shorter intervals only add runs that find nothing new
    [schedule] = until(lambda: _scheduled(server, identity, every), seconds=120, every=LOOK)
    try:
        finished = lambda: [one for one in server.runs_of("build/build-W") if one["state_type"] == "COMPLETED"]  # noqa: E731
        worked = lambda: [one for one in finished() if one["state_name"] == "Completed"]  # noqa: E731
        [first] = until(worked, every=LOOK)
        names = [task["name"] for task in sorted(server.tasks(first["id"]), key=lambda task: task["start_time"])]
        assert names == [stage.name for stage in STAGES]
        assert "quit-build" in server.artifacts(first["id"])
        idle = lambda: [one for one in finished() if one["state_name"] == "Nothing new"]  # noqa: E731
        nothing = until(idle, every=LOOK)[0]
        assert nothing["auto_scheduled"] and "Nothing new: sources, settings and models" in nothing["state"]["message"]
        assert server.tasks(nothing["id"]) == []
        summary = server.artifacts(nothing["id"])["quit-build-summary"]
        assert "No stage ran" in summary and (place / "W").as_uri() in summary

        questions = len(Workspace.open(place / "W").read("questions"))
        (place / "mine.jsonl").write_text("\n".join(QUESTIONS) + "\n", encoding="utf-8")
        until(lambda: len(worked()) == 2, every=LOOK)
        assert len(Workspace.open(place / "W").read("questions")) == questions + 1
    finally:  # waiting runs would delay the next tests
        server.client.delete(f"deployments/{identity}/schedules/{schedule['id']}")
        for run in server.runs_of("build/build-W"):
            if run["state_type"] == "SCHEDULED":
                server.client.delete(f"flow_runs/{run['id']}")


def test_failures_and_dead_runs_are_told_without_secrets(server, serving, place, notices) -> None:
    """The process of a run dies alone, or with `quit serve`, as in a power cut, which tells of it when it is back."""
    serving()

    def told(run: dict[str, Any]) -> dict[str, str]:
        return until(lambda: next((each for each in notices if run["name"] in each["body"]), None), seconds=300)

    def at_work(folder: Path) -> tuple[str, int]:
        named = {"sources": [f"jsonl:{place / 'mine.jsonl'}"], "profile": str(place / "mine.toml")}
        run, lock = server.start("build/build-W", workspace=str(folder), **named), folder / "lock.json"
        until(lambda: lock.is_file() and (folder / "tables").is_dir(), seconds=300)
        return run, json.loads(lock.read_text())["pid"]

    [run] = server.ended(server.start("build/build-W", sources=[f"jsonl:{place / 'none-very-secret.jsonl'}"]))
    assert run["state_type"] == "FAILED"
    notice = told(run)
    assert "build-W" in notice["subject"] and "Failed" in notice["subject"]
    assert "none-(QUIT_TEST_TOKEN).jsonl" in notice["body"] and f"flow-run/{run['id']}" in notice["body"]
    for folder, powered in ((place / "K", True), (place / "L", False)):
        one, process = at_work(folder)
        if not powered:
            serve = serving()
            serve.kill()
            serve.wait(60)
        os.kill(process, 9)
        if not powered:
            assert server.run(one)["state_type"] == "RUNNING"
            serving()
        [run] = server.ended(one)
        assert run["state_type"] == "CRASHED" and "Crashed" in told(run)["subject"]
    [run] = server.ended(server.start("build/build-W"))
    assert run["state_type"] == "COMPLETED"
    assert "very-secret" not in json.dumps(notices)


def test_a_run_out_of_time_stops_and_the_next_one_goes_on(server, serving, place) -> None:
    """The reader's server is so slow that the readings alone take longer than the run may, until it recovers."""
    serving()
    pause = [2.0]
    with RudeServer(lambda number, payload: rude.slow(pause[0])) as slow:
        more = {"server": {"concurrency": 1}, "probe": {"repetitions": 1}, **TWO_HINTS}
        profile = write_profile(place / "slow.toml", served(slow.base_url, "reader-a", **more))
        common = {"workspace": str(place / "T"), "sources": [f"jsonl:{place / 'mine.jsonl'}"], "profile": str(profile)}
        common["settings"] = ["run.shards=2"]
        [run] = server.ended(server.start("build/build-short-W", **common))
        assert (run["state_type"], run["state_name"]) == ("FAILED", "TimedOut")
        assert "timed out after 15" in run["state"]["message"]
        done = {path: path.stat().st_mtime_ns for path in (place / "T" / "tables").rglob("part-*.parquet")}
        stages = {path.relative_to(place / "T" / "tables").parts[0] for path in done}
        assert "01_collect" in stages and "10_label" not in stages
        pause[0] = 0.0
        [run] = server.ended(server.start("build/build-W", **common))
    assert run["state_type"] == "COMPLETED"
    assert {path: path.stat().st_mtime_ns for path in done} == done  # what was done stayed done


def test_at_sigterm_the_runs_at_work_are_cancelled_and_the_next_one_has_its_place(server, serving, place) -> None:
    process = serving()
    with RudeServer(lambda number, payload: rude.slow(2.0)) as slow:
        profile = write_profile(place / "stopped.toml", served(slow.base_url, "reader-a", **TWO_HINTS))
        common = {"workspace": str(place / "E"), "sources": [f"jsonl:{place / 'mine.jsonl'}"], "profile": str(profile)}
        one = server.start("build/build-W", **common)
        until(lambda: slow.requests, process, 300)
        process.terminate()
        assert process.wait(120) == 0
    assert server.run(one)["state_type"] == "CANCELLED"
    assert "never awaited" not in (place / "serve.log").read_text(encoding="utf-8")
    serving()
    [run] = server.ended(server.start("build/build-W", workspace=str(place / "W")))
    assert run["state_type"] == "COMPLETED"


def test_prefect_yaml_deploys_for_a_worker_that_runs_it(server: Live, place: Path) -> None:
    environment = {**server.environment, "QUIT_WORKSPACE": str(place / "W")}

    def prefect(*arguments: str) -> str:
        return run_process(sys.executable, "-m", "prefect", *arguments, env=environment).out

    prefect("work-pool", "create", "quit", "--type", "process", "--overwrite")
    prefect("--no-prompt", "deploy", "--all")
    names = ("build/build-nightly", "review-sync/review-sync-hourly", "label-update/label-update-nightly",
             "release/release-weekly")  # fmt: skip
    deployments = {name: server.deployment(name) for name in names}
    nightly = deployments["build/build-nightly"]
    assert nightly["parameters"]["workspace"] == str(place / "W") and nightly["parameters"]["limits"]["retries"] == 2
    assert not {"sources", "profile", "settings"} & {*nightly["parameters"]}
    assert nightly["parameter_openapi_schema"]["properties"]["sources"]["description"]
    assert [one["active"] for one in nightly["schedules"]] == [True]
    run = server.start("build/build-nightly")
    prefect("worker", "start", "--pool", "quit", "--run-once")
    [ended] = server.ended(run)
    assert ended["state_type"] == "COMPLETED"
