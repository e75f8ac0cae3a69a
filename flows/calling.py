"""Call a Prefect flow from the command line, without Prefect's log, with a server of this process if none is named."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from flows.server import OwnServer
from quit.errors import require


def call_flow(name: str, *arguments: Any, encodes: bool = False, **parameters: Any) -> Any:
    """Call the flow ``name`` (``build.build_held``: module and function below ``flows``) and return its result.

    Where no Prefect server is named, one is started for this process. ``encodes``: whether the flow may encode texts;
    torch is imported while that server starts. Raises ``MissingDependency`` without Prefect.
    """
    require("prefect")
    # Prefect's log stays off the terminal, which shows progress by itself; its server still gets every line.
    for variable in ("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "PREFECT_LOGGING_SERVER_LEVEL"):
        os.environ.setdefault(variable, "CRITICAL")
    # Started before Prefect is imported, so that both happen at once; stopped if Prefect's settings name a server.
    own = None if os.environ.get("PREFECT_API_URL") else OwnServer()
    from prefect.context import refresh_global_settings_context
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        PREFECT_SERVER_EPHEMERAL_ENABLED,
        temporary_settings,
    )

    if own is not None and (PREFECT_API_URL.value() or not PREFECT_SERVER_EPHEMERAL_ENABLED.value()):
        own.stop()
        own = None
    place, _, function = name.rpartition(".")
    flow = getattr(import_module(f"flows.{place}"), function)
    if own is None:
        return flow(*arguments, **parameters)
    if encodes:
        import_module("quit.models.minilm_layers")
    own.wait()
    os.environ["PREFECT_API_URL"] = own.url
    refresh_global_settings_context()
    # Nobody waits for heartbeats here, and to end them takes up to a second.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        return flow(*arguments, **parameters)
