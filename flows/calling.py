"""Carry out a job of the command line: by its function, or as a run of the Prefect server that the user has named."""

from __future__ import annotations

import os
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

from quit.common.endpoints import address
from quit.errors import ServerError, SettingsError, Waiting, require


def run_job(job: str, **parameters: Any) -> Any:
    """Carry out a job of :mod:`quit.library.jobs` and return its result, or that of its flow.

    The flow takes the same parameters; of a workspace that is open, its location. One that is None has its default.
    Raises ``ServerError`` where the named server does not answer, ``MissingDependency`` without Prefect, ``Waiting`` as
    the job does.
    """
    parameters = {name: value for name, value in parameters.items() if value is not None}
    url = server_url()
    if not url:
        return getattr(import_module("quit.library.jobs"), job)(**parameters).result
    from quit.common.starting import healthy
    from quit.engine.workspace import Workspace
    from quit.flows.server import server_watched

    require("prefect")
    from prefect.exceptions import ParameterTypeError

    if not healthy(url):
        raise ServerError(
            f"The Prefect server {address(url)} does not answer. Start it (prefect server start), or unset "
            "PREFECT_API_URL to run without one."
        )
    # Prefect's log stays off the terminal, which shows progress by itself; its server still gets every line.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    with server_watched(url):
        parameters = {name: str(value) if isinstance(value, Workspace) else value for name, value in parameters.items()}
        try:
            state = getattr(import_module(f"quit.flows.{job}"), job)(**parameters, return_state=True)
            if state.name == Waiting.__name__:
                raise Waiting(state.message)
            return state.result()
        except ParameterTypeError as error:
            raise SettingsError(str(error).strip().splitlines()[-1].strip(" -")) from None


def server_url() -> str | None:
    """Return the API's address of the Prefect server that ``PREFECT_API_URL`` or Prefect's active profile names, or
    None. Prefect itself is not imported."""
    if "PREFECT_API_URL" in os.environ:
        return os.environ["PREFECT_API_URL"] or None
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    try:
        profiles = tomllib.loads(Path(os.environ.get("PREFECT_PROFILES_PATH", home / "profiles.toml")).read_text())
    except (OSError, ValueError):
        return None
    active = os.environ.get("PREFECT_PROFILE", profiles.get("active"))
    return profiles.get("profiles", {}).get(active, {}).get("PREFECT_API_URL")
