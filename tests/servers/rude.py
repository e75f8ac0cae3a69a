"""A badly behaved OpenAI-compatible server in this process, for faults that a real one cannot be made to show."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.servers.serving import ManyAtOnce

KEY = "<key>"
"""In a fault's headers, body, content or usage: the API key that came with the request, which is sent back."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What the server does with one request; the module functions below make the usual ones.

    ``delay``: seconds before the answer. ``body``: bytes sent as they are, None for a completion of ``content``, with
    ``thoughts`` beside it.
    ``usage``, ``model``: token counts and model of that. ``cut``: bytes of the body sent before the connection is
    closed, None for all. ``hang``: never answers. ``reset``: the connection is reset. ``endless``: the body is repeated
    until the client goes, ``pause`` seconds apart. ``raw``: sent instead of an HTTP answer.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content: Any = None
    thoughts: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str = "stop"
    model: str = ""
    delay: float = 0.0
    cut: int | None = None
    hang: bool = False
    reset: bool = False
    endless: bool = False
    pause: float = 0.0
    raw: bytes | None = None


@dataclass(slots=True)
class Request:
    """A request as it arrived. ``at_once``: requests in flight, itself included."""

    payload: Any
    authorization: str
    at_once: int
    answered: bool = False
    """Whether a whole completion was sent."""


def _error(message: str, code: int) -> bytes:
    return json.dumps({"error": {"message": message, "type": "error", "code": code}}).encode()


