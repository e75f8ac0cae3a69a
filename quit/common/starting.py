"""Servers that we start on this machine: a free port, waiting until they answer, ending them; and Prefect's server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quit.common.children import Child
from quit.common.telemetry import SILENT
from quit.errors import ServerError
from quit.settings import Serving

HOST = "127.0.0.1"
_SERVER_SECONDS = 120  # how long Prefect's server may take to start


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


def healthy(url: str) -> bool:
    """Whether a server is up and has finished its start: it answers ``url``/health with 200."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def wait_until_healthy(process: Child, name: str, url: str, seconds: float, log: Path) -> None:
    """Return when the server answers. Raises :class:`ServerError` when it ends, or needs longer than ``seconds``."""
    deadline = time.monotonic() + seconds
    while not healthy(url):
        if process.poll() is not None:
            raise ServerError(f"{name} ended at once (code {process.returncode}). Its log: {log}")
        if time.monotonic() > deadline:
            raise ServerError(f"{name} did not answer within {seconds:g} s. Its log: {log}")
        time.sleep(0.2)


def end(process: Child, seconds: float = 20.0) -> None:
    """Ask a server to end; kill it when it still runs after ``seconds``."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def prefect_server(wanted: bool, settings: Serving) -> Iterator[str | None]:
    """Run a server while the context lasts and give its API's address (None where none is wanted).

    It keeps its records where Prefect does (``PREFECT_HOME``), so the next start knows earlier runs. Raises
    :class:`ServerError` where the port is taken or the server does not come up in two minutes.
    """
    if not wanted:
        yield None
        return
    port = settings.server_port or free_port()
    address = f"http://{HOST}:{port}/api"
    if not is_free(port):
        raise ServerError(
            f"Port {port} is taken; if that is a Prefect server, give --api-url {address} instead "
            "of --with-server, or choose another port: --set serving.server_port=4201"
        )
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    environment = {**os.environ, **SILENT, "PREFECT_API_URL": address, "PREFECT_UI_API_URL": address}
    environment["PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT"] = "false"
    log = Path(os.environ.get("PREFECT_HOME", Path.home() / ".prefect")) / "quit-server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        process = Child(command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        try:
            wait_until_healthy(process, "The Prefect server", address, _SERVER_SECONDS, log)
            yield address
        finally:
            end(process)
