"""What the last build of a workspace took, in its ``build.json``. Paths in the workspace are relative to it; files
outside it are known by path and checksum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple, NotRequired

from typing_extensions import TypedDict

from quit.common.checksums import known_checksum
from quit.common.files import write_json
from quit.common.state_files import StateFile
from quit.errors import InputError
from quit.settings import file_of
from quit.text.words import shell_word


class Build(TypedDict):
    """What the last build took; ``checksums``: of files outside the workspace."""

    profile: str
    overrides: list[str]
    sources: list[str]
    checksums: NotRequired[dict[str, str]]


_FILE: StateFile[Build] = StateFile(
    "build.json", Build, "Delete it and name profile and sources again: quit build --source KIND:PATH."
)


class _Text(NamedTuple):
    """A text of a build, and the path in it: ``option`` and ``value`` name another one on the command line."""

    head: str
    path: str = ""
    option: str = ""
    value: str = ""


def read_build(folder: Path) -> Build | None:
    """Return what the last build of the workspace in a folder took, files by their whole paths; None where there was
    none. Raises ``WorkspaceError`` for a file that is damaged."""
    build = _FILE.read(folder)
    return build and _with_paths(build, lambda path: str(folder.resolve() / path))


def write_build(folder: Path, build: Build) -> None:
    """Remember how the workspace in a folder is built."""
    whole, checksums = folder.resolve(), {}

    def stored(name: str) -> str:
        path = Path(name).expanduser().resolve()
        if path.is_relative_to(whole):
            return path.relative_to(whole).as_posix()
        if path.is_file():
            checksums[str(path)] = known_checksum(path)
        return str(path)

    stored_build: Build = {**_with_paths(build, stored), "checksums": checksums}
    if stored_build != _FILE.read(folder):
        write_json(folder / _FILE.name, stored_build)


def check_files(workspace: object, build: Build, *options: str) -> None:
    """Raise ``InputError`` for a file of a workspace's last build that is gone, with its checksum and what names
    another. ``options``: only files that these name (``--source``, ``-p``, ``--set``). Files of the section ``review``
    are read with the tasks for people alone."""
    for each in chain([_profile(build)], _sources(build), _overrides(build)):
        if each.option in options and not each.value.startswith("review.") and not Path(each.path).exists():
            checksum = build.get("checksums", {}).get(each.path)
            raise InputError(
                f"{each.path}, of the last build of {workspace}, is gone{f' (SHA-256 {checksum})' if checksum else ''}."
                f" Put it back, or name its new place: quit build -w {shell_word(workspace)} {each.option} {each.value}"
            )


def _profile(build: Build) -> _Text:
    name = build["profile"]
    return _Text("", name, "-p", "FILE") if name.endswith(".toml") else _Text(name)


def _sources(build: Build) -> Iterator[_Text]:
    for text in build["sources"]:
        kind, _, path = text.partition(":")
        yield _Text(f"{kind}:", path, "--source", "KIND:PATH")


def _overrides(build: Build) -> Iterator[_Text]:
    for text in build["overrides"]:
        key, path = text.partition("=")[0].strip(), file_of(text)
        yield _Text(text) if path is None else _Text(f"{key}=", path, "--set", f"{key}=FILE")


def _with_paths(build: Build, path_of: Callable[[str], str]) -> Build:
    """Return a build with ``path_of(path)`` in place of each path."""

    def text(each: _Text) -> str:
        return each.head + (path_of(each.path) if each.option else "")

    return {
        **build,
        "profile": text(_profile(build)),
        "sources": [*map(text, _sources(build))],
        "overrides": [*map(text, _overrides(build))],
    }
