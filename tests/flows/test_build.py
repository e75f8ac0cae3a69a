"""Jobs of the command line as runs of a named Prefect server: the same bytes, and servers that are gone."""

import os
import shutil
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from prefect import get_client

from quit.common.progress import listening
from quit.engine.workspace import Workspace
from quit.errors import SettingsError, Waiting
from quit.flows.build import build
from quit.flows.calling import run_job, server_url
from quit.library import jobs
from quit.stages.order import STAGES
from tests.comparing import files_of
from tests.paths import FEW, ROOT
from tests.running import QUIT, call_quit, run_process, until
from tests.servers.serving import serving

pytestmark = pytest.mark.slow


def _build(folder: Path, source: Path) -> list[str]:
    return ["build", "-w", str(folder), "-s", str(source), "-p", str(FEW), "--shards", "3"]


def test_a_command_is_a_run_of_the_named_server_with_a_task_per_stage(few_built, few_source, tmp_path, prefect_server):
    result = run_process(*QUIT, *_build(tmp_path / "W", few_source))
    assert "10 label: done, 3 shards" in result.err and "Prefect" not in result.err
    assert files_of(tmp_path / "W" / "tables") == files_of(few_built / "tables")
    with get_client(sync_client=True) as client:
        [run] = client.read_flow_runs()
        tasks = sorted(client.read_task_runs(), key=lambda task: task.start_time)
    assert run.state_name == "Completed" and run.parameters["workspace"] == str(tmp_path / "W")
    assert [task.name for task in tasks] == [stage.name for stage in STAGES]


def test_a_run_takes_the_settings_of_the_last_build_and_replaces_no_labels_by_those_of_others(
    few_built, tmp_path, prefect_server
) -> None:
    """Except of a command, whose user has named the settings."""
    workspace = Workspace.open(shutil.copytree(few_built, tmp_path / "W"))
    call_quit("build", "-w", workspace, "--set", "judge.threshold=0.25")
    tables, last = files_of(workspace.path / "tables"), workspace.build
    state = build(str(workspace), return_state=True)
    assert (state.name, workspace.build, files_of(workspace.path / "tables")) == ("Nothing new", last, tables)
    for named in ({"settings": ["run.shards=1"]}, {"profile": "embedded"}):
        state = build(str(workspace), **named, return_state=True)
        assert state.name == "Failed" and ("judge.threshold was 0.25, is 0.5" in state.message) == ("settings" in named)
        assert (workspace.build, files_of(workspace.path / "tables")) == (last, tables)
    assert build(str(workspace), settings=["run.shards=1"], replace=True, return_state=True).name == "Completed"


def test_progress_begins_at_what_is_done_and_ends_at_all_of_it(few_built, tmp_path, monkeypatch) -> None:
    folder, percents = shutil.copytree(few_built, tmp_path / "W"), []
    for part in (folder / "tables").glob("*_describe/**/*.parquet"):
        part.unlink()
    module = import_module("quit.flows.build")
    monkeypatch.setattr(module, "create_progress_artifact", lambda percent, **_: percents.append(percent))
    monkeypatch.setattr(module, "update_progress_artifact", lambda _, percent, **__: percents.append(percent))
    with listening(module._Progress()):
        jobs.build(str(folder))
    assert 80 < percents[0] < percents[-1] == 100 and sorted(percents) == percents


def test_a_command_waits_for_a_batch_with_a_server_as_without(prefect_server, tmp_path: Path, monkeypatch) -> None:
    def waits(*_: Any, **__: Any) -> None:
        raise Waiting("r waits for batch_1")

    job = jobs.build
    monkeypatch.setattr(jobs, "build", waits)
    with pytest.raises(Waiting, match="^r waits for batch_1$"):
        run_job(job, workspace=str(tmp_path / "W"))


def test_a_server_that_does_not_answer_is_named_before_anything_is_done(few_source, tmp_path, monkeypatch) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{nobody.getsockname()[1]}/api")
        result = run_process(*QUIT, *_build(tmp_path / "W", few_source), code=6)
    assert "unset PREFECT_API_URL" in result.err and not (tmp_path / "W").exists()


def test_a_server_that_dies_ends_the_process_with_a_message() -> None:
    """A stand-in that answers Prefect's question for its health, then nothing any more."""
    program = "import time\nimport quit.flows.server as s\nwith s.server_watched(1): time.sleep(60)"
    checks: list[str] = []
    with serving(lambda method, path, headers, body: (200, b"true", checks.append(path) or {})) as url:
        variables = {**os.environ, "PREFECT_API_URL": f"{url}/api"}
        process = subprocess.Popen(
            [sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, cwd=ROOT, env=variables
        )
        until(lambda: len(checks) > 2, process)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 6 and "has not answered for 1 s. What is done stays done." in errors


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PREFECT_API_URL": ""}, None),
        ({"PREFECT_API_URL": "http://a/api"}, "http://a/api"),
        ({}, "http://active/api"),
        ({"PREFECT_PROFILE": "other"}, "http://other/api"),
        ({"PREFECT_PROFILE": "none"}, None),
    ],
)
def test_prefects_profile_names_a_server(variables, expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = ["active = 'mine'", "[profiles.mine]\nPREFECT_API_URL = 'http://active/api'"]
    profiles += ["[profiles.other]\nPREFECT_API_URL = 'http://other/api'", "[profiles.none]"]
    (tmp_path / "profiles.toml").write_text("\n".join(profiles), encoding="utf-8")
    for name in ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"PREFECT_HOME": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, value)
    assert server_url() == expected
    assert os.environ.get("PREFECT_API_URL") == variables.get("PREFECT_API_URL")


@pytest.mark.parametrize(
    "text", ["profiles = 3", "active = ['a']\n[profiles.a]", "active = 'a'\n[profiles]\na = 3", "["]
)
def test_profiles_of_another_form_name_no_server(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    (tmp_path / "profiles.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PREFECT_PROFILES_PATH", str(tmp_path / "profiles.toml"))
    assert server_url() is None


@pytest.mark.parametrize("url", ["nonsense", "127.0.0.1:4200/api", "http://"])
def test_a_variable_that_is_no_address_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", url)
    with pytest.raises(SettingsError, match="PREFECT_API_URL is no address"):
        server_url()
