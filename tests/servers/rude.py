"""A badly behaved OpenAI-compatible server in this process, for faults that a real one cannot be made to show."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "<key>"
"""In a fault's headers, body, content or usage: the API key that came with the request, which is sent back."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What the server does with one request; the module functions below make the usual ones.

    ``delay``: seconds before the answer. ``body``: bytes sent as they are, None for a completion of ``content``.
    ``usage``, ``model``: token counts and model of that. ``cut``: bytes of the body sent before the connection is
    closed, None for all. ``hang``: never answers. ``reset``: the connection is reset. ``endless``: the body is repeated
    until the client goes, ``pause`` seconds apart. ``raw``: sent instead of an HTTP answer.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content: Any = None
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


def too_many(retry_after: float | None = None, *, as_date: bool = False) -> Fault:
    """429; Retry-After in seconds, as an HTTP date ``retry_after`` seconds from now, or absent."""
    if retry_after is None:
        headers = {}
    else:
        headers = {"Retry-After": formatdate(time.time() + retry_after, usegmt=True) if as_date else f"{retry_after:g}"}
    return Fault(429, headers, _error("rate limit exceeded", 429))


def failure(status: int, message: str = "something broke") -> Fault:
    """An error reply: 500, 502, 503, or 401 and 404, which no retry mends."""
    return Fault(status, body=_error(message, status))


def slow(seconds: float, content: str | None = None) -> Fault:
    """A proper answer after a while."""
    return Fault(delay=seconds, content=content)