def too_many(retry_after: float | None = None) -> Fault:
    """429; Retry-After in seconds, or absent."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return Fault(429, headers, _error("rate limit exceeded", 429))


def failure(status: int, message: str = "something broke") -> Fault:
    """An error reply: 500, 502, 503, or 401 and 404, which no retry mends."""
    return Fault(status, body=_error(message, status))


def slow(seconds: float) -> Fault:
    """A proper answer after a while."""
    return Fault(delay=seconds)


HANGS = Fault(hang=True)
CLOSES_AT_ONCE = Fault(cut=0, status=0)
ENDLESS = Fault(body=b'{"id": "' + b"1" * 65536, endless=True)
BOMB_BYTES = 64 << 20
GZIP_BOMB = Fault(headers={"Content-Encoding": "gzip"}, body=gzip.compress(bytes(BOMB_BYTES), 1))
NO_HTTP = Fault(raw=f"{KEY} {KEY}\r\n\r\n".encode())
NOT_JSON = Fault(body=b"<html>Bad gateway</html>", headers={"Content-Type": "text/html"})
HALF_JSON = Fault(body=b'{"id": "1", "choices": [{"message": {"content": "Par')
NESTED = Fault(body=b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
CONTENT_NULL = Fault(body=b'{"choices": [{"finish_reason": "stop", "message": {"content": null}}]}')
WRONG_MODEL = failure(404, "The model `other` does not exist.")
MODELS = Fault(body=b'{"object": "list", "data": [{"id": "rude", "object": "model"}]}')
"""The proper answer to GET /v1/models."""


def redirect(location: str, status: int = 307) -> Fault:
    """A reply that sends the client elsewhere."""
    return Fault(status, {"Location": location}, b"")


FAULTS: dict[str, Fault] = {
    "400": failure(400, f"Unknown field. ({KEY})"),
    "401": failure(401, f"Incorrect API key provided: {KEY}."),
    "401 with the key where messages are cut": failure(401, ("This key is not one of ours. " * 10)[:280] + KEY),
    "404": failure(404, f"The model `other` does not exist for {KEY}."),
    "429": too_many(),
    "429 with an unreadable Retry-After": Fault(429, {"Retry-After": KEY}, _error(f"too many from {KEY}", 429)),
    "429 in a reply of 200": Fault(body=_error("rate limit exceeded", 429)),
    "500": failure(500, f"no handler for {KEY}"),
    "502": Fault(502, {"Content-Type": "text/html"}, f"<html>Bad gateway {KEY}</html>".encode()),
    "redirect": redirect(f"http://user:{KEY}@other.example/{KEY}?key={KEY}"),
    "closes at once": CLOSES_AT_ONCE,
    "closes in the middle of a body": Fault(cut=40),
    "resets the connection": Fault(reset=True),
    "hangs": HANGS,
    "sends a byte at a time, without end": Fault(body=b" ", endless=True, pause=0.02),
    "endless body": ENDLESS,
    "gzip bomb": GZIP_BOMB,
    "no gzip where it says so": Fault(headers={"Content-Encoding": "gzip"}, body=KEY.encode()),
    "no HTTP": NO_HTTP,
    # A client that quotes 100 bytes of it cuts the key.
    "header too long": Fault(headers={"X-Long": KEY + "x" * 50 + KEY * 300}),
    "body that echoes the key": Fault(body=f"You sent me {KEY}.".encode()),
    "half a JSON document": HALF_JSON,
    "no choices": Fault(body=f'{{"id": "{KEY}", "object": "chat.completion", "choices": []}}'.encode()),
    "content that is not a text": Fault(content={"key": KEY}),
    "not finished": Fault(content="part of it", finish_reason=f"abort: {KEY}"),
    "thinking": Fault(content=f"<think>{KEY}</think>Paris"),
    "the key as the answer": Fault(content=f"It is {KEY}."),
    "nested 100,000 deep": NESTED,
}
"""Faults by name; each fails a request at once or at its last attempt, and most send the API key back."""

Script = Iterable[Fault | None] | Callable[[int, Any], Fault | None]


class RudeServer:
    """Serves /v1/chat/completions and /v1/models, on a free port unless one is named, as a context manager.

    ``script``: faults for the first requests in the order they arrive, None for a proper answer, or a function of
    (request number from 0, payload). ``reply``: the proper answer's text from the payload. ``script`` may be replaced
    while the server runs; ``requests`` is everything that arrived.
    """

    def __init__(
        self, script: Script = (), reply: Callable[[Any], str] = lambda payload: "NO ANSWER", port: int = 0
    ) -> None:
        self.requests: list[Request] = []
        self.script: Script = script if callable(script) else list(script)
        self.reply = reply
        self.models = MODELS
        """The answer to GET /v1/models."""
        self.looks = 0
        """How often that was asked for."""
        self._lock = threading.Lock()
        self._in_flight = 0
        self._stop = threading.Event()
        self._server = ManyAtOnce(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> RudeServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def most_at_once(self) -> int:
        """The most requests that were ever in flight together."""
        return max((request.at_once for request in self.requests), default=0)

    @property
    def answered(self) -> list[Any]:
        """The payloads of the requests that got a whole completion."""
        return [request.payload for request in self.requests if request.answered]

    def _arrive(self, payload: Any, authorization: str) -> tuple[Request, Fault]:
        with self._lock:
            number = len(self.requests)
            self._in_flight += 1
            request = Request(payload, authorization, self._in_flight)
            self.requests.append(request)
            if callable(self.script):
                fault = self.script(number, payload)
            else:
                fault = self.script[number] if number < len(self.script) else None
        return request, fault or Fault()

    def _completion(self, payload: Any, fault: Fault) -> bytes:
        content: Any = fault.content if fault.content is not None else self.reply(payload)
        message = {"role": "assistant", "content": content} | ({"reasoning": fault.thoughts} if fault.thoughts else {})
        choice = {"index": 0, "finish_reason": fault.finish_reason, "message": message}
        prompt, completion = len(json.dumps(payload.get("messages", "")).split()), len(str(content).split())
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        usage |= fault.usage
        whole = {"id": "rude", "object": "chat.completion", "created": 0, "model": fault.model or payload.get("model")}
        return json.dumps({**whole, "choices": [choice], "usage": usage}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # headers and body are two writes: the second would wait 40 ms for an answer

            def do_GET(self) -> None:
                outer.looks += self.path.partition("?")[0] == "/v1/models"
                models = outer.models if self.path.partition("?")[0] == "/v1/models" else Fault(404, body=b"{}")
                self._answer(models, models.body or b"")

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path.partition("?")[0] != "/v1/chat/completions":
                    self._answer(failure(404), _error(f"no such path: {self.path}", 404))
                    return
                payload = json.loads(raw)
                request, fault = outer._arrive(payload, self.headers.get("Authorization", ""))
                outer._stop.wait(None if fault.hang else fault.delay)
                with outer._lock:  # before it is sent: with the answer, a client may send the next one
                    outer._in_flight -= 1
                try:
                    if fault.reset:  # closing a socket that does not linger resets the connection
                        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    if fault.hang or fault.reset or fault.status == 0:
                        self.close_connection = True
                        return
                    # Counted before it is sent: a client may look at the count as soon as it has the answer.
                    request.answered = fault.status == 200 and (fault.body, fault.raw, fault.cut) == (None, None, None)
                    self._answer(fault, fault.body if fault.body is not None else outer._completion(payload, fault))
                except (BrokenPipeError, ConnectionResetError):
                    request.answered = False

            def _answer(self, fault: Fault, body: bytes) -> None:
                key = self.headers.get("Authorization", "").removeprefix("Bearer ")
                body = body.replace(KEY.encode(), key.encode())
                closes = fault.raw is not None or fault.endless or fault.cut is not None
                self.close_connection = self.close_connection or closes
                if fault.raw is not None:
                    self.wfile.write(fault.raw.replace(KEY.encode(), key.encode()))
                    return
                self.send_response(fault.status)
                for name, text in {"Content-Type": "application/json", **fault.headers}.items():
                    self.send_header(name, text.replace(KEY, key))
                if fault.endless:
                    self.send_header("Transfer-Encoding", "chunked")
                else:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if not fault.endless:
                    self.wfile.write(body[: fault.cut])
                while fault.endless and not outer._stop.wait(fault.pause):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
