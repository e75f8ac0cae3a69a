"""Servers that we start on this machine: a free port, waiting until they answer, ending them."""

from __future__ import annotations

import socket
import time
import urllib.request
from pathlib import Path

from quit.common.children import SupervisedProcess
from quit.errors import ServerError

HOST = "127.0.0.1"


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def is_free(port: int) -> bool:
    """Whether nobody listens on a port of this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def healthy(url: str) -> bool:
    """Whether a server is up and has finished its start: it answers ``url``/health with 200."""
    try:
        with _DIRECT.open(f"{url}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def wait_until_healthy(process: SupervisedProcess, name: str, url: str, seconds: float, log: Path) -> None:
    """Return when the server answers. Raises :class:`ServerError` when it ends, or needs longer than ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        answers = healthy(url)
        if process.poll() is not None:  # where its port answers nevertheless, it is another's
            raise ServerError(f"{name} ended at once (code {process.returncode}). Its log: {log}")
        if answers:
            return
        if time.monotonic() > deadline:
            raise ServerError(f"{name} did not answer within {seconds:g} s. Its log: {log}")
        time.sleep(0.05)


def end(process: SupervisedProcess) -> None:
    """Ask a server to end; kill it when it still runs after 20 seconds."""
    process.terminate()
    if process.ended(20.0) is None:
        process.kill()
        process.wait()
