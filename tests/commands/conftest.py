"""The command line in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from quit.cli import app
from tests.conftest import call_quit


def commands() -> dict[str, Any]:
    """Return every command by its path, such as ``release create``."""
    by_path = {}

    def walk(command: Any, path: tuple[str, ...]) -> None:
        for name, child in getattr(command, "commands", {}).items():
            walk(child, (*path, name))
        if not getattr(command, "commands", {}):
            by_path[" ".join(path)] = command

    walk(typer.main.get_command(app), ())
    return by_path


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return what a command with ``--json`` printed."""
        assert self.code == 0, self.err
        return json.loads(self.out)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Run ``quit`` with some arguments, in an empty folder and with an empty cache."""
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Ended:
        result = call_quit(*map(str, arguments))
        return Ended(result.returncode, result.stdout, result.stderr)

    return run
