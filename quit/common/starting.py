"""Start a Prefect server on this machine and wait until it answers: ``quit serve --with-server``."""

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

_SERVER_SECONDS = 120  # how long a server may take to start


@contextmanager
def prefect_server(wanted: bool, settings: Serving) -> Iterator[str | None]:
    """Run a server while the context lasts and give its API's address (None where none is wanted).

    It keeps its records where Prefect does (``PREFECT_HOME``), so the next start knows earlier runs. Raises
    :class:`ServerError` where the port is taken or the server does not come up in two minutes.
    """
    if not wanted:
        yield None
        return
    port = settings.server_port or _free_port()
    if _answers(port):
        raise ServerError(
            f"Port {port} is taken; if that is a Prefect server, give --api-url http://127.0.0.1:{port}/api instead "
            "of --with-server, or choose another port: --set serving.server_port=4201"
        )
    address = f"http://127.0.0.1:{port}/api"
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, **SILENT, "PREFECT_API_URL": address, "PREFECT_UI_API_URL": address}
    environment["PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT"] = "false"
    log = Path(os.environ.get("PREFECT_HOME", Path.home() / ".prefect")) / "quit-server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        process = Child(command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        try:
            deadline = time.monotonic() + _SERVER_SECONDS
            while not _healthy(address):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise ServerError(f"The Prefect server did not start; see {log}.")
                time.sleep(0.3)
            yield address
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _answers(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


def _healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
