"""The local server: one command, secrets that stay secret, and clear words when it cannot run."""

import json
import re
import socket
import stat
import subprocess
import sys
import time
from dataclasses import replace

import httpx
import pytest

from annotation.server import LocalServer, _store, label_studio_programs, stored_account
from quit.engine.workspace import Workspace
from quit.errors import InputError, MissingDependency, WorkspaceError
from tests.conftest import ROOT

pytestmark = pytest.mark.slow


def test_serve_starts_a_server_and_says_how_to_get_in(live, tmp_path) -> None:
    workspace = Workspace.create(tmp_path / "W")
    process = subprocess.Popen(
        [sys.executable, "-m", "quit.cli", "review", "serve", "-w", str(workspace.path), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(4)]
        url = re.search(r"ready: (http://127\.0\.0\.1:\d+)", lines[0])
        assert url and "owner@quit.local, password" in lines[1] and f"{url.group(1)}/user/signup/?token=" in lines[2]
        account = stored_account(workspace.path)
        assert account and account.token not in "".join(lines) and account.password not in repr(account)
        path = workspace.path / "reviews" / "server" / "account.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and (path.parent / ".gitignore").read_text() == "*\n"
        headers = {"Authorization": f"Token {account.token}"}
        assert httpx.get(f"{account.url}/api/current-user/whoami", headers=headers).json()["email"] == account.email
        assert LocalServer(workspace.path).start() == account  # a second start finds it running
        assert httpx.get(f"{account.url}/user/signup", follow_redirects=True).status_code in (200, 403)
        log = (path.parent / "server.log").read_text(errors="replace")
        assert account.token not in log and account.password not in log
    finally:
        process.kill()
        process.wait(120)
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            httpx.get(f"{account.url}/health", timeout=1)
        except httpx.HTTPError:
            break
        time.sleep(0.2)
    else:
        pytest.fail("the server outlived the command")


def test_a_taken_port_and_newer_data_are_said(live, tmp_path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(InputError, match=r"Port \d+ .* in use"):
            LocalServer(tmp_path, port=other.getsockname()[1]).start()
    _store(tmp_path, replace(live.account, version="99.0.0", pid=None))
    with pytest.raises(WorkspaceError, match="written by Label Studio 99.0.0"):
        LocalServer(tmp_path).start()


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
