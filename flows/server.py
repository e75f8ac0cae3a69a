"""Prefect's server: as a process beside `quit serve --with-server`, and watched while a run reports to it. Prefect
itself is not imported here."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quit.common.children import SupervisedProcess
from quit.common.endpoints import address
from quit.common.starting import HOST, end, free_port, healthy, is_free, wait_until_healthy
from quit.common.telemetry import SILENT
from quit.errors import ServerError
from quit.settings import ServeSettings

_SECONDS = 180  # how long it may take to start on a busy machine


@contextmanager
def prefect_server(enabled: bool, settings: ServeSettings) -> Iterator[str | None]:
    """Run a server while the context lasts and give its API's address (None unless ``enabled``).

    It keeps its records where Prefect does (``PREFECT_HOME``), so the next start knows earlier runs. Raises
    :class:`ServerError` where the port is taken or the server does not come up in three minutes.
    """
    if not enabled:
        yield None
        return
    port = settings.server_port or free_port()
    url = f"http://{HOST}:{port}/api"
    if not is_free(port):
        raise ServerError(
            f"Port {port} is taken; if that is a Prefect server, give --api-url {url} instead "
            "of --with-server, or choose another port: --set serving.server_port=4201"
        )
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    environment = {**os.environ, **SILENT, "PREFECT_API_URL": url, "PREFECT_UI_API_URL": url}
    environment["PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT"] = "false"
    log = Path(os.environ.get("PREFECT_HOME", Path.home() / ".prefect")) / "quit-server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        process = SupervisedProcess(command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        wait_until_healthy(process, "The Prefect server", url, _SECONDS, log)
        yield url
    finally:
        end(process)


@contextmanager
def server_watched(url: str, patience: float = 60.0) -> Iterator[None]:
    """End this process where the server has not answered for ``patience`` seconds: Prefect's client would try without
    end. Use it only in a process that does nothing else."""
    end_event = threading.Event()

    def watch() -> None:
        last = time.monotonic()
        while not end_event.wait(min(5.0, patience / 4)):
            if healthy(url):
                last = time.monotonic()
            elif time.monotonic() - last > patience:
                error = ServerError(
                    f"The Prefect server {address(url)} has not answered for {patience:g} s. What is done stays done. "
                    "Start it and run the same command again, or unset PREFECT_API_URL to run without one."
                )
                with suppress(OSError, ValueError):
                    print(f"quit: {error}", file=sys.stderr, flush=True)
                os._exit(ServerError.exit_code)

    threading.Thread(target=watch, name="prefect server", daemon=True).start()
    try:
        yield
    finally:
        end_event.set()
