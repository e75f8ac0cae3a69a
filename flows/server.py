"""Prefect's server as a process beside `quit serve --with-server`. Prefect itself is not imported here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quit.common.children import Child
from quit.common.starting import HOST, end, free_port, is_free, wait_until_healthy
from quit.common.telemetry import SILENT
from quit.errors import ServerError
from quit.settings import ServeSettings

_SECONDS = 180  # how long it may take to start on a busy machine


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
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    environment = {**os.environ, **SILENT, "PREFECT_API_URL": address, "PREFECT_UI_API_URL": address}
    environment["PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT"] = "false"
    log = Path(os.environ.get("PREFECT_HOME", Path.home() / ".prefect")) / "quit-server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        process = Child(command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        wait_until_healthy(process, "The Prefect server", address, _SECONDS, log)
        yield address
    finally:
        end(process)
