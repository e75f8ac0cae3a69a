"""Carry out a job of the command line: by its function, or as a run of the Prefect server that the user has named."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from quit.common.endpoints import address
from quit.common.extras import require
from quit.errors import SettingsError, Waiting
from quit.library.results import JobResult

_T = TypeVar("_T")


def run_job(job: Callable[..., JobResult[_T]], **parameters: Any) -> _T:
    """Carry out a job and return its result, or that of its flow.

    The flow has the job's parameters; of a workspace that is open, its location. One that is None has its
    default. Raises ``ServerError`` where the named server does not answer, ``MissingDependency`` without Prefect,
    ``Waiting`` as the job does.
    """
    parameters = {name: value for name, value in parameters.items() if value is not None}
    if not server_url():
        return job(**parameters).result
    from quit.engine.workspace import Workspace

    require("prefect")
    # Prefect's log stays off the terminal, which shows progress by itself; its server still gets every line.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    from prefect import tags
    from prefect.exceptions import ParameterTypeError

    from quit.flows.parameters import fault_in
    from quit.flows.scheduling import COMMAND, WAITING
    from quit.flows.serve import FLOW_OF
    from quit.flows.server import check_health, server_watched

    flow: Any = FLOW_OF[job]
    check_health()
    with server_watched(), tags(COMMAND):
        parameters = {name: str(value) if isinstance(value, Workspace) else value for name, value in parameters.items()}
        try:
            state = flow(**parameters, return_state=True)
            if state.name == WAITING:
                raise Waiting(state.message)
            return state.result()
        except ParameterTypeError as error:
            raise SettingsError(fault_in(error)) from None


def server_url() -> str | None:
    """Return the API's address of the Prefect server that ``PREFECT_API_URL`` or Prefect's active profile names, or
    None. Prefect itself is not imported. Raises ``SettingsError`` for a variable that is no address."""
    if (url := os.environ.get("PREFECT_API_URL")) is not None:
        if url and not address(url).startswith("http"):
            raise SettingsError("PREFECT_API_URL is no address. Write it as http://127.0.0.1:4200/api, or unset it.")
        return url or None
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    try:
        path = Path(os.environ.get("PREFECT_PROFILES_PATH", home / "profiles.toml"))
        profiles = tomllib.loads(path.read_text(encoding="utf-8"))
        active = os.environ.get("PREFECT_PROFILE", profiles.get("active"))
        return profiles.get("profiles", {}).get(active, {}).get("PREFECT_API_URL")
    except (OSError, ValueError, AttributeError, TypeError):  # Prefect says what is wrong with it
        return None
