"""The client of OpenAI-compatible servers against every fault of one (a real one cannot be made to show them)."""

import json
import logging
import multiprocessing
import socket
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from itertools import cycle, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest

from quit.errors import QuitError, ServerError, SettingsError, Stopped, WorkspaceError
from quit.models.generation import CachedGenerator, ChatRequest, Completion, GenerationCache, Meter, replica, server
from quit.models.generation.base import ModelOptions
from quit.models.generation.ledger import Account, Amount, Ledger
from quit.models.generation.server import ServerGenerator
from quit.models.generation.serving import Serving, check, endpoint, model_names
from quit.models.judges import GptEvalJudge
from quit.models.prompting import load_prompt
from quit.models.protocols import NO_ANSWER, JudgeItem, Prompt, Reply, Verdict
from quit.models.readers.llm import LLMReader
from quit.settings import ServerSettings
from tests.servers import batches, rude
from tests.servers.keys import ACCESS, KEY, assert_kept
from tests.servers.ports import free_port
from tests.servers.rude import FAULTS, RudeServer
from tests.servers.serving import serving

PROMPT = load_prompt("probe")
RUDE = ModelOptions("rude")
QUICK = {"patience_seconds": 0.0, "timeout_seconds": 5.0}
WITH_KEY = {"api_key_env": ACCESS, "attempts": 2, "timeout_seconds": 0.4}
FOR_GOOD = {"400", "401", "401 with the key where messages are cut", "404", "redirect", "thinking"}
"""Faults that no further attempt would change."""
OF_ALL = {"429", "429 with an unreadable Retry-After", "429 in a reply of 200", "the key as the answer"}
"""Faults that have nothing to do with the prompt; after others a server is asked whether it answers another one."""
TIME_OUT = {"hangs", "sends a byte at a time, without end"}
SHOWN = {
    *("400", "401", "401 with the key where messages are cut", "404", "500", "502"),
    *("429 with an unreadable Retry-After", "no HTTP", "header too long", "body that echoes the key", "no choices"),
    *("content that is not a text", "not finished"),
}
"""Faults whose message quotes a text in which the key was."""


PROMPT_FAULTS = [
    *(rude.failure(status, "Unterminated string.") for status in (400, 413, 422, 424, 451, 499, 500, 502, 504, 520)),
    rude.Fault(403, body=b"<html>Sorry, you have been blocked</html>"),
    *(rude.Fault(content="", finish_reason=word) for word in ("OTHER", "MALFORMED_FUNCTION_CALL", "error")),
    *(rude.Fault(body=body) for body in (b'{"choices": []}', b'{"choices": null}', b'{"error": {"code": 502}}')),
    rude.Fault(body=b'{"choices": [{"message": null}]}'),
    rude.Fault(reset=True),
]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ACCESS, KEY)


def _generator(
    *urls: str, options: ModelOptions = RUDE, meter: Meter | None = None, account: Account | None = None, **more
) -> ServerGenerator:
    urls = tuple(filter(None, urls))
    return ServerGenerator("r", options, ServerSettings(name="s", base_urls=urls, **QUICK | more), meter, account)


def _requests(count: int) -> list[ChatRequest]:
    return [ChatRequest(PROMPT, {"question": f"Q{n}?"}, 32, group=f"q{n}") for n in range(count)]


def _question(payload) -> str:
    return payload["messages"][-1]["content"].rpartition("Question: ")[2]


def _ask(
    requests: int | Sequence[ChatRequest], *urls: str, replies: dict[int, str] | None = None, **more
) -> dict[int, str]:
    """Return the texts by position; they are in ``replies`` after an error too."""
    replies = {} if replies is None else replies

    def done(position: int, completion: Completion) -> None:
        assert position not in replies, "handed in twice"
        replies[position] = completion.text

    _generator(*urls, **more).generate(_requests(requests) if isinstance(requests, int) else requests, done)
    return replies


