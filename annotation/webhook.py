"""The receiver of Label Studio's webhooks: takes an event, has it on disk, answers. It does nothing else while the
server waits.

The server waits one second and never tries again, so an event may be lost: pulls by time remain the safety net, and
this only makes them come sooner and catch versions of an annotation that live for less than a pull.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from annotation.client import Server
from annotation.server import keep_secret
from quit.errors import InputError, QuitError, WorkspaceError
from quit.review.store import ReviewStore
from quit.settings import Review

ACTIONS = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED", "ANNOTATIONS_DELETED", "TASKS_DELETED")
HEADER = "X-Quit-Secret"
SECRET = "QUIT_REVIEW_SECRET"


def webhook_secret(store: ReviewStore) -> str:
    """Return the secret that events must carry: from ``QUIT_REVIEW_SECRET``, else made once and kept beside the reviews
    (mode 0600).

    Raises :class:`WorkspaceError` where it can neither be read nor made.
    """
    if given := os.environ.get(SECRET):
        return given
    path = store.folder / "server" / "secret"
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be read: {error}.") from error
    secret = secrets.token_urlsafe(24)
    keep_secret(path, secret)
    return secret


class Receiver:
    """Listens for events and keeps them in the queue. ``woken`` is set whenever one has arrived."""

    def __init__(self, store: ReviewStore, secret: str, settings: Review, host: str = "127.0.0.1") -> None:
        self.woken = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Authenticate, keep, answer."""
                code = receiver._take(self, store, secret, settings)
                if code == 202:
                    receiver.woken.set()
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing: events are in the queue."""

        Handler.timeout = settings.timeout_seconds
        try:
            self._http = ThreadingHTTPServer((host, settings.webhook_port), Handler)
        except OSError as error:
            raise InputError(
                f"Cannot listen on port {settings.webhook_port} of {host}: {error.strerror}. Name another: --port 8092."
            ) from error
        self._http.daemon_threads = True
        self.url = f"http://{host}:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, name="quit-webhook", daemon=True)

    @staticmethod
    def _take(handler: BaseHTTPRequestHandler, store: ReviewStore, secret: str, settings: Review) -> int:
        given = handler.headers.get(HEADER) or ""
        if not hmac.compare_digest(given.encode(), secret.encode()):
            return 401
        length = handler.headers.get("Content-Length") or ""
        if not length.isdigit():
            return 411
        if int(length) > settings.webhook_bytes:
            return 413
        body = handler.rfile.read(int(length))
        try:
            if len(body) < int(length) or not isinstance(json.loads(body), dict):
                return 400
        except ValueError:
            return 400
        try:
            store.enqueue(body)
        except WorkspaceError:
            return 507
        return 202

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def register(server: Server, project: int, url: str, secret: str) -> int:
    """Let the server send a project's events to ``url``, once however often it is called; returns its number."""
    wanted: dict[str, Any] = {
        "url": url,
        "send_payload": True,
        "send_for_all_actions": False,
        "actions": ACTIONS,
        "headers": {HEADER: secret},
        "is_active": True,
    }
    hooks = server.ask(lambda studio: studio.webhooks.list(project=str(project)))
    known = next((hook.id for hook in hooks if hook.url == url and hook.project == project), None)
    if known is None:
        return server.ask(lambda studio: studio.webhooks.create(project=project, **wanted)).id
    server.ask(lambda studio: studio.webhooks.update(known, **wanted))
    return known


def serve(
    receiver: Receiver,
    pull: Callable[[], Any],
    settings: Review,
    stop: threading.Event,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Pull soon after an event, and every ``poll_seconds`` without one, until ``stop`` is set.

    A server that is down is said and tried again at the next turn: events wait in the queue.
    """
    while not stop.is_set():
        try:
            say(str(pull()))
        except QuitError as error:
            if not error.retryable:
                raise
            say(str(error))
        receiver.woken.wait(settings.poll_seconds)
        if stop.wait(settings.settle_seconds):
            return
        receiver.woken.clear()
