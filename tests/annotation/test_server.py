"""The local server: one command, secrets that stay secret, and clear words when it cannot run."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from quit.annotation import server as own
from quit.annotation.push import push
from quit.annotation.server import Account, LocalServer, label_studio_programs, store_account, stored_account
from quit.common.children import SupervisedProcess
from quit.common.starting import healthy
from quit.engine.workspace import Workspace
from quit.errors import InputError, MissingDependency, ServerError, SettingsError, WorkspaceError
from quit.review.store import ReviewStore
from tests.annotation.test_push import item
from tests.label_studio import first_server, page_result
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


def test_only_the_owner_changes_what_is_not_ones_own(live, people, store, server, settings) -> None:
    """Every account may read, and do what an annotator does; deny is the default."""
    headers = {name: {"Authorization": f"Token {people[f'{name}@example.org']}"} for name in ("ada", "ben")}
    numbers = {user.email.partition("@")[0]: user.id for user in server.ask(lambda studio: studio.users.list())}

    def ask(name: str, method: str, path: str, **body: Any) -> httpx.Response:
        url = f"{live.account.url}/api/{path}"
        return httpx.request(method, url, json=body or None, headers=headers[name], timeout=60)

    project = push(store, server, settings, [item(0), item(1)]).project
    task, other = (task.id for task in server.tasks(project, ["id"]))
    page = {"result": page_result("q000", "gold"), "lead_time": 3.0}
    bens = ask("ben", "POST", f"tasks/{task}/annotations/", **page).json()["id"]
    draft = ask("ben", "POST", f"tasks/{other}/drafts", result=[], lead_time=1.0).json()["id"]
    before = list(server.tasks(project, ["id", "data", "predictions", "annotations", "result", "completed_by"]))
    selected = {"selectedItems": {"all": True, "excluded": []}}
    for method, path, body in [
        ("DELETE", f"projects/{project}/", {}),
        ("PATCH", f"projects/{project}/", {"title": "Mine"}),
        ("PUT", f"projects/{project}/", {"title": "Mine"}),
        ("DELETE", f"projects/{project}/tasks/", {}),
        ("POST", f"projects/{project}/import", {"data": {"key": "x"}}),
        ("POST", "projects/", {"title": "Another"}),
        ("DELETE", f"tasks/{task}/", {}),
        ("PATCH", f"tasks/{task}", {"data": {}}),
        ("POST", "predictions/", {"task": task, "result": []}),
        *(
            ("POST", f"dm/actions?id={action}&project={project}", selected)
            for action in ("delete_tasks", "delete_tasks_annotations", "predictions_to_annotations", "no_such_thing")
        ),
        ("POST", "dm/views/", {"project": project, "data": {}}),
        ("DELETE", f"annotations/{bens}/", {}),
        ("PATCH", f"annotations/{bens}", {"result": []}),
        ("POST", f"annotations/{bens}/convert-to-draft", {}),
        ("POST", f"tasks/{task}/annotations/{bens}/drafts", {"result": []}),
        ("PATCH", f"drafts/{draft}/", {"result": page["result"]}),
        ("POST", f"tasks/{task}/annotations/", {**page, "completed_by": numbers["ben"]}),
        ("PATCH", f"users/{numbers['ben']}/", {"first_name": "Ada"}),
        ("DELETE", f"users/{numbers['ben']}/", {}),
        ("POST", "users/", {"email": "eve@example.org"}),
        ("POST", "invite/reset-token", {}),
        ("POST", "webhooks/", {"url": "http://example.org"}),
    ]:
        assert ask("ada", method, path, **body).status_code == 403, (method, path)
    assert list(server.tasks(project, ["id", "data", "predictions", "annotations", "result", "completed_by"])) == before

    mine = ask("ada", "POST", f"tasks/{task}/annotations/", **page).json()["id"]
    skipped = ask("ada", "POST", f"tasks/{other}/annotations/", **page, was_cancelled=True).json()["id"]
    own = ask("ada", "POST", f"tasks/{other}/drafts", result=[], lead_time=1.0).json()["id"]
    for method, path, body in [
        ("PATCH", f"annotations/{mine}/", page),
        ("PUT", f"annotations/{mine}", {**page, "completed_by": numbers["ada"]}),
        ("POST", f"tasks/{task}/annotations/{mine}/drafts", {"result": []}),
        ("PATCH", f"drafts/{own}/", {"result": page["result"]}),
        ("POST", f"annotations/{skipped}/convert-to-draft", {}),
        ("POST", f"dm/actions?id=next_task&project={project}", selected),
        ("PATCH", f"users/{numbers['ada']}/", {"first_name": "Ada"}),
        ("DELETE", f"drafts/{own}/", {}),
        ("DELETE", f"annotations/{mine}/", {}),
    ]:
        answer = ask("ada", method, path, **body)
        assert answer.status_code < 300, (method, path, answer.text)
    # However she signs in: with a personal token, or in a browser.
    token = live.client(settings, people["ada@example.org"]).ask(lambda studio: studio.tokens.create()).token
    with pytest.raises(SettingsError):
        live.client(settings, token).ask(lambda studio: studio.projects.delete(project))
    with httpx.Client(base_url=live.account.url, follow_redirects=True, timeout=60) as browser:
        form = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', browser.get("/user/login/").text)
        values = {"csrfmiddlewaretoken": form[1], "email": "ada@example.org", "password": "quit-test-1"}
        browser.post("/user/login/", data=values, headers={"Referer": live.account.url}).raise_for_status()
        assert browser.get("/api/current-user/whoami").json()["email"] == "ada@example.org"
        assert browser.delete(f"/api/projects/{project}/").status_code == 403
        assert {browser.get(home).url.path for home in ("/", "/projects/")} == {f"/projects/{project}/data"}
    headers["ada"] = {"Authorization": "Token no-such-token"}
    assert ask("ada", "DELETE", f"projects/{project}/").status_code in (401, 403)
    assert server.ask(lambda studio: studio.projects.update(project, title="Ours")).title == "Ours"


def test_a_taken_port_and_newer_data_are_said(live, tmp_path) -> None:
    with taken_port() as port, pytest.raises(InputError, match=rf"Port {port} .* in use"):
        LocalServer(tmp_path, port=port).start()
    store_account(tmp_path, replace(live.account, version="99.0.0", pid=None))
    with pytest.raises(WorkspaceError, match="written by Label Studio 99.0.0"):
        LocalServer(tmp_path).start()


def test_the_server_of_a_workspace_is_not_its_copys(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(own, "healthy", lambda url: True)
    monkeypatch.setattr(own, "label_studio_programs", lambda say: tmp_path)
    account = Account("http://x", "a@b.org", "p", "t", "1.0.0", str(tmp_path / "W"), os.getpid())
    store_account(tmp_path / "W", account)
    assert LocalServer(tmp_path / "W").start() == account
    shutil.copytree(tmp_path / "W", tmp_path / "copy")
    with taken_port() as port, pytest.raises(InputError, match=rf"Port {port} .* in use"):
        LocalServer(tmp_path / "copy", port=port).start()
    shutil.rmtree(tmp_path / "W")  # it was moved
    assert LocalServer(tmp_path / "copy").start() == account


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
