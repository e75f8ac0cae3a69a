"""Options that many commands share, and how they print JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def _profiles(incomplete: str) -> list[str]:
    from quit.settings import profile_names

    return [name for name in profile_names() if name.startswith(incomplete)]


def _settings_keys(incomplete: str) -> list[str]:
    from quit.settings import Settings, flatten

    return [f"{key}=" for key, _ in flatten(Settings().model_dump()) if key.startswith(incomplete)]


def complete_formats(incomplete: str) -> list[str]:
    """Return what a shell offers for ``--format``: the list so far with each format that may be next."""
    from quit.export.files import FORMATS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in FORMATS if name.startswith(last) and name not in before.split(",")]


def complete_sources(incomplete: str) -> list[str]:
    """Return what a shell offers for ``--source``: the kinds, then files of this folder and below."""
    from quit.sources import SOURCES

    kind, colon, path = incomplete.partition(":")
    if not colon:
        return [f"{name}:" for name in SOURCES if name.startswith(incomplete)] + ["starter"] * "starter".startswith(
            kind
        )
    folder = Path(path).parent if not path.endswith("/") else Path(path)
    return (
        [f"{kind}:{found}" for found in sorted(folder.glob("*")) if str(found).startswith(path)]
        if folder.is_dir()
        else []
    )


WorkspaceOption = Annotated[Path, typer.Option("--workspace", "-w", help="Folder of the workspace.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ProfileOption = Annotated[
    str | None,
    typer.Option("--profile", "-p", help="Profile: a name, or the path of a TOML file.", autocompletion=_profiles),
]
NamedProfileOption = Annotated[
    str, typer.Option("--profile", "-p", help="Profile: a name, or the path of a TOML file.", autocompletion=_profiles)
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON, if asked for).")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting: labels.max_new_tokens=16.", autocompletion=_settings_keys),
]


def print_json(value: Any) -> None:
    """Print a value for scripts."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
