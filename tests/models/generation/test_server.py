"""The client of OpenAI-compatible servers against every fault of one (a real one cannot be made to show them)."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest

from quit.common.progress import Listener, listening
from quit.errors import QuitError, ServerError, SettingsError, WorkspaceError
from quit.models.generation import ChatRequest, Completion, Meter
from quit.models.generation.base import ModelOptions
from quit.models.generation.server import ServerGenerator
from quit.models.prompting import load_prompt
from quit.settings import ServerSettings
from tests.servers import rude
from tests.servers.keys import ACCESS, KEY
from tests.servers.rude import RudeServer

PROMPT = load_prompt("probe")
RUDE = ModelOptions("rude")
QUICK = {"patience_seconds": 0.0, "timeout_seconds": 5.0}


def _settings(*urls: str, **more) -> ServerSettings:
    return ServerSettings(name="s", base_urls=urls, **{**QUICK, **more})


def _requests(count: int, group: str | None = None) -> list[ChatRequest]:
    return [ChatRequest(PROMPT, {"question": f"Q{n}?"}, 32, group=group or f"q{n}") for n in range(count)]


def _question(payload) -> str:
    return payload["messages"][-1]["content"].rpartition("Question: ")[2]


def _ask(
    requests: Sequence[ChatRequest], *urls: str, options: ModelOptions = RUDE, **more
) -> tuple[dict[int, str], Meter]:
    meter, replies = Meter(), {}

    def done(position: int, completion: Completion) -> None:
        assert position not in replies, "handed in twice"
        replies[position] = completion.text

    ServerGenerator("r", options, _settings(*urls, **more), meter).generate(requests, done)
    return replies, meter


class Heard(Listener):
    """Keeps what is told to those who want to hear nothing but errors."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def noted(self, text: str, loud: bool) -> None:
        self.lines += [text] * loud


@pytest.mark.parametrize(
    "fault",
    [
        rude.too_many(),
        rude.too_many(0.05),
        rude.failure(500),
        rude.failure(502),
        rude.failure(503),
        rude.CLOSES_AT_ONCE,
        rude.CLOSES_MID_BODY,
        rude.NOT_JSON,
        rude.HALF_JSON,
        rude.NO_CHOICES,
        rude.Fault(content="part of it", finish_reason="abort"),
        rude.Fault(content=""),
    ],
    ids=lambda fault: f"{fault.status}-{fault.finish_reason}-{(fault.body or b'')[:12]!r}-{fault.cut}",
)
def test_a_passing_fault_costs_one_more_attempt_and_nothing_else(fault: rude.Fault) -> None:
    with RudeServer([None, fault], reply=_question) as server:
        replies, meter = _ask(_requests(4), server.base_url, concurrency=1)
        assert replies == {n: f"Q{n}?" for n in range(4)}
        assert len(server.requests) == 5
        assert meter.snapshot()["r"]["retries"] == 1


def test_a_slow_server_is_waited_for_and_a_hanging_one_asked_again() -> None:
    with RudeServer([rude.slow(0.3), rude.HANGS], reply=_question) as server:
        replies, _ = _ask(_requests(3), server.base_url, concurrency=1, timeout_seconds=2)
        assert replies == {n: f"Q{n}?" for n in range(3)}
        assert len(server.requests) == 4


@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_honoured(as_date: bool, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: clock.now)
    with RudeServer([rude.too_many(60, as_date=as_date)]) as server:
        _ask(_requests(1), server.base_url)
    assert len(server.requests) == 2 and clock.pauses == [60]


def test_requests_arrive_in_order_and_no_more_at_once_than_allowed() -> None:
    with RudeServer(lambda number, payload: rude.slow(0.01), reply=_question) as server:
        _ask(_requests(40), server.base_url, concurrency=4)
        assert server.most_at_once == 4
        order = [int(_question(request.payload)[1:-1]) for request in server.requests]
        assert all(abs(position - number) < 4 for position, number in enumerate(order))
    with RudeServer(reply=_question) as server:
        _ask(_requests(40), server.base_url, concurrency=1)
        assert [_question(request.payload) for request in server.requests] == [f"Q{n}?" for n in range(40)]


def test_an_overloaded_server_gets_fewer_at_once() -> None:
    def overload(number: int, payload):
        # A server that takes four at once and refuses the rest.
        return replace(rude.too_many(), delay=0.05) if server.requests[-1].at_once > 4 else rude.slow(0.05)

    replies: dict[int, str] = {}
    with RudeServer(overload, reply=_question) as server:
        generator = ServerGenerator("r", RUDE, _settings(server.base_url, concurrency=32, attempts=50))
        generator.generate(_requests(150), lambda position, reply: replies.update({position: reply.text}))
    assert replies == {n: f"Q{n}?" for n in range(150)}
    assert generator._replicas[0]._limiter.limit < 32, "halved, and not grown back to all by so few"