HANGS = Fault(hang=True)
CLOSES_AT_ONCE = Fault(cut=0, status=0)
CLOSES_MID_BODY = Fault(cut=40)
RESETS = Fault(reset=True)
ENDLESS = Fault(body=b'{"id": "' + b"1" * 65536, endless=True)
DRIPS = Fault(body=b" ", endless=True, pause=0.02)
BOMB_BYTES = 64 << 20
GZIP_BOMB = Fault(headers={"Content-Encoding": "gzip"}, body=gzip.compress(bytes(BOMB_BYTES), 1))
NO_GZIP = Fault(headers={"Content-Encoding": "gzip"}, body=KEY.encode())
NO_HTTP = Fault(raw=f"{KEY} {KEY}\r\n\r\n".encode())
LONG_HEADER = Fault(headers={"X-Long": KEY + "x" * 50 + KEY * 300})  # a client that quotes 100 bytes of it cuts the key
NOT_JSON = Fault(body=b"<html>Bad gateway</html>", headers={"Content-Type": "text/html"})
ECHOES_THE_KEY = Fault(body=f"You sent me {KEY}.".encode())
HALF_JSON = Fault(body=b'{"id": "1", "choices": [{"message": {"content": "Par')
NO_CHOICES = Fault(body=f'{{"id": "{KEY}", "object": "chat.completion", "choices": []}}'.encode())
NESTED = Fault(body=b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
CONTENT_NULL = Fault(
    body=b'{"id": "1", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": '
    b"null}}]}"
)
WRONG_MODEL = failure(404, "The model `other` does not exist.")


def redirect(location: str, status: int = 307) -> Fault:
    """A reply that sends the client elsewhere."""
    return Fault(status, {"Location": location}, b"")


FAULTS: dict[str, Fault] = {
    "400": failure(400, f"This model's maximum context length is 2048 tokens. ({KEY})"),
    "401": failure(401, f"Incorrect API key provided: {KEY}."),
    "401 with the key where messages are cut": failure(401, ("This key is not one of ours. " * 10)[:280] + KEY),
    "403": failure(403, f"{KEY} may not use this model."),
    "404": failure(404, f"The model `other` does not exist for {KEY}."),
    "413": Fault(413, {"Content-Type": "text/plain"}, f"Too much for {KEY}".encode()),
    "429": too_many(),
    "429 with seconds": too_many(0.01),
    "429 with an unreadable Retry-After": Fault(429, {"Retry-After": KEY}, _error(f"too many from {KEY}", 429)),
    "500": failure(500, f"no handler for {KEY}"),
    "502": Fault(502, {"Content-Type": "text/html"}, f"<html>Bad gateway {KEY}</html>".encode()),
    "503": failure(503),
    "redirect": redirect(f"http://user:{KEY}@other.example/{KEY}?key={KEY}"),
    "closes at once": CLOSES_AT_ONCE,
    "closes in the middle of a body": CLOSES_MID_BODY,
    "resets the connection": RESETS,
    "hangs": HANGS,
    "sends a byte at a time, without end": DRIPS,
    "endless body": ENDLESS,
    "gzip bomb": GZIP_BOMB,
    "no gzip where it says so": NO_GZIP,
    "no HTTP": NO_HTTP,
    "header too long": LONG_HEADER,
    "body that echoes the key": ECHOES_THE_KEY,
    "half a JSON document": HALF_JSON,
    "no choices": NO_CHOICES,
    "content that is not a text": Fault(content={"key": KEY}),
    "not finished": Fault(content="part of it", finish_reason=f"abort {KEY}"),
    "thinking": Fault(content=f"<think>{KEY}</think>Paris"),
    "the key as the answer": Fault(content=f"It is {KEY}."),
    "lone surrogate": Fault(content="Leso\ud83d"),
    "more tokens than there are": Fault(usage={"prompt_tokens": 2**70}),
    "infinitely many tokens": Fault(usage={"completion_tokens": float("1e999")}),
    "a key instead of a count": Fault(usage={"prompt_tokens": KEY}),
    "nested 100,000 deep": NESTED,
}
"""Thirty-five faults by name; each fails a request at once or at its last attempt, and most send the API key back."""

Script = Iterable[Fault | None] | Callable[[int, Any], Fault | None]


class RudeServer:
    """Serves /v1/chat/completions, /v1/models and /health on a free port, as a context manager.

    ``script``: faults for the first requests in the order they arrive, None for a proper answer, or a function of
    (request number from 0, payload). ``reply``: the proper answer's text from the payload. ``script`` may be replaced
    while the server runs; ``requests`` is everything that arrived.
    """

    def __init__(self, script: Script = (), reply: Callable[[Any], str] = lambda payload: "NO ANSWER") -> None:
        self.requests: list[Request] = []
        self.script: Script = script if callable(script) else list(script)
        self.reply = reply
        self.models: Fault | None = None
        """The answer to GET /v1/models, None for a proper one."""
        self.looks = 0
        """How often that was asked for."""
        self._lock = threading.Lock()
        self._in_flight = 0
        self._stop = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
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
        message = {"role": "assistant", "content": content}
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
                outer.looks += self.path == "/v1/models"
                if outer.models is not None and self.path == "/v1/models":
                    self._answer(outer.models, outer.models.body or b"")
                    return
                pages = {"/health": {}, "/v1/models": {"object": "list", "data": [{"id": "rude", "object": "model"}]}}
                page = pages.get(self.path, {})
                self._send(200 if self.path in pages else 404, {}, json.dumps(page).encode())

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path != "/v1/chat/completions":
                    self._send(404, {}, _error(f"no such path: {self.path}", 404))
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
                if fault.raw is not None:
                    self.wfile.write(fault.raw.replace(KEY.encode(), key.encode()))
                    self.close_connection = True
                elif fault.endless:
                    self._send_for_ever(body, fault.pause)
                else:
                    headers = {name: text.replace(KEY, key) for name, text in fault.headers.items()}
                    self._send(fault.status, headers, body, fault.cut)

            def _send(self, status: int, headers: Mapping[str, str], body: bytes, cut: int | None = None) -> None:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body if cut is None else body[:cut])
                self.close_connection = self.close_connection or cut is not None

            def _send_for_ever(self, body: bytes, pause: float) -> None:
                self.close_connection = True
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while not outer._stop.wait(pause):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
