"""Every fault that a server can have: a clear error in bounded time, memory and attempts, and the API key nowhere."""

import logging
import tracemalloc
from pathlib import Path

import pytest

from quit.errors import QuitError, ServerError, SettingsError
from quit.models.generation import CachedGenerator, ChatRequest, Completion, GenerationCache
from quit.models.generation.base import ModelOptions
from quit.models.generation.server import ServerGenerator
from quit.models.prompting import load_prompt
from quit.settings import ServerSettings
from tests.servers import rude
from tests.servers.keys import ACCESS, KEY, assert_kept
from tests.servers.rude import FAULTS, RudeServer

PROMPT = load_prompt("probe")
FOR_GOOD = {"400", "401", "401 with the key where messages are cut", "403", "404", "413", "redirect", "thinking"}
"""Faults that no further attempt would change."""
SHOWN = {
    *("400", "401", "401 with the key where messages are cut", "403", "404", "413", "500", "502"),
    *("429 with an unreadable Retry-After", "no HTTP", "header too long", "body that echoes the key", "no choices"),
    *("content that is not a text", "not finished", "a key instead of a count"),
}
"""Faults whose message quotes a text in which the key was."""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ACCESS, KEY)


def _complete(url: str, folder: Path, count: int = 1, **more) -> list[Completion]:
    settings = ServerSettings(
        name="s",
        base_urls=(url,),
        api_key_env=ACCESS,
        **{"attempts": 2, "timeout_seconds": 0.4, "patience_seconds": 0.0, **more},
    )
    requests = [ChatRequest(PROMPT, {"question": f"Q{n}?"}, 32, group=f"q{n}") for n in range(count)]
    with GenerationCache(folder / "g.sqlite") as cache:
        return CachedGenerator(ServerGenerator("r", ModelOptions("rude"), settings), cache).complete(requests)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_in_one_clear_error_without_the_key(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with RudeServer(lambda number, payload: FAULTS[name]) as server, pytest.raises(QuitError) as raised:
        _complete(server.base_url, tmp_path)
    message = str(raised.value)
    assert type(raised.value) is (SettingsError if name in FOR_GOOD else ServerError), message
    assert len(server.requests) == (1 if name in FOR_GOOD else 2)
    assert server.base_url in message and len(message) < 800
    assert message.isprintable()
    assert (f"({ACCESS})" in message) == (name in SHOWN), message
    assert_kept(tmp_path, message, repr(raised.value), caplog.text, *capfd.readouterr())


@pytest.mark.parametrize("name", ["lone surrogate", "infinitely many tokens", "nested 100,000 deep", "endless body"])
def test_what_no_cache_could_hold_is_asked_for_again(name: str, tmp_path: Path) -> None:
    with RudeServer([FAULTS[name]]) as server:
        assert [reply.text for reply in _complete(server.base_url, tmp_path)] == ["NO ANSWER"]


@pytest.mark.parametrize("fault", [rude.ENDLESS, rude.GZIP_BOMB], ids=["endless", "bomb"])
def test_a_reply_takes_no_more_memory_than_its_bound(fault: rude.Fault, tmp_path: Path) -> None:
    with RudeServer(lambda number, payload: fault) as server:
        tracemalloc.start()
        try:
            with pytest.raises(ServerError, match="more than 4 MiB"):
                _complete(server.base_url, tmp_path, attempts=1, timeout_seconds=20)
            assert tracemalloc.get_traced_memory()[1] < rude.BOMB_BYTES / 4
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirect_is_not_followed_and_its_host_is_named(status: int, tmp_path: Path) -> None:
    with RudeServer() as other:
        elsewhere = other.base_url.removeprefix("http://")
        away = rude.redirect(f"http://user:{rude.KEY}@{elsewhere}/chat/completions?key={rude.KEY}", status)
        with RudeServer([away]) as server, pytest.raises(SettingsError, match="base_urls") as raised:
            _complete(server.base_url, tmp_path)
        assert elsewhere.partition("/")[0] in str(raised.value)
        assert "user" not in str(raised.value) and other.requests == []


def test_attempts_count_although_the_server_is_there_in_between(tmp_path: Path) -> None:
    """It answers /models, and each completion's connection breaks half way: four requests, no end of them."""
    with RudeServer(lambda number, payload: rude.CLOSES_MID_BODY) as server:
        with pytest.raises(ServerError, match="failed 3 times"):
            _complete(server.base_url, tmp_path, count=4, attempts=3, patience_seconds=30)
        assert len(server.requests) <= 4 * 3


def test_attempts_count_over_the_times_a_server_is_gone(tmp_path: Path) -> None:
    """A prompt that kills its server: it is refused until the server is back, and then kills it again."""
    from quit.models.generation import replica

    refused = iter([False, True] * 50)
    asked = replica.Replica._ask

    async def ask(self, session, body):
        if next(refused):
            raise replica._Passing("no connection: refused", absent=True)
        return await asked(self, session, body)

    with RudeServer(lambda number, payload: rude.CLOSES_AT_ONCE) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica.Replica, "_ask", ask)
        patch.setattr(replica, "CIRCUIT_FAILURES", 1)
        with pytest.raises(ServerError, match="failed 2 times"):
            _complete(server.base_url, tmp_path, patience_seconds=0.2)
    assert len(server.requests) == 2


def test_a_server_that_is_only_ever_about_to_come_back_is_not_waited_for_twice(tmp_path: Path) -> None:
    from quit.models.generation import replica

    async def refused(self, session, body):
        raise replica._Passing("no connection: refused", absent=True)

    with RudeServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica.Replica, "_ask", refused)
        patch.setattr(replica, "CIRCUIT_FAILURES", 1)
        with pytest.raises(ServerError, match="did not answer"):
            _complete(server.base_url, tmp_path, patience_seconds=0.2)
    assert server.requests == []