def _keep(url: str, folder: Path, count: int = 1, **more) -> None:
    """Ask with a key, and keep the replies in a cache."""
    with GenerationCache(folder / "g.sqlite") as cache:
        CachedGenerator(_generator(url, **WITH_KEY | more), cache).complete(_requests(count))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_stays_is_one_clear_error_without_the_key(name: str, tmp_path: Path, caplog, capfd) -> None:
    caplog.set_level(logging.DEBUG)
    with RudeServer(lambda number, payload: FAULTS[name]) as server, pytest.raises(QuitError) as raised:
        _keep(server.base_url, tmp_path)
    message = str(raised.value)
    assert isinstance(raised.value, SettingsError if name in FOR_GOOD else ServerError), message
    attempts = 1 if name in FOR_GOOD else 2
    assert len(server.requests) == attempts + (name == "400" or name not in FOR_GOOD | OF_ALL | TIME_OUT)
    assert server.base_url in message and len(message) < 800
    assert message.isprintable()
    assert (f"({ACCESS})" in message) == (name in SHOWN), message
    assert_kept(tmp_path, message, repr(raised.value), caplog.text, *capfd.readouterr())


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in FOR_GOOD | TIME_OUT])
def test_a_fault_that_passes_costs_one_more_attempt_and_nothing_else(name: str) -> None:
    meter = Meter()
    with RudeServer([None, FAULTS[name]], reply=_question) as server:
        replies = _ask(4, server.base_url, concurrency=1, api_key_env=ACCESS, meter=meter)
    assert replies == {n: f"Q{n}?" for n in range(4)}
    assert len(server.requests) == 5 and meter.snapshot()["r"].retries == 1


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        *((rude.Fault(usage={"prompt_tokens": count}), "NO ANSWER") for count in
          (2**70, float("inf"), float("nan"), -1, "400", rude.KEY, True, {"a": 1}, [1])),
        (rude.Fault(usage={"prompt_tokens": 400.0}), "NO ANSWER"),
        (rude.Fault(usage={"prompt_tokens": 400, "prompt_tokens_details": [{"cached_tokens": "0"}]}), "NO ANSWER"),
        (rude.Fault(content="Lake \ud83d", usage={"prompt_tokens": 3}), "Lake \ufffd"),
        (rude.Fault(body=b'{"choices": [{"message": {"content": "Br\xe9da"}}], "usage": [7]}'), "Br\ufffdda"),
    ],
)  # fmt: skip
def test_an_answer_is_taken_whatever_its_counts_and_characters(reply, text: str) -> None:
    meter = Meter()
    with RudeServer(lambda *_: reply) as server:
        assert _ask(1, server.base_url, api_key_env=ACCESS, meter=meter) == {0: text}
    assert len(server.requests) == 1 and meter.snapshot()["r"].retries == 0


def test_a_slow_server_is_waited_for_and_a_hanging_one_asked_again() -> None:
    with RudeServer([rude.slow(0.2), rude.HANGS], reply=_question) as server:
        assert _ask(3, server.base_url, concurrency=1, timeout_seconds=1) == {n: f"Q{n}?" for n in range(3)}
        assert len(server.requests) == 4


def test_an_empty_reply_counts_after_one_more_attempt() -> None:
    for script, reply in (([rude.CONTENT_NULL], "NO ANSWER"), ([rude.CONTENT_NULL, rude.Fault(content="")], "")):
        with RudeServer(script) as server:
            assert _ask(1, server.base_url) == {0: reply} and len(server.requests) == 2


def test_the_tokens_of_an_empty_reply_that_is_asked_for_again_count() -> None:
    """Whoever asks counts those of the reply that it gets."""
    meter, usage = Meter(), {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}
    with RudeServer([rude.Fault(content="", usage=usage)]) as server:
        _ask(1, server.base_url, meter=meter)
    count = meter.snapshot()["r"]
    assert (count.retries, count.prompt_tokens, count.completion_tokens) == (1, 40, 9)


_REFUSAL = b'{"choices": [{"finish_reason": "stop", "message": {"content": null, "refusal": "I cannot help."}}]}'
_POLICY = "Invalid prompt: your prompt was flagged as potentially violating our usage policy."
_REFUSED_PROMPTS = [
    rude.Fault(400, body=json.dumps({"error": error}).encode())
    for error in (
        batches.REFUSED_PROMPT,
        {
            "message": _POLICY,
            "type": "invalid_request_error",
            "param": None,
            "code": "invalid_prompt",
        },
    )
]