def test_a_missing_key_is_named_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SECRET_KEY_OF_MINE", raising=False)
    with RudeServer() as server, pytest.raises(SettingsError, match="SECRET_KEY_OF_MINE"):
        _ask(_requests(1), server.base_url, api_key_env="SECRET_KEY_OF_MINE")
    assert server.requests == []


def test_after_the_last_attempt_the_error_says_how_often_and_what_came_before_was_handed_in() -> None:
    replies: dict[int, str] = {}

    def always(number: int, payload):
        return rude.failure(500, "out of luck") if _question(payload) == "Q2?" else None

    with RudeServer(always, reply=_question) as server:
        generator = ServerGenerator("r", ModelOptions("rude"), _settings(server.base_url, concurrency=1, attempts=3))
        with pytest.raises(ServerError, match="failed 3 times.*out of luck") as raised:
            generator.generate(_requests(5), lambda position, reply: replies.update({position: reply.text}))
    assert raised.value.retryable
    assert replies == {0: "Q0?", 1: "Q1?"}


def test_what_is_in_flight_when_a_fault_is_told_still_comes_in() -> None:
    replies: dict[int, str] = {}

    def script(number: int, payload):
        return rude.WRONG_MODEL if _question(payload) == "Q0?" else rude.slow(0.3)

    with RudeServer(script, reply=_question) as server:
        generator = ServerGenerator("r", ModelOptions("rude"), _settings(server.base_url, concurrency=4))
        with pytest.raises(QuitError):
            generator.generate(_requests(100), lambda position, reply: replies.update({position: reply.text}))
        assert len(replies) == len(server.answered) >= 3, "paid for, so kept"


def test_an_empty_reply_counts_after_one_more_attempt() -> None:
    with RudeServer(lambda number, payload: rude.CONTENT_NULL) as server:
        replies, _ = _ask(_requests(1), server.base_url)
        assert replies == {0: ""} and len(server.requests) == 2


def test_questions_stay_on_their_replica() -> None:
    with RudeServer(reply=_question) as one, RudeServer(reply=_question) as other:
        requests = [
            ChatRequest(PROMPT, {"question": f"{group} {n}"}, 32, group=f"q{group}")
            for group in range(20)
            for n in range(5)
        ]
        replies, _ = _ask(requests, one.base_url, other.base_url, concurrency=3)
        groups = [{_question(request.payload).split()[0] for request in each.requests} for each in (one, other)]
    assert len(replies) == 100
    assert not groups[0] & groups[1]
    assert min(len(each) for each in groups) >= 3, "both work"


@pytest.mark.parametrize("others", ["none", "well", "gone", "bad"])
def test_a_replica_that_fails_leaves_its_questions_to_the_others(others: str) -> None:
    with RudeServer(lambda *_: rude.failure(500, "broken")) as bad, RudeServer(reply=_question) as other:
        if others == "gone":
            other._server.server_close()
        if others == "bad":
            other.script = lambda *_: rude.failure(500, "broken")
        urls = [bad.base_url, *([other.base_url] if others != "none" else [])]
        heard = Heard()
        with listening(heard):
            if others == "well":
                replies, _ = _ask(_requests(30), *urls, concurrency=3, attempts=2)
                assert replies == {n: f"Q{n}?" for n in range(30)} and len(other.answered) == 30
            else:
                with pytest.raises(
                    ServerError, match="did not answer" if others == "gone" else "failed 2 times.*broken"
                ):
                    _ask(_requests(30), *urls, concurrency=3, attempts=2)
        assert len(bad.requests) <= 3 * 2, "left out for the rest of the call"
        moved = [line for line in heard.lines if "left out for now (HTTP 500: broken)" in line and bad.base_url in line]
        if others != "bad":  # of two, either may be the first
            assert len(moved) == (others != "none")


def test_the_first_failed_attempt_is_told_and_a_storm_is_not() -> None:
    heard = Heard()
    with RudeServer(lambda number, _: rude.failure(503) if number < 40 else None) as server, listening(heard):
        _ask(_requests(10), server.base_url, attempts=50)
    [line] = heard.lines
    assert line.startswith(f"r: {server.base_url}: HTTP 503") and "(attempt 1 of 50)" in line


