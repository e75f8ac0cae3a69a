"""``quit review agreement`` and ``quit review webhook`` as they are typed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore
from tests.report import tiny


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """The workspace by hand, as a build of this program with its own profile left it."""
    opened = tiny.workspace(tmp_path / "W")
    opened.set_build({"profile": "embedded", "overrides": [], "sources": []})
    return opened


def test_agreement_is_what_follows_from_four_answers(call, workspace: Workspace) -> None:
    """Both accept q2's two answers and neither q3's wrong one; of q3's right one they disagree: three alike of four.

    Yes said by ada to 3 of 4, by bob to 2: chance 3/4 * 2/4 + 1/4 * 2/4 = 1/2, so kappa is (3/4 - 1/2) / (1 - 1/2) =
    1/2.
    """
    printed = call("review", "agreement", "-w", workspace.path, "--json").json()
    assert printed["items"] == 4
    [pair] = printed["pairs"]
    assert (pair["items"], pair["agreement"], pair["kappa"]) == (4, 0.75, pytest.approx(0.5))
    shown = call("review", "agreement", "-w", workspace.path)
    assert shown.code == 0 and "kappa 0.500, 75.0% of 4 alike" in shown.out and "over 4 answers" in shown.out


def test_the_webhook_takes_events_with_its_secret_only_and_pulls(call, workspace, monkeypatch) -> None:
    """Label Studio is a list of webhooks here; the receiver, its address and its secret are real."""
    hooks: list[SimpleNamespace] = []
    pulls: list[int] = []

    def create(**values) -> SimpleNamespace:
        hooks.append(SimpleNamespace(id=5, **values))
        return hooks[-1]

    studio = SimpleNamespace(webhooks=SimpleNamespace(list=lambda project: hooks, create=create))
    server = SimpleNamespace(ask=lambda call: call(studio))

    def pull(store, server, settings, project: int):
        pulls.append(project)
        return SimpleNamespace(versions=1, withdrawn=0, events=1, done=1, tasks=2)

    def serve(receiver, pull_once: Callable[[], str], settings, stop, say) -> None:
        [registered] = hooks
        assert registered.url == receiver.url and registered.project == 7
        for headers, code in ((registered.headers, 202), ({"X-Quit-Secret": "guessed"}, 401)):
            event = urllib.request.Request(receiver.url, json.dumps({"action": "x"}).encode(), headers)
            try:
                with urllib.request.urlopen(event, timeout=30) as response:
                    status = response.status
            except urllib.error.HTTPError as error:
                status = error.code
            assert status == code
        assert receiver.woken.is_set()
        say(pull_once())

    monkeypatch.setattr("annotation.client.connect", lambda path, review, url: server)
    monkeypatch.setattr("annotation.project.known_project", lambda store, server, project: SimpleNamespace(id=7))
    monkeypatch.setattr("annotation.sync.pull", pull)
    monkeypatch.setattr("annotation.webhook.serve", serve)
    shown = call("review", "webhook", "-w", workspace.path, "--port", 0)
    assert shown.code == 0, shown.err
    first, second = shown.out.splitlines()
    assert first.startswith("Receiving events of project 7 at http://127.0.0.1:")
    assert second == "1 new versions, 0 withdrawn, 1 events; 1 of 2 done" and pulls == [7]
    assert len(list(ReviewStore(workspace).folder.rglob("*.json"))) >= 1