@pytest.mark.parametrize(
    ("fault", "ended"),
    [
        (rude.Fault(content="It w", finish_reason="content_filter"), "content_filter"),
        (rude.Fault(content="It w", finish_reason="SAFETY"), "content_filter: SAFETY"),
        (rude.Fault(body=_REFUSAL), "content_filter"),
        (_REFUSED_PROMPTS[0], "content_filter: HTTP 400 content_filter"),
        (_REFUSED_PROMPTS[1], f"content_filter: HTTP 400 {_POLICY}"[:96] + "..."),
    ],
)
def test_a_withheld_reply_is_no_answer_or_unread_and_is_paid_once(fault, ended: str, tmp_path: Path, notes) -> None:
    with RudeServer(lambda number, payload: fault) as server, GenerationCache(tmp_path / "g.sqlite") as cache:
        model = CachedGenerator(_generator(server.base_url), cache)
        reader = LLMReader("r", model, load_prompt("reader"), PROMPT)
        judge = GptEvalJudge("j", model, load_prompt("judge"), attempts=2)
        for _ in range(2):
            assert reader.answer([Prompt("q", "Where?", ())]) == [Reply("", NO_ANSWER, ended)]
            assert judge.verdicts([JudgeItem("q", "Where?", ("Chad",), "Mali")]) == [Verdict(None, None, "")]
        assert sum(row["replies"] for row in cache.statistics()) == 3
    assert len(server.requests) == 3
    assert len(notes) == (fault in _REFUSED_PROMPTS) == ("policy" in "".join(notes))
    assert all(f"{server.base_url} refuses a prompt of q (" in text for text in notes)


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_refused_prompts_cost_their_own_replies_up_to_a_share_of_a_stage(share: float, tmp_path: Path, notes) -> None:
    def script(number: int, payload) -> rude.Fault | None:
        long = int(_question(payload)[1:-1]) % 10 == 0
        return rude.failure(400, "the request exceeds the available context size") if long else None

    with RudeServer(script, reply=_question) as server, GenerationCache(tmp_path / "g.sqlite") as cache:
        for _ in range(2):  # the second time, all are kept
            model = CachedGenerator(_generator(server.base_url, concurrency=1), cache)
            model.max_refused = share
            if share > 0.1:
                replies = model.complete(_requests(100))
                refused = [reply.finish_reason for reply in replies if reply.is_refused]
                assert refused == ["content_filter: HTTP 400 the request exceeds the available context size"] * 10
                continue
            with pytest.raises(
                SettingsError, match=r"6 of 100 prompts from probe are refused, .*max_refused = 0.02 \(6.0%"
            ):
                model.complete(_requests(100))
    assert len(server.requests) == (100 if share > 0.1 else 51)
    [told] = notes
    assert "refuses a prompt of q0 (" in told and "serve a longer context" in told


def test_a_word_that_is_not_known_is_named_at_once_and_a_setting_says_what_it_means() -> None:
    fault = rude.Fault(content="Paris", finish_reason="COOKED")
    with RudeServer(lambda number, payload: fault) as server:
        with pytest.raises(
            SettingsError, match='with the word .COOKED., which is not known.*words = . "COOKED" = "stop"'
        ):
            _ask(3, server.base_url, concurrency=1)
        assert len(server.requests) == 1
        assert _ask(1, server.base_url, words={"COOKED": "stop"}) == {0: "Paris"}


@pytest.mark.parametrize("status", [200, 503])
def test_a_server_that_loads_its_model_is_waited_for_like_one_that_is_absent(status: int, clock, notes) -> None:
    body = rude.failure(503, "Loading model").body
    with RudeServer([rude.Fault(status, body=body)] * 4, reply=_question) as server:
        assert _ask(1, server.base_url, attempts=1, patience_seconds=9) == {0: "Q0?"}
    assert len(server.requests) == 5
    assert "it still loads its model" in notes[0] and "waiting for it up to 9 s" in notes[0]


def test_a_server_that_streams_is_named_at_once() -> None:
    body = b'data: {"choices": [{"delta": {"content": "Paris"}}]}\n\ndata: [DONE]\n\n'
    fault = rude.Fault(body=body, headers={"Content-Type": "text/event-stream"})
    with RudeServer([fault] * 9) as server, pytest.raises(SettingsError, match="streams its replies"):
        _ask(1, server.base_url)
    assert len(server.requests) == 1


def test_a_long_pause_is_told_with_its_seconds(clock: SimpleNamespace, notes: list[str]) -> None:
    with RudeServer([rude.too_many(0.01), rude.too_many(240)]) as server:
        _ask(1, server.base_url)
    assert [text.rpartition("(")[2] for text in notes] == [
        "attempt 1 of 8), the next in 0 s",
        "attempt 2 of 8), the next in 240 s",
    ]


