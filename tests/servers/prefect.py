"""The empty database of a Prefect server, which is kept: its migrations are half of a start."""

import os
import subprocess
import sys
from pathlib import Path

from tests.once import kept


def prefect_database() -> Path:
    """Return its path."""
    import prefect

    def make(folder: Path) -> None:
        url = f"sqlite+aiosqlite:///{folder / 'prefect-test.db'}"
        variables = {**os.environ, "PREFECT_HOME": str(folder / "home"), "PREFECT_SERVER_DATABASE_CONNECTION_URL": url}
        command = [sys.executable, "-m", "prefect", "server", "database", "reset", "-y"]
        subprocess.run(command, env=variables, check=True, capture_output=True)

    return kept(f"prefect-{prefect.__version__}", make) / "prefect-test.db"
