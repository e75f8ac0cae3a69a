"""Start a Prefect server on this machine: with its pages for ``quit serve --with-server``, without for one command."""

from __future__ import annotations

import atexit
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from quit.common.children import Child
from quit.common.telemetry import SILENT
from quit.errors import ServerError
from quit.settings import Serving

_SECONDS = 180  # how long a server may take to start on a busy machine


@contextmanager
def prefect_server(wanted: bool, settings: Serving) -> Iterator[str | None]:
    """Run a server while the context lasts and give its API's address (None where none is wanted).

    It keeps its records where Prefect does (``PREFECT_HOME``), so the next start knows earlier runs. Raises
    :class:`ServerError` where the port is taken or the server does not come up.
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
    log = Path(os.environ.get("PREFECT_HOME", Path.home() / ".prefect")) / "quit-server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {"PREFECT_API_URL": _url(port), "PREFECT_UI_API_URL": _url(port)}
    environment["PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT"] = "false"
    with log.open("wb") as file:
        command = ["-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
        server = _Server(port, command, environment, file)
        try:
            if not server.wait():
                raise ServerError(f"The Prefect server did not start; see {log}.")
            yield server.url
        finally:
            server.stop()


class OwnServer:
    """A server for this process alone, as Prefect starts one where none is named; it ends with us, whatever ends us.

    Prefect's own way imports the whole server here first, which takes seconds, and waits for it before anything else.
    This one starts while the flow is imported.
    """

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the server)
        self._server = self._started()
        atexit.register(lambda: self._server.stop())  # Prefect's threads register later, so they end before it

    @property
    def url(self) -> str:
        """Address of its API."""
        return self._server.url

    def wait(self) -> None:
        """Wait until it answers. Raises :class:`ServerError` where it does not."""
        if not self._server.wait():
            self._log.seek(0)
            shown = self._log.read().decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise ServerError(f"The Prefect server for this command did not start: {shown[0]}. Run it again.")

    def _started(self) -> _Server:
        port = _free_port()
        spec = importlib.util.find_spec("prefect")
        assert spec is not None and spec.origin is not None
        app = ["--app-dir", str(Path(spec.origin).parent), "--factory", "prefect.server.api.server:create_app"]
        command = ["-m", "uvicorn", *app, "--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
        without_pages = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
        return _Server(port, [*command, "--lifespan", "on"], without_pages, self._log)


class _Server:
    """A server process; its output goes to ``log``."""

    def __init__(self, port: int, command: Sequence[str], environment: dict[str, str], log: IO[bytes]) -> None:
        self.url = _url(port)
        self._process = Child(
            [sys.executable, *command],
            env={**os.environ, **SILENT, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )

    def wait(self) -> bool:
        """Wait until it answers; returns whether it does."""
        deadline = time.monotonic() + _SECONDS
        while not _healthy(self.url):
            if self._process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}/api"


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