def test_prompts_that_are_cut_without_a_word_are_told_once(notes: list[str]) -> None:
    requests = [ChatRequest(PROMPT, {"question": "Where? " * 9 * n}, 32) for n in range(1, 12)]
    for usage in ({}, {"prompt_tokens": 64}):
        with RudeServer(lambda number, payload, usage=usage: rude.Fault(content="Paris", usage=usage)) as server:
            _ask(requests, server.base_url, concurrency=1)
        assert len(notes) == len(usage)
    assert "counts 64 tokens for each of 8 prompts of" in notes[0]


def test_an_address_may_have_a_query_or_end_in_the_path_and_lack_no_version() -> None:
    with RudeServer(reply=_question) as server:
        for address in (f"{server.base_url}/chat/completions", f"{server.base_url}/"):
            assert _ask(1, address) == {0: "Q0?"}
        with pytest.raises(SettingsError, match=f"Is its address {server.base_url}"):
            _ask(1, server.base_url.removesuffix("/v1"))
    assert endpoint("http://h/openai/deployments/m?api-version=1", "/models") == (
        "http://h/openai/deployments/m/models?api-version=1"
    )


@pytest.mark.parametrize("fault", [rude.ENDLESS, rude.GZIP_BOMB], ids=["endless", "bomb"])
def test_a_reply_takes_no_more_memory_than_its_bound(fault: rude.Fault) -> None:
    with RudeServer(lambda number, payload: fault) as server:
        tracemalloc.start()
        try:
            with pytest.raises(ServerError, match="more than 4 MiB"):
                _ask(1, server.base_url, attempts=1, timeout_seconds=20)
            assert tracemalloc.get_traced_memory()[1] < rude.BOMB_BYTES / 4
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("thinking_tokens", [0, 8])
def test_of_a_server_that_ignores_max_tokens_the_beginning_is_kept_as_a_cut_reply(thinking_tokens: int) -> None:
    text = "Maseru is it. " * 200_000  # 2.8 MB, which the server says it has finished
    options = replace(RUDE, thinking_tokens=thinking_tokens)
    with RudeServer(lambda number, payload: rude.Fault(content=text)) as server:
        replies: list[Completion] = []
        _generator(server.base_url, options=options).generate(_requests(1), lambda at, reply: replies.append(reply))
    tokens = 32 + thinking_tokens
    assert [(reply.text, reply.finish_reason) for reply in replies] == [(text[: 128 * tokens], "length")]


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirect_is_not_followed_and_its_host_is_named(status: int) -> None:
    with RudeServer() as other:
        elsewhere = other.base_url.removeprefix("http://")
        away = rude.redirect(f"http://user:{rude.KEY}@{elsewhere}/chat/completions?key={rude.KEY}", status)
        with RudeServer([away]) as server, pytest.raises(SettingsError, match="base_urls") as raised:
            _ask(1, server.base_url, api_key_env=ACCESS)
        assert elsewhere.partition("/")[0] in str(raised.value)
        assert "user" not in str(raised.value) and other.requests == []


@pytest.mark.parametrize(
    ("refusals", "message", "requests"),
    [(cycle([False, True]), "failed 2 times", 2), (repeat(True), "did not answer", 0)],
    ids=["a prompt kills it, again and again", "it is only ever about to come back"],
)
def test_a_server_that_comes_and_goes_is_not_asked_for_ever(refusals, message, requests, monkeypatch) -> None:
    ask = replica.Replica._ask

    async def refusing(self, session, body):
        if next(refusals):
            raise replica.PassingFault("no connection: refused", absent=True)
        return await ask(self, session, body)

    monkeypatch.setattr(replica.Replica, "_ask", refusing)
    monkeypatch.setattr(replica, "CIRCUIT_FAILURES", 1)
    with RudeServer(lambda number, payload: rude.CLOSES_AT_ONCE) as server, pytest.raises(ServerError, match=message):
        _ask(1, server.base_url, attempts=2, patience_seconds=0.2)
    assert len(server.requests) == requests


def test_retry_after_and_a_budget_of_requests_a_minute_are_kept(clock: SimpleNamespace) -> None:
    with RudeServer([rude.too_many(60)]) as server:
        _ask(1, server.base_url)
        assert len(server.requests) == 2 and clock.pauses == [60]
        clock.pauses.clear()
        _ask(12, server.base_url, requests_per_minute=600)
    assert clock.pauses == pytest.approx([0.1, 0.1]), "ten a second after a burst of one second"


def test_requests_arrive_in_order_and_no_more_at_once_than_allowed() -> None:
    with RudeServer(lambda number, payload: rude.slow(0.01), reply=_question) as server:
        _ask(40, server.base_url, concurrency=4)
        assert server.most_at_once == 4
        order = [int(_question(request.payload)[1:-1]) for request in server.requests]
        assert all(abs(position - number) < 4 for position, number in enumerate(order))


