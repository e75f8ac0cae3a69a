"""The local server: one command, secrets that stay secret, and clear words when it cannot run."""

import json
import os
import shutil
import signal
import stat
import subprocess
import time
from dataclasses import replace

import httpx
import pytest

from quit.annotation.server import LocalServer, label_studio_programs, store_account, stored_account
from quit.common.children import SupervisedProcess
from quit.common.starting import healthy
from quit.engine.workspace import Workspace
from quit.errors import InputError, MissingDependency, ServerError, WorkspaceError
from quit.review.store import ReviewStore
from tests.label_studio import first_server
from tests.paths import ROOT
from tests.running import PLAIN, QUIT, call_quit, until
from tests.servers.ports import taken_port

pytestmark = pytest.mark.slow


def test_serve_says_how_to_get_in_and_where_the_tasks_are_once_they_are_pushed(live, tmp_path) -> None:
    workspace = Workspace.create(tmp_path / "W")
    shutil.copytree(first_server(), workspace.path / "reviews" / "server")
    output, command = tmp_path / "output", [*QUIT, "review", "serve", "-w", workspace.path, "--port", "0"]
    with output.open("w") as out, subprocess.Popen(command, cwd=ROOT, stdout=out, env={**os.environ, **PLAIN}) as serve:
        until(lambda: "next" in output.read_text(), serve, every=0.2)
        account = stored_account(workspace.path)
        ReviewStore(workspace).set_project({"key": "k", "url": account.url, "id": 8, "tasks": []})
        time.sleep(1.5)
        ReviewStore(workspace).set_project({"key": "k", "url": account.url, "id": 7, "tasks": ["q"]})
        until(lambda: "project" in output.read_text(), serve, every=0.2)
        again = call_quit("review", "serve", "-w", workspace.path).out  # it runs: the command uses it and ends at once
        serve.send_signal(signal.SIGINT)
    ready, owner, following, link, project = output.read_text().splitlines()
    assert again.splitlines() == [ready, owner, link, project] and not healthy(account.url)
    assert ready.endswith(f"is ready: {account.url}") and f"owner@quit.local, password {account.password}" in owner
    assert link.split()[-1].startswith(f"{account.url}/user/signup/?token=") and account.token not in again
    assert following.split() == f"next quit review push -w {workspace.path}".split()
    assert link.endswith("&next=%2Fprojects%2F7%2Fdata%3Flabeling%3D1")
    assert project.split() == ["project", f"{account.url}/projects/7/data"] and account.password not in repr(account)
    path = workspace.path / "reviews" / "server" / "account.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and (path.parent / ".gitignore").read_text() == "*\n"
    assert httpx.get(f"{live.account.url}/user/signup", follow_redirects=True).status_code in (200, 403)
    log = (path.parent / "server.log").read_text(errors="replace")
    assert account.token not in log and account.password not in log


def test_a_taken_port_and_newer_data_are_said(live, tmp_path) -> None:
    with taken_port() as port, pytest.raises(InputError, match=rf"Port {port} .* in use"):
        LocalServer(tmp_path, port=port).start()
    store_account(tmp_path, replace(live.account, version="99.0.0", pid=None))
    with pytest.raises(WorkspaceError, match="written by Label Studio 99.0.0"):
        LocalServer(tmp_path).start()


def test_a_server_that_ends_by_itself_is_said(tmp_path) -> None:
    server = LocalServer(tmp_path)
    assert not server.runs_on(0.0)  # another process has started it
    server._process = SupervisedProcess(["sh", "-c", "read line; exit 3"], stdin=subprocess.PIPE)
    assert server.runs_on(0.0)
    server._process.communicate()
    with pytest.raises(ServerError, match=r"ended by itself \(exit code 3\); .*server.log"):
        server.runs_on(10.0)


def test_a_damaged_account_file_is_said(tmp_path) -> None:
    path = tmp_path / "reviews" / "server" / "account.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"url": 1}))
    with pytest.raises(WorkspaceError, match="Delete it"):
        stored_account(tmp_path)


def test_an_environment_that_cannot_be_made_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("QUIT_ENVS", str(tmp_path))
    monkeypatch.setenv("QUIT_ENVIRONMENTS", "existing")
    with pytest.raises(MissingDependency, match=r"(?s)could not be installed.*--url URL"):
        label_studio_programs()