@pytest.mark.parametrize(
    ("models", "says"),
    [
        (None, ""),
        (b'{"data": [{"id": "rude", "created": 7, "permission": [{"id": "x"}], "root": "org/rude", "owned_by": "me"}]}',
         " owned_by=me root=org/rude"),
        (b"<html>", ""),
        (b'{"data": 7}', ""),
    ],
)  # fmt: skip
def test_a_reply_knows_its_server_and_what_that_says_of_the_model(models: bytes | None, says: str) -> None:
    origins: list[str] = []
    with RudeServer() as server:
        server.models = models and rude.Fault(body=models)
        generator = ServerGenerator("r", RUDE, _settings(server.base_url))
        for _ in range(2):
            generator.generate(_requests(3), lambda position, reply: origins.append(reply.origin))
    assert origins == [f"{server.base_url}{says}"] * 6 and server.looks == 1


def test_another_model_in_replies_is_told_once() -> None:
    heard = Heard()
    with RudeServer(lambda number, _: rude.Fault(model="alias" if number < 3 else "other")) as server, listening(heard):
        _ask(_requests(8), server.base_url, concurrency=1)
    [line] = heard.lines
    assert "'other'" in line and "'alias'" in line and server.base_url in line


def test_a_server_that_is_gone_opens_the_circuit_with_a_clear_message() -> None:
    gone = RudeServer()
    gone._server.server_close()
    meter = Meter()
    generator = ServerGenerator("r", RUDE, _settings(gone.base_url, concurrency=8), meter)
    with pytest.raises(ServerError, match="did not answer: .*Start it .* Then run the same command again"):
        generator.generate(_requests(500), lambda position, reply: None)
    assert 5 <= meter.snapshot()["r"]["retries"] < 5 + 8, "those in flight, not five hundred requests eight times each"


def test_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    request = ChatRequest(PROMPT, {"question": "Q?"}, 8, sample=3, choices=("Yes", "No"))
    options = ModelOptions("rude", template_options={"enable_thinking": False}, extra={"user": "quit"})
    monkeypatch.setenv(ACCESS, KEY)
    with RudeServer() as server:
        _ask([request], server.base_url, options=options)
        _ask([request], server.base_url, options=options, flavour="openai", api_key_env=ACCESS)
    assert [each.authorization for each in server.requests] == ["", f"Bearer {KEY}"]
    vllm, openai = (each.payload for each in server.requests)
    assert vllm["messages"] == request.messages()
    assert (vllm["max_tokens"], vllm["temperature"], vllm["top_p"], vllm["seed"]) == (8, 0.0, 1, 3)
    assert vllm["chat_template_kwargs"] == {"enable_thinking": False} and vllm["user"] == "quit"
    # Explicit, as the server would apply the model's own generation_config.json otherwise.
    assert (vllm["top_k"], vllm["min_p"], vllm["repetition_penalty"]) == (0, 0, 1)
    assert vllm["structured_outputs"] == {"choice": ["Yes", "No"]}
    assert not {"top_k", "min_p", "repetition_penalty", "structured_outputs"} & set(openai)


def test_a_budget_of_requests_a_minute_is_kept(clock: SimpleNamespace) -> None:
    with RudeServer() as server:
        _ask(_requests(12), server.base_url, requests_per_minute=600)
    assert clock.pauses == pytest.approx([0.1, 0.1]), "ten a second after a burst of one second"


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="http://127"):
        _ask(_requests(1), "localhost:8000")


def test_shards_that_start_together_share_one_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    from quit.models.generation import server as module

    monkeypatch.setattr(module, "_LOOPS", [])
    seen, start = [], threading.Barrier(8)

    def ask() -> None:
        start.wait()
        seen.append(module._loop())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, seen))) == 1
    seen[0].call_soon_threadsafe(seen[0].stop)


def test_a_place_is_free_once_its_reply_is_on_disk() -> None:
    """A kill costs what is in flight: no new request goes out while an earlier reply still waits for its commit."""
    unsafe: list[Future[None]] = []
    waiting = []

    def done(position: int, completion: Completion) -> Future[None]:
        kept: Future[None] = Future()
        unsafe.append(kept)
        threading.Timer(0.05, lambda: (unsafe.remove(kept), kept.set_result(None))).start()
        return kept

    def reply(payload) -> str:
        waiting.append(len(unsafe))
        return _question(payload)

    with RudeServer([], reply=reply) as server:
        ServerGenerator("r", RUDE, _settings(server.base_url, concurrency=1)).generate(_requests(5), done)
    assert waiting == [0] * 5


def test_a_cache_that_cannot_be_written_stops_the_asking() -> None:
    def done(position: int, completion: Completion) -> Future[None]:
        kept: Future[None] = Future()
        kept.set_exception(WorkspaceError("the disk is full"))
        return kept

    with RudeServer([], reply=_question) as server:
        with pytest.raises(WorkspaceError, match="disk is full"):
            ServerGenerator("r", RUDE, _settings(server.base_url, concurrency=1)).generate(_requests(50), done)
        assert len(server.requests) == 1
