"""Call a flow from the command line: quietly, with a server that ends with us, and with the terminal listening."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any


def call_flow(name: str, *arguments: Any, **parameters: Any) -> Any:
    """Call the flow ``name`` (``review.label_update``: module and function below ``flows``) and return its result."""
    # Prefect's log stays off the terminal, which shows progress by itself; its server still gets every line.
    for variable in ("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "PREFECT_LOGGING_SERVER_LEVEL"):
        os.environ.setdefault(variable, "CRITICAL")
    from flows.own_server import end_own_server_with_us

    end_own_server_with_us()
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"flows.{module}"), function)(*arguments, **parameters)
