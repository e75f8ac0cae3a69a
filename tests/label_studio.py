"""A real Label Studio server for the session, people with accounts on it, and a workspace to review."""

from __future__ import annotations

import hashlib
import inspect
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from quit.annotation.server import REQUIREMENTS, Account, LocalServer, store_account
from quit.annotation.tasks import NONE, alias
from quit.engine.workspace import Workspace
from quit.errors import MissingDependency
from quit.settings import Settings
from quit.text.answers import answer_key
from tests.answers import answers_in
from tests.building import LABELERS
from tests.once import kept

if TYPE_CHECKING:
    from quit.annotation.client import Server

SETTINGS = ["review.retries=0", "review.page_tasks=4"]


def first_server() -> Path:
    """Return the folder of a server that was started once and stopped: its database takes a first start 25 seconds.

    It is kept, and made anew where what starts it has changed.
    """

    def make(folder: Path) -> None:
        first = LocalServer(folder, port=0)
        account = first.start()
        first.stop()
        store_account(folder, replace(account, pid=None))

    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + Path(inspect.getfile(LocalServer)).read_bytes()).hexdigest()
    return kept(f"label-studio-{digest[:12]}", make) / "reviews" / "server"


class Live:
    """The server of the workspace ``folder``: ``account`` to get in; ``kill`` and ``restart`` it on the same port, with
    the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server = LocalServer(folder, port=0)
        shutil.copytree(first_server(), self._server.folder)
        self.account: Account = self._server.start()

    def kill(self) -> None:
        self._server.kill()

    def restart(self) -> None:
        self._server = LocalServer(self.folder, port=int(self.account.url.rpartition(":")[2]))
        self.account = self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def client(self, settings: Settings, token: str | None = None) -> Server:
        from quit.annotation.client import Server  # its SDK takes a second to import

        return Server(self.account.url, token or self.account.token, settings.review)

    def sign_up(self, email: str, password: str = "quit-test-1") -> str:
        """Make an account through the invitation, as an annotator does, and return its token."""
        headers = {"Authorization": f"Token {self.account.token}"}
        invite = httpx.get(f"{self.account.url}/api/invite", headers=headers).json()["invite_url"]
        with httpx.Client(base_url=self.account.url, follow_redirects=True, timeout=60) as page:
            form = page.get(invite)
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
            assert token
            data = {"csrfmiddlewaretoken": token.group(1), "email": email, "password": password}
            page.post(invite, data=data, headers={"Referer": f"{self.account.url}{invite}"}).raise_for_status()
            return page.get("/api/current-user/token").raise_for_status().json()["token"]


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    try:
        server = Live(Workspace.create(tmp_path_factory.mktemp("label-studio") / "W").path)
    except MissingDependency as error:
        pytest.skip(str(error))
    yield server
    server.stop()


def page_result(
    question: str, *accepted: str, shown: int | None = 1, flags: Sequence[str] = (), **texts: list[str]
) -> list[dict[str, Any]]:
    """Return what the page sends when these (normalised) answers are ticked, or ``NONE`` is; ``texts``: its text fields
    by name."""
    values: dict[str, tuple[str, dict[str, list[str]]]] = {}
    if shown is not None:
        values["shown"] = ("textarea", {"text": [str(shown)]})
    if accepted:
        values["correct"] = ("choices", {"choices": [key if key == NONE else alias(question, key) for key in accepted]})
    if flags:
        values["flags"] = ("choices", {"choices": list(flags)})
    values |= {name: ("textarea", {"text": lines}) for name, lines in texts.items()}
    fields = [{"from_name": name, "type": kind, "value": value} for name, (kind, value) in values.items()]
    return [{**field, "to_name": "question"} for field in fields]


def annotate(server: Server, task: int, result: list[dict[str, Any]], **more: Any) -> int:
    """Submit an annotation as the page does; returns its number."""
    facts = {"lead_time": 3.0, **more}
    return server.ask(lambda studio: studio.annotations.create(task, result=result, **facts)).id


def wrong_answers(workspace: Workspace, question: str) -> dict[str, set[str]]:
    """Return answer key -> passages from which a labeler gave it, of answers that are judged wrong and share no word
    with a hint."""
    rows = {
        name: [row for row in workspace.read(name).to_pylist() if row["question_id"] == question]
        for name in ("hints", "verdicts")
    }
    words = {word for row in rows["hints"] for word in answer_key(row["hint"]).split()}
    wrong = {row["answer_key"] for row in rows["verdicts"] if not row["correct"]}
    passages: dict[str, set[str]] = {}
    for row in answers_in(workspace):
        key = answer_key(row["answer"])
        if row["question_id"] == question and row["reader"] in LABELERS and key in wrong and not words & {*key.split()}:
            passages.setdefault(key, set()).add(row["permutation"])
    return passages
