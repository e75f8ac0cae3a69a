"""A Prefect server as people start it, with an empty database, which is kept: its migrations are half of a start."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quit.common.children import SupervisedProcess
from quit.common.starting import HOST, end, wait_until_healthy
from quit.common.telemetry import SILENT
from tests.once import kept
from tests.servers.ports import free_port


def prefect_database() -> Path:
    """Return its path."""
    import prefect

    def make(folder: Path) -> None:
        url = f"sqlite+aiosqlite:///{folder / 'prefect-test.db'}"
        variables = {**os.environ, "PREFECT_HOME": str(folder / "home"), "PREFECT_SERVER_DATABASE_CONNECTION_URL": url}
        command = [sys.executable, "-m", "prefect", "server", "database", "reset", "-y"]
        subprocess.run(command, env=variables, check=True, capture_output=True)

    return kept(f"prefect-{prefect.__version__}", make) / "prefect-test.db"


@contextmanager
def prefect_server(home: Path, port: int | None = None) -> Iterator[str]:
    """A server while the context lasts, with its records in ``home`` and the address of its API."""
    port = port or free_port()
    url = f"http://{HOST}:{port}/api"
    variables = {"PREFECT_HOME": str(home), "PREFECT_API_URL": url, "PREFECT_UI_API_URL": url}
    variables["PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT"] = "false"
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    home.mkdir(parents=True, exist_ok=True)
    with (home / "server.log").open("ab") as log:
        streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        process = SupervisedProcess(command, env={**os.environ, **SILENT, **variables}, **streams)
    try:
        wait_until_healthy(process, "The Prefect server", url, 180, home / "server.log")
        yield url
    finally:
        end(process)
