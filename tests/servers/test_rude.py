"""The rude server is as rude as its script says, and counts."""

import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from threading import Barrier

import httpx
import pytest

from tests.servers.rude import (
    CLOSES_AT_ONCE,
    CLOSES_MID_BODY,
    HALF_JSON,
    HANGS,
    NO_CHOICES,
    UNAUTHORISED,
    RudeServer,
    failure,
    says,
    too_many,
)

PAYLOAD = {"model": "m", "messages": [{"role": "user", "content": "Who?"}]}


def post(server: RudeServer, timeout: float = 60.0) -> httpx.Response:
    return httpx.post(f"{server.base_url}/chat/completions", json=PAYLOAD, timeout=timeout, trust_env=False)


def content(reply: httpx.Response) -> str:
    return reply.json()["choices"][0]["message"]["content"]


def test_faults_come_in_the_order_of_the_script() -> None:
    with RudeServer(
        [too_many(3), failure(503), None, says("<think>hm</think>Paris"), UNAUTHORISED, NO_CHOICES]
    ) as server:
        replies = [post(server) for _ in range(6)]
    assert [reply.status_code for reply in replies] == [429, 503, 200, 200, 401, 200]
    assert replies[0].headers["Retry-After"] == "3"
    assert (content(replies[2]), content(replies[3])) == ("NO ANSWER", "<think>hm</think>Paris")
    assert replies[5].json()["choices"] == []
    assert len(server.requests) == 6 and server.answered == [PAYLOAD, PAYLOAD]


def test_retry_after_as_a_date_lies_ahead() -> None:
    with RudeServer([too_many(60, as_date=True)]) as server:
        before = time.time()
        date = parsedate_to_datetime(post(server).headers["Retry-After"])
    assert before + 59 < date.timestamp() <= time.time() + 60  # whole seconds


@pytest.mark.parametrize("fault", [CLOSES_AT_ONCE, CLOSES_MID_BODY])
def test_closed_connections_are_protocol_errors(fault) -> None:
    with RudeServer([fault]) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            post(server)
        assert content(post(server)) == "NO ANSWER"
    assert len(server.answered) == 1


def test_half_json_is_no_json() -> None:
    with RudeServer([HALF_JSON]) as server, pytest.raises(ValueError):
        post(server).json()


def test_a_hanging_request_times_out_and_the_server_still_stops() -> None:
    with RudeServer([HANGS]) as server, pytest.raises(httpx.ReadTimeout):
        post(server, timeout=0.2)


def test_requests_in_flight_are_counted() -> None:
    together = Barrier(4)

    def reply(payload: object) -> str:
        if len(server.requests) <= 4:
            together.wait(120)  # nobody is answered before all four are there
        return "x"

    with RudeServer([], reply=reply) as server, ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: post(server), range(4)))
        assert server.most_at_once == 4
        post(server)
    assert server.requests[-1].at_once == 1