def test_an_overloaded_server_gets_fewer_at_once() -> None:
    def overload(number: int, payload):
        # A server that takes four at once and refuses the rest.
        return replace(rude.too_many(), delay=0.02) if server.requests[number].at_once > 4 else rude.slow(0.02)

    with RudeServer(overload, reply=_question) as server:
        generator = _generator(server.base_url, concurrency=32, attempts=200)
        replies = CachedGenerator(generator, None).complete(_requests(80))
    assert [reply.text for reply in replies] == [f"Q{n}?" for n in range(80)]
    assert generator._replicas[0]._limiter.limit < 32, "halved, and not grown back to all by so few"


@pytest.mark.parametrize(
    ("url", "key", "message"),
    [("http://127.0.0.1:9/v1", "NO_KEY_OF_MINE", "NO_KEY_OF_MINE"), ("localhost:8000", ACCESS, "http://127")],
)
def test_a_missing_key_and_an_address_that_is_none_are_named(url: str, key: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        _ask(1, url, api_key_env=key)


@pytest.mark.parametrize("address", [f"http://me:{KEY}@{{}}", f"http://{{}}?api-version=1&key={KEY}"])
def test_a_key_in_an_address_is_sent_and_neither_kept_nor_shown(address: str, tmp_path, monkeypatch, notes) -> None:
    """Profiles are published with a dataset: such an address comes from a variable alone."""
    with RudeServer([rude.failure(500)]) as server:
        url = address.format(server.base_url.removeprefix("http://"))
        with pytest.raises(SettingsError, match="base_url_env"):
            _ask(1, url)
        monkeypatch.setenv("WHERE", url)
        more = {"base_url_env": "WHERE", "api_key_env": None}
        _keep("", tmp_path, **more)
        assert "Basic" in server.requests[0].authorization or "key=" in url
        settings = ServerSettings(name="s", **more)
        well, words, _ = check(Serving(("r",), "rude", settings, ()))
        assert well and server.base_url in words
    assert_kept(tmp_path, words, *notes)


def test_what_is_in_flight_when_a_fault_is_told_still_comes_in() -> None:
    replies: dict[int, str] = {}

    def script(number: int, payload):
        return rude.WRONG_MODEL if _question(payload) == "Q0?" else rude.slow(0.3)

    with RudeServer(script, reply=_question) as server:
        with pytest.raises(QuitError):
            _ask(100, server.base_url, concurrency=4, replies=replies)
        assert len(replies) == len(server.answered) >= 3, "paid for, so kept"


@pytest.mark.parametrize("error", [Stopped, SettingsError])
def test_what_is_in_flight_at_another_server_comes_in_before_a_fault_is_told(error: type[QuitError]) -> None:
    """One server is interrupted, or refuses a request, while the other is at work on its first two."""
    ledger, replies, at_work = Ledger(), dict[int, str](), threading.Semaphore(0)

    def slow(number: int, payload) -> rude.Fault:
        at_work.release()
        return rude.slow(0.3)

    def fault(number: int, payload) -> rude.Fault | None:
        if number == 0:
            assert at_work.acquire(timeout=5) and at_work.acquire(timeout=5)
            if error is SettingsError:
                return rude.WRONG_MODEL
            ledger.stop()
        return None

    with RudeServer(slow, reply=_question) as one, RudeServer(fault, reply=_question) as other:
        with pytest.raises(error):
            _ask(40, one.base_url, other.base_url, concurrency=2, replies=replies, account=Account(ledger))
        assert len(one.requests) == 2, "no further one begins"
        assert {_question(request.payload) for request in one.requests} <= {*replies.values()}, "paid for, so kept"


def test_questions_stay_on_their_replica() -> None:
    names = [(group, n) for group in range(20) for n in range(5)]
    requests = [ChatRequest(PROMPT, {"question": f"{group} {n}"}, 32, group=f"q{group}") for group, n in names]
    with RudeServer(reply=_question) as one, RudeServer(reply=_question) as other:
        assert len(_ask(requests, one.base_url, other.base_url, concurrency=3)) == 100
        groups = [{_question(request.payload).split()[0] for request in each.requests} for each in (one, other)]
    assert not groups[0] & groups[1]
    assert min(len(each) for each in groups) >= 3, "both work"


@pytest.mark.parametrize("others", ["none", "well", "gone", "bad"])
def test_a_replica_that_fails_leaves_its_questions_to_the_others(others: str, notes: list[str]) -> None:
    def broken(*_: object) -> rude.Fault:
        return rude.failure(500, "broken")

    with RudeServer(broken) as bad, RudeServer(broken if others == "bad" else (), reply=_question) as other:
        if others == "gone":
            other._server.server_close()
        urls = [bad.base_url, *([other.base_url] if others != "none" else [])]
        if others == "well":
            replies = _ask(30, *urls, concurrency=3, attempts=2)
            assert replies == {n: f"Q{n}?" for n in range(30)} and len(other.answered) == 30
        else:
            message = "did not answer" if others == "gone" else "failed 2 times.*broken"
            with pytest.raises(ServerError, match=message):
                _ask(30, *urls, concurrency=3, attempts=2)
    assert len(bad.requests) <= 3 * 3, "left out for the rest of the call"
    moved = [line for line in notes if "left out for now (HTTP 500: broken)" in line and bad.base_url in line]
    if others != "bad":  # of two, either may be the first
        assert len(moved) == (others != "none")


@pytest.mark.parametrize("fault", PROMPT_FAULTS, ids=lambda fault: str(fault.status) + fault.finish_reason)
def test_one_prompt_that_a_server_cannot_answer_costs_its_own_reply_alone(fault: rude.Fault, notes) -> None:
    def script(number: int, payload: object) -> rude.Fault | None:
        return fault if _question(payload) == "Q3?" else None

    with RudeServer(script, _question) as server:
        replies = CachedGenerator(_generator(server.base_url, concurrency=1, attempts=1), None).complete(_requests(8))
    assert [n for n, reply in enumerate(replies) if reply.is_refused] == [3]
    assert sum("refuses a prompt of q3" in line and "Other prompts it answers" in line for line in notes) == 1


@pytest.mark.parametrize("fails", ["for ever", "twice", "as all do", "as all do after a while"])
def test_a_prompt_at_which_a_server_always_fails_is_told_from_an_outage(fails: str, tmp_path: Path, notes) -> None:
    """Each fails with HTTP 500; only while other prompts are answered does it count as NO ANSWER, and is not kept."""
    asked: Counter[str] = Counter()

    def fault(number: int, payload: object) -> rude.Fault | None:
        question = _question(payload)
        asked[question] += 1
        is_out = (fails == "as all do" and number > 2) or (fails.endswith("while") and asked["Q3?"] > 2)
        is_bad = question == "Q3?" and (fails != "twice" or asked[question] < 3)
        return rude.failure(500, "broken") if is_out or is_bad else None

    with RudeServer(fault, _question) as server, GenerationCache(tmp_path / "g.sqlite") as cache:
        model = CachedGenerator(_generator(server.base_url, concurrency=1, attempts=2), cache)
        if fails.startswith("as all do"):
            with pytest.raises(ServerError, match=r"failed \d times on one request \(of q\d\)"):
                model.complete(_requests(8))
        else:
            replies = model.complete(_requests(8))
            failed = ["Q3?"] if fails == "for ever" else []
            assert [f"Q{n}?" for n, reply in enumerate(replies) if reply.is_refused] == failed
            assert sum("refuses a prompt of q3" in line and "broken" in line for line in notes) == len(failed)
            before = Counter(asked)
            model.complete(_requests(8))
            assert {name for name in asked if asked[name] > before[name]} - {"Hello"} == {*failed}


def test_a_replica_that_is_back_gets_its_questions_again(notes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "CIRCUIT_FAILURES", 2)
    port = free_port()
    with ExitStack() as later:
        started: list[RudeServer] = []

        def starting(number: int, _: object) -> rude.Fault:
            if number == 60:
                started.append(later.enter_context(RudeServer(lambda *_: rude.slow(0.05), _question, port)))
            return rude.slow(0.05)

        with RudeServer(starting, _question) as other:
            gone = f"http://127.0.0.1:{port}/v1"
            assert len(_ask(300, other.base_url, gone, concurrency=2)) == 300
        [back] = started
        assert len(back.answered) > 40 and len(back.answered) + len(other.answered) == 300
    said = [line.removeprefix(f"r: {gone} ") for line in notes if line.startswith(f"r: {gone} is ")]
    assert said == ["is gone. Its requests go to the other servers until it is back.", "is back."]


def test_a_connection_that_nothing_refuses_is_not_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is off, or a firewall, drops what is sent: that is no reply that did not come."""
    monkeypatch.setattr(replica, "CONNECT_SECONDS", 0.2)
    monkeypatch.setattr(server, "CONNECT_SECONDS", 0.2)
    ledger = Ledger(tokens=10**6)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        for _ in range(3):  # the queue of connections is full: the next one gets no answer
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        with pytest.raises(ServerError, match="no connection within 0.2 s"):
            _ask(1, f"http://127.0.0.1:{full.getsockname()[1]}/v1", attempts=1, account=Account(ledger))
    assert ledger.spent == ledger.assumed == Amount()


def test_patience_is_by_the_clock() -> None:
    """The list of models comes while the model is loaded: each look is followed by five more requests."""
    with RudeServer(lambda *_: rude.failure(503, "Loading model"), reply=_question) as loading:
        start = time.monotonic()
        with pytest.raises(ServerError, match=r"Waited \d+ s"):
            _ask(1, loading.base_url, patience_seconds=2)
        assert time.monotonic() - start < 25


def test_after_a_refusal_for_good_nothing_is_sent_again() -> None:
    """One of four requests is refused while the others wait for their next attempt."""

    def reply(number: int, payload: object) -> rude.Fault:
        return replace(rude.WRONG_MODEL, delay=0.3) if _question(payload) == "Q0?" else rude.failure(500)

    start = time.monotonic()
    with RudeServer(reply) as server, pytest.raises(SettingsError):
        _ask(4, server.base_url, attempts=10_000, timeout_seconds=20)
    assert time.monotonic() - start < 10, "those between two attempts are not waited for"


def test_a_forked_process_asks_too() -> None:
    with RudeServer(reply=_question) as server:
        assert _ask(1, server.base_url) == {0: "Q0?"}
        child = multiprocessing.get_context("fork").Process(target=_ask, args=(1, server.base_url))
        child.start()
        child.join(20)
        assert child.exitcode == 0 and len(server.requests) == 2


@pytest.mark.parametrize(("key", "is_sent"), [(f" {KEY}\r\n", True), (f"{KEY[:9]}\n{KEY[9:]}", False)])
def test_a_key_from_a_file_of_another_system_is_trimmed_or_named(key: str, is_sent: bool, monkeypatch) -> None:
    monkeypatch.setenv(ACCESS, key)
    with RudeServer() as server, nullcontext() if is_sent else pytest.raises(SettingsError, match=f"{ACCESS} has"):
        _ask(1, server.base_url, api_key_env=ACCESS)
    assert [request.authorization for request in server.requests] == [f"Bearer {KEY}"] * is_sent


def test_a_proxy_of_the_environment_stands_before_other_machines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy gets the whole address, and answers for the server."""
    reply = {"choices": [{"message": {"content": "Chad"}}], "data": [{"id": "rude"}]}
    asked: list[str] = []

    def answer(method: str, path: str, *_: object) -> tuple[int, bytes, dict[str, str]]:
        asked.append(path)
        return 200, json.dumps(reply).encode(), {}

    with serving(answer) as proxy, RudeServer(reply=_question) as server:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "")
        assert _ask(1, server.base_url) == {0: "Q0?"} and not asked
        assert model_names(server.base_url, None) == {"rude": 0} and not asked
        assert _ask(1, "http://api.example.test/v1") == {0: "Chad"}
        assert model_names("http://api.example.test/v1", None) == {"rude": 0}
        assert "http://api.example.test/v1/chat/completions" in asked
        monkeypatch.setenv("no_proxy", "api.example.test")
        with pytest.raises(ServerError, match="did not answer"):
            _ask(1, "http://api.example.test/v1")


