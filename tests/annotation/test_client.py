"""What is said about servers that misbehave: down, starting, half way through an upgrade, or no Label Studio at all."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote_plus

import httpx
import pytest
from label_studio_sdk import LabelStudio

from quit.annotation import client
from quit.annotation.client import Server, connect
from quit.annotation.server import Account, store_account
from quit.errors import InputError, ServerError, SettingsError
from quit.settings import Review
from tests.servers.serving import serving

QUICK = Review(retries=2)


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAUSE_SECONDS", 0.0)


@contextmanager
def answering(code: int, body: bytes, **headers: str) -> Iterator[tuple[str, list[str]]]:
    """A server that says the same to everyone; yields its address and the list of what it was asked."""
    paths: list[str] = []

    def answer(method: str, path: str, *_: object) -> tuple[int, bytes, dict[str, str]]:
        paths.append(path)
        return code, body, {"Content-Type": "application/json", **headers}

    with serving(answer) as url:
        yield url, paths


@pytest.mark.parametrize(
    ("code", "body", "kind", "message"),
    [
        (503, b"{}", ServerError, r"answered 503: .*half way through an upgrade \(tried 3 times\).*Nothing is lost"),
        (500, b"<h1>Error</h1>", ServerError, "answered 500"),
        (200, b"<html>Migrating the database</html>", ServerError, "page instead of data.*half way through an upgrade"),
        *((code, b'{"detail": "no"}', SettingsError, None) for code in (401, 403)),
        *((code, b'{"detail": "no"}', InputError, None) for code in (404, 400)),
        *((200, body, InputError, "is not a Label Studio server") for body in (b"{}", b"[]", b"null", b'"ok"')),
    ],
)
def test_only_a_server_in_trouble_is_tried_again_and_then_said(monkeypatch, code, body, kind, message) -> None:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "t" * 40)
    with answering(code, body) as (url, paths):
        with pytest.raises(kind, match=message) as error:
            connect(Path("nowhere"), QUICK, url)
        assert len(paths) == (3 if kind is ServerError else 1) and "t" * 40 not in str(error.value)


def test_a_certificate_that_is_not_trusted_names_its_remedy() -> None:
    def untrusted(_: LabelStudio) -> None:
        raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate")

    with answering(200, b"{}") as (url, _), pytest.raises(SettingsError, match="could not be reached.*SSL_CERT_FILE"):
        Server(url, "t" * 40, QUICK).ask(untrusted)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://labels.example.org/studio/api/current-user/whoami?token=abc", "https://labels.example.org/studio"),
        ("/login?next=/api/x", "{}/login"),
        ("", "{}/"),
    ],
)
def test_a_redirect_is_named_and_not_followed(monkeypatch, code, location, target) -> None:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "t" * 40)
    with answering(code, b"", Location=location) as (url, paths):
        with pytest.raises(SettingsError) as error:
            connect(Path("nowhere"), QUICK, url)
        assert f"{url} redirects to {target.format(url)}. Redirects are not" in str(error.value) and len(paths) == 1
        server = Server(url, "t" * 40, QUICK)
        with pytest.raises(SettingsError, match="redirects to"):
            server.ask(lambda studio: studio.projects.create(title="Any"), again=False)
        assert len(paths) == 2


def test_after_a_broken_request_the_next_one_takes_a_new_connection() -> None:
    used = []

    def broken(studio: LabelStudio) -> None:
        used.append(studio)
        raise httpx.ReadError("reset")

    server = Server("http://127.0.0.1:9", "t" * 40, QUICK)
    for again in (True, False):
        with pytest.raises(ServerError, match="could not be reached"):
            server.ask(broken, again=again)
    assert len({id(studio) for studio in used}) == len(used) == 4


def test_a_server_with_smaller_pages_lists_every_task() -> None:
    """Label Studio's TASK_API_PAGE_SIZE_MAX."""
    served: list[str] = []

    def answer(_method: str, path: str, *_: object) -> tuple[int, bytes, dict[str, str]]:
        [after] = re.findall('"value": (\\d+)', unquote_plus(path))
        served.append(after)
        tasks = [{"id": number} for number in range(int(after) + 1, 8)][:3]
        return 200, json.dumps({"tasks": tasks, "total": 7}).encode(), {"Content-Type": "application/json"}

    with serving(answer) as url:
        tasks = Server(url, "t" * 40, Review(page_tasks=500)).tasks(1, ["id"])
        assert [task.id for task in tasks] == [1, 2, 3, 4, 5, 6, 7]
    assert served == ["0", "3", "6", "7"]


def test_the_workspaces_own_server_is_told_how_to_start(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "t" * 40)
    store_account(tmp_path, Account("http://127.0.0.1:9", "a@b.org", "p", "t" * 40, "1"))
    with pytest.raises(ServerError, match=f"quit review serve -w {tmp_path}"):
        connect(tmp_path, QUICK)
    with pytest.raises(ServerError) as other:
        connect(tmp_path, QUICK, "http://127.0.0.1:10")
    assert "quit review serve" not in str(other.value)
    with answering(401, b"{}") as (url, _):
        store_account(tmp_path, Account(url, "a@b.org", "p", "t" * 40, "1"))
        with pytest.raises(SettingsError, match=f"another server answers there.*serve -w {tmp_path} --port"):
            connect(tmp_path, QUICK)


def test_what_is_missing_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
    with pytest.raises(SettingsError, match="quit review serve"):
        connect(tmp_path, QUICK)
    for secret in ("http://me:password@127.0.0.1:9", "http://127.0.0.1:9?token=abcdef"):
        with pytest.raises(SettingsError, match="http://127.0.0.1:9 holds a password or a key"):
            connect(tmp_path, QUICK, secret)
    for url in ("labels.example.org", "http://[::1"):
        with pytest.raises(SettingsError, match="is not an address"):
            connect(tmp_path, QUICK, url)
    with pytest.raises(SettingsError, match="LABEL_STUDIO_API_KEY"):
        connect(tmp_path, QUICK, "http://127.0.0.1:9")
    for token in ("abc\u2026", "abc\nabc"):
        monkeypatch.setenv("LABEL_STUDIO_API_KEY", token)
        with pytest.raises(SettingsError, match="LABEL_STUDIO_API_KEY has characters that no key or token has"):
            connect(tmp_path, QUICK, "http://127.0.0.1:9/")
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "abc")


def test_blanks_around_a_token_are_not_of_it(monkeypatch) -> None:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", f" {'t' * 40}\n")
    with answering(200, b'{"id": 1, "email": "a@b.org"}') as (url, _):
        assert connect(Path("nowhere"), QUICK, url).url == url
