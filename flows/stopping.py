"""The server that Prefect starts for a run when none is named: it must not outlive a run that is ended by force."""

from __future__ import annotations

import sys


def end_own_server() -> None:
    """End the servers that this process started for its runs. Does nothing where none was started."""
    module = sys.modules.get("prefect.server.api.server")
    for server in list(getattr(getattr(module, "SubprocessASGIServer", None), "_instances", {}).values()):
        process = getattr(server, "server_process", None)
        if process is not None and process.poll() is None:
            process.terminate()
