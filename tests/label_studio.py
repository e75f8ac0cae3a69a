"""A real Label Studio server for the session, people with accounts on it, and a small real collection to review."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from annotation.client import Server, connect
from annotation.server import Account, LocalServer
from quit.errors import MissingDependency
from quit.settings import Settings, load

SETTINGS = ["review.retries=0", "review.page_tasks=4", "review.reread_seconds=60"]


class Live:
    """The server: ``account`` to get in; ``kill`` and ``restart`` it on the same port, with the same data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = LocalServer(folder, port=0)
        self.account: Account = self._server.start()

    def kill(self) -> None:
        self._server.kill()

    def restart(self) -> None:
        self._server = LocalServer(self._folder, port=int(self.account.url.rpartition(":")[2]))
        self.account = self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def client(self, settings: Settings, token: str | None = None) -> Server:
        return connect(Path("nowhere"), settings.review, self.account.url, token or self.account.token)

    def sign_up(self, email: str, password: str = "quit-test-1") -> str:
        """Make an account through the invitation, as an annotator does, and return its token."""
        headers = {"Authorization": f"Token {self.account.token}"}
        invite = httpx.get(f"{self.account.url}/api/invite", headers=headers).json()["invite_url"]
        with httpx.Client(base_url=self.account.url, follow_redirects=True, timeout=60) as page:
            form = page.get(invite)
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
            assert token
            made = page.post(
                invite,
                data={"csrfmiddlewaretoken": token.group(1), "email": email, "password": password},
                headers={"Referer": f"{self.account.url}{invite}"},
            )
            made.raise_for_status()
            found = page.get("/api/current-user/token")
            found.raise_for_status()
            return found.json()["token"]


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    try:
        server = Live(tmp_path_factory.mktemp("label-studio"))
    except MissingDependency as error:
        pytest.skip(str(error))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def people(live: Live) -> dict[str, str]:
    """E-mail -> token of two annotators."""
    return {email: live.sign_up(email) for email in ("ada@example.org", "ben@example.org")}


@pytest.fixture(scope="session")
def review_settings() -> Settings:
    return load("embedded", SETTINGS).settings


@pytest.fixture(scope="session")
def reviewed_build(data: Path, tmp_path_factory: pytest.TempPathFactory, prefect_home: Path) -> Path:
    """A workspace built from the first twenty questions of WikiHint."""
    from tests.conftest import run_quit

    folder = tmp_path_factory.mktemp("wikihint")
    [source] = sorted((data / "wikihint").glob("*.json"))
    records = json.loads(source.read_text(encoding="utf-8"))[:20]
    (folder / "small.json").write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
    workspace = folder / "W"
    overrides = [word for text in SETTINGS for word in ("--set", text)]
    done = run_quit(
        "build",
        "-q",
        "-w",
        str(workspace),
        "--source",
        f"wikihint:{folder / 'small.json'}",
        *overrides,
        home=prefect_home,
    )
    assert done.returncode == 0, done.stderr
    return workspace


@pytest.fixture
def review_workspace(reviewed_build: Path, tmp_path: Path) -> Path:
    """A copy of that workspace that a test may change."""
    return Path(shutil.copytree(reviewed_build, tmp_path / "W"))


@pytest.fixture
def quit_review(
    live: Live, prefect_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``quit review ...`` as a user does, with the owner's token in the environment."""
    from tests.conftest import run_quit

    monkeypatch.setenv("LABEL_STUDIO_API_KEY", live.account.token)
    return lambda *arguments: run_quit("review", *arguments, home=prefect_home)
