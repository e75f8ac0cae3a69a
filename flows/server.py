"""Prefect's server as a process of ours: beside `quit serve`, or for one command alone. Prefect itself is not imported
here."""

from __future__ import annotations

import atexit
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from quit.common.children import Child
from quit.common.starting import HOST, end, free_port, is_free, wait_until_healthy
from quit.common.telemetry import SILENT
from quit.errors import ServerError
from quit.settings import ServeSettings

_SECONDS = 180  # how long it may take to start on a busy machine
_UVICORN = "import gc, runpy; gc.set_threshold(50_000, 20, 50); runpy.run_module('uvicorn', run_name='__main__')"
"""Start it with fewer searches for garbage, which are a tenth of the time of its imports."""


@contextmanager
def prefect_server(wanted: bool, settings: ServeSettings) -> Iterator[str | None]:
    """Run a server while the context lasts and give its API's address (None where none is wanted).

    It keeps its records where Prefect does (``PREFECT_HOME``), so the next start knows earlier runs. Raises
    :class:`ServerError` where the port is taken or the server does not come up in three minutes.
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
    command = ["-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    environment = {"PREFECT_API_URL": address, "PREFECT_UI_API_URL": address}
    environment["PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT"] = "false"
    process, log = _started(command, environment, "quit-server.log")
    try:
        wait_until_healthy(process, "The Prefect server", address, _SECONDS, log)
        yield address
    finally:
        end(process)


class OwnServer:
    """A Prefect server for this process alone, as Prefect starts one where none is named; it ends with us, whatever
    ends us.

    Prefect's own way first imports the whole server here, which takes seconds, and waits for it before anything else.
    This one starts while Prefect and the flow are imported. ``url``: address of its API.
    """

    def __init__(self) -> None:
        port = free_port()
        self.url = f"http://{HOST}:{port}/api"
        spec = importlib.util.find_spec("prefect")
        assert spec is not None and spec.origin is not None
        app = ["--app-dir", str(Path(spec.origin).parent), "--factory", "prefect.server.api.server:create_app"]
        command = ["-c", _UVICORN, *app, "--host", HOST, "--port", str(port), "--log-level", "error"]
        without_pages = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
        without_pages["PREFECT_LOGGING_SERVER_LEVEL"] = "ERROR"  # why it could not start is in its log
        self._process, self._log = _started([*command, "--lifespan", "on"], without_pages, "quit-own-server.log")
        atexit.register(self.stop)  # Prefect's threads register later, so they end before it

    def wait(self) -> None:
        """Wait until it answers. Raises :class:`ServerError` where it does not."""
        wait_until_healthy(self._process, "The Prefect server of this command", self.url, _SECONDS, self._log)

    def stop(self) -> None:
        """End it."""
        end(self._process)


def _started(command: Sequence[str], environment: Mapping[str, str], log: str) -> tuple[Child, Path]:
    """Start Python with a command whose output is added to a file in Prefect's home; returns both."""
    path = Path(os.environ.get("PREFECT_HOME", Path.home() / ".prefect")) / log
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        environment = {**os.environ, **SILENT, **environment}
        null = subprocess.DEVNULL
        return Child([sys.executable, *command], env=environment, stdin=null, stdout=file, stderr=file), path
