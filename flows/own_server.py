"""The server that Prefect starts for a run when none is named."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

from prefect.settings import PREFECT_API_URL

from quit.common.children import Child


def end_own_server_with_us() -> None:
    """Have the server that Prefect will start for this process, if it has to, end with it, whatever ends it. Call
    before a flow.

    Prefect starts it by ``subprocess.Popen`` and has no setting for that, so its module gets another ``Popen``.
    """
    if not PREFECT_API_URL.value():
        from prefect.server.api import server  # seconds, which Prefect itself spends only where it starts a server

        server.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": Child})  # type: ignore[assignment]
