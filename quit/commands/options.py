"""Options that many commands share, and how they print JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quit.common.terminal import echo, say

if TYPE_CHECKING:
    from quit.engine.workspace import Workspace as OpenWorkspace
    from quit.render.table import Table
    from quit.settings import Settings


def _profiles(incomplete: str) -> list[str]:
    from quit.settings import profile_names

    return [name for name in profile_names() if name.startswith(incomplete)]


def _settings_keys(incomplete: str) -> list[str]:
    from quit.settings import Settings, flatten

    return [f"{key}=" for key, _ in flatten(Settings().model_dump()) if key.startswith(incomplete)]


def complete_formats(incomplete: str) -> list[str]:
    """Return what a shell offers for ``--format``: the list so far with each format that may be next."""
    from quit.export.formats import FORMATS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in FORMATS if name.startswith(last) and name not in before.split(",")]


def complete_sources(incomplete: str) -> list[str]:
    """Return what a shell offers for ``--source``: kinds, folders, and files whose ending names a kind."""
    from quit.sources import BARE, SOURCES

    kind, colon, path = incomplete.rpartition(":")
    folder = Path(path) if path.endswith("/") else Path(path).parent
    entries = [entry for entry in sorted(folder.glob("*")) if str(entry).startswith(path)]
    if colon:
        return [f"{kind}:{entry}" for entry in entries]
    names = [name for name in (*(f"{kind}:" for kind in SOURCES), "starter") if name.startswith(incomplete)]
    folders = [f"{entry}/" for entry in entries if entry.is_dir()]
    return [*names, *(str(entry) for entry in entries if entry.suffix.lower() in BARE), *folders]


Workspace = Annotated[Path, typer.Option("-w", help="Folder of the workspace.")]
WorkspaceOrRelease = Annotated[Path, typer.Option("-w", help="Folder of the workspace, or of a release.")]
Release = Annotated[Path, typer.Argument(help="Folder of a release, such as workspace/releases/v1.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Profile = Annotated[
    str | None, typer.Option("-p", help="Profile: a name, or the path of a TOML file.", autocompletion=_profiles)
]
NamedProfile = Annotated[
    str, typer.Option("-p", help="Profile: a name, or the path of a TOML file.", autocompletion=_profiles)
]
Card = Annotated[
    Path | None,
    typer.Option(
        help="TOML file with a block [card]: name, licence, authors ... If not given: that of the build's profile, or "
        "of the release."
    ),
]
Quiet = Annotated[bool, typer.Option("-q", help="Print nothing but errors (and JSON, if asked for).")]
Set = Annotated[
    list[str] | None, typer.Option(help="Override a setting: labels.max_new_tokens=16.", autocompletion=_settings_keys)
]


def print_json(value: Any) -> None:
    """Print a value for scripts as :func:`json_text`."""
    echo(json_text(value, indent=2))


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON: NaN and infinity as null, what else JSON lacks, such as dates, as text."""
    plain = json.loads(json.dumps(value, default=json_value), parse_constant=lambda _: None)
    return json.dumps(plain, indent=indent, ensure_ascii=False)


def json_value(value: Any) -> Any:
    """Return what JSON has for a decimal number (DuckDB's sums) or for anything else that it lacks."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def show(value: Any, as_json: bool, pieces: Iterable[Table | str]) -> None:
    """Print ``value`` for scripts, or lines and tables for people."""
    if as_json:
        print_json(value)
        return
    pieces = list(pieces)
    if all(isinstance(piece, str) for piece in pieces):
        for line in pieces:
            say(line)
    else:
        from quit.render import terminal

        terminal.show(pieces)


def working(title: str, quiet: bool = False) -> AbstractContextManager[None]:
    """Show progress as :func:`quit.library.progress.working` does, which is imported only where it is used."""
    from quit.library.progress import working as show_progress

    return show_progress(title, quiet)


def open_workspace(place: str | Path) -> OpenWorkspace:
    """Return an existing workspace. Raises as :meth:`quit.engine.location.Location.open` does."""
    from quit.engine.workspace import Workspace as OpenWorkspace

    return OpenWorkspace.open(place)


def load_settings(profile: str, overrides: Sequence[str] | None) -> Settings:
    """Return the settings of a profile with ``--set`` applied. Raises as :func:`quit.settings.load` does."""
    from quit.settings import load

    return load(profile, overrides or ()).settings
