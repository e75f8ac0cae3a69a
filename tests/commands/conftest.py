"""The command line in this process."""

from pathlib import Path
from typing import Any

import pytest
import typer

from quit.cli import assembled


def commands() -> dict[str, Any]:
    """Return every command by its path, such as ``release create``."""
    by_path = {}

    def walk(command: Any, path: tuple[str, ...]) -> None:
        for name, child in getattr(command, "commands", {}).items():
            walk(child, (*path, name))
        if not getattr(command, "commands", {}):
            by_path[" ".join(path)] = command

    walk(typer.main.get_command(assembled()), ())
    return by_path


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder and with an empty cache."""
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