def test_models_of_one_server_share_its_limits() -> None:
    with RudeServer(lambda *_: rude.slow(0.02), reply=_question) as both:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: _ask(20, both.base_url, concurrency=3), range(2)))
        assert both.most_at_once == 3


def test_a_server_that_is_gone_opens_the_circuit_with_a_clear_message() -> None:
    gone, meter = RudeServer(), Meter()
    gone._server.server_close()
    with pytest.raises(ServerError, match="did not answer: .*Start it .* Then run the same command again"):
        _ask(500, gone.base_url, concurrency=8, meter=meter)
    assert 5 <= meter.snapshot()["r"].retries < 5 + 8, "those in flight, not five hundred requests eight times each"


def test_an_interrupt_ends_the_wait_for_a_server_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    gone, ledger, is_back = RudeServer(), Ledger(), replica.Replica.is_back
    gone._server.server_close()
    monkeypatch.setattr(replica.Replica, "is_back", lambda *args: (ledger.stop(), is_back(*args))[1])
    start = time.monotonic()
    with pytest.raises(Stopped):
        _ask(1, gone.base_url, account=Account(ledger), patience_seconds=60)
    assert time.monotonic() - start < 30


def test_the_first_failed_attempt_and_another_model_are_told_once(notes: list[str]) -> None:
    with RudeServer(lambda number, _: rude.failure(503) if number < 40 else None) as server:
        _ask(10, server.base_url, attempts=50)
        server.script = [None] * len(server.requests) + [rude.Fault(model="alias")] * 3
        _ask(8, server.base_url, concurrency=1)
    [failed, model] = notes
    assert failed.startswith(f"r: {server.base_url}: HTTP 503") and "(attempt 1 of 50)" in failed
    assert "'rude'" in model and "'alias'" in model and server.base_url in model


