"""Options that many commands share, and how they print JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

WorkspaceOption = Annotated[Path, typer.Option("--workspace", "-w", help="Folder of the workspace.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ProfileOption = Annotated[
    str | None, typer.Option("--profile", "-p", help="Profile: a name, or the path of a TOML file.")
]
NamedProfileOption = Annotated[
    str, typer.Option("--profile", "-p", help="Profile: a name, or the path of a TOML file.")
]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="Override a setting: labels.max_new_tokens=16.")]


def print_json(value: Any) -> None:
    """Print a value for scripts."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