@pytest.mark.parametrize(
    ("models", "says"),
    [
        (rude.MODELS.body, ""),
        (b'{"data": [{"id": "rude", "created": 7, "permission": [{"id": "x"}], "root": "org/rude", "owned_by": "me"}]}',
         " owned_by=me root=org/rude"),
        (b"<html>", ""),
        (b'{"data": 7}', ""),
    ],
)  # fmt: skip
def test_a_reply_knows_its_server_and_what_that_says_of_the_model(models: bytes, says: str) -> None:
    origins: list[str] = []
    with RudeServer() as server:
        server.models = rude.Fault(body=models)
        generator = _generator(server.base_url)
        for _ in range(2):
            generator.generate(_requests(3), lambda position, reply: origins.append(reply.origin))
    assert origins == [f"{server.base_url}{says}"] * 6 and server.looks == 1


def test_what_is_sent() -> None:
    request = ChatRequest(PROMPT, {"question": "Q?"}, 8, sample=3, choices=("Yes", "No"))
    options = ModelOptions("rude", template_options={"enable_thinking": False}, extra={"user": "quit"})
    sampling = {"frequency_penalty": 0.8, "presence_penalty": 0.6, "stop": ("Answer:",)}
    with RudeServer() as server:
        _ask([request, replace(request, **sampling)], server.base_url, options=options, concurrency=1)
        _ask([request], server.base_url, options=options, flavour="openai", api_key_env=ACCESS)
    assert [each.authorization for each in server.requests] == ["", "", f"Bearer {KEY}"]
    vllm, more, openai = (each.payload for each in server.requests)
    assert vllm["messages"] == request.messages()
    assert (vllm["max_tokens"], vllm["temperature"], vllm["top_p"], vllm["seed"]) == (8, 0.0, 1, 3)
    assert vllm["chat_template_kwargs"] == {"enable_thinking": False} and vllm["user"] == "quit"
    # Explicit, as the server would apply the model's own generation_config.json otherwise.
    assert (vllm["top_k"], vllm["min_p"], vllm["repetition_penalty"]) == (0, 0, 1)
    assert vllm["structured_outputs"] == {"choice": ["Yes", "No"]}
    assert not {"top_k", "min_p", "repetition_penalty", "structured_outputs"} & set(openai)
    assert more == vllm | sampling | {"stop": ["Answer:"]} and not sampling.keys() & vllm.keys()


def test_a_place_is_free_once_its_reply_is_on_disk() -> None:
    """A kill costs what is in flight: no new request goes out while an earlier reply still waits for its commit."""
    unsafe: list[Future[None]] = []
    waiting = []

    def done(position: int, completion: Completion) -> Future[None]:
        commit: Future[None] = Future()
        unsafe.append(commit)
        threading.Timer(0.05, lambda: (unsafe.remove(commit), commit.set_result(None))).start()
        return commit

    def reply(payload) -> str:
        waiting.append(len(unsafe))
        return _question(payload)

    with RudeServer([], reply=reply) as server:
        _generator(server.base_url, concurrency=1).generate(_requests(5), done)
    assert waiting == [0] * 5


def test_a_cache_that_cannot_be_written_stops_the_asking() -> None:
    commit: Future[None] = Future()
    commit.set_exception(WorkspaceError("the disk is full"))
    with RudeServer([], reply=_question) as server:
        with pytest.raises(WorkspaceError, match="disk is full"):
            _generator(server.base_url, concurrency=1).generate(_requests(50), lambda *_: commit)
        assert len(server.requests) == 1
