"""A later program opens what an earlier version left, or refuses it and names the command that helps."""

import tarfile
from pathlib import Path

import pytest

from quit.export import FORMATS
from quit.export.files import verify
from quit.version import __version__
from tests.running import Result, call_quit

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))
pytestmark = pytest.mark.slow


def opened(*arguments: object) -> Result | None:
    """Return what a command prints; None where it refuses, which has to name a command."""
    result = call_quit(*map(str, arguments), code=None)
    assert result.code == 0 or "quit " in result.err.partition("quit: ")[2], result.err
    return result if result.code == 0 else None


def test_this_version_has_an_archive() -> None:
    assert Path(__file__).parent / f"{__version__}.tar.xz" in ARCHIVES, "run: python -m tests.versions"


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_workspace_release_exports_and_replies_are_read(archive: Path, tmp_path: Path, monkeypatch) -> None:
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    current = archive.name.startswith(f"{__version__}.tar")
    labels = "SELECT label, count(*) AS n FROM labels GROUP BY 1"
    outcomes = [
        opened("query", "-w", "W", labels, "--json"),
        opened("status", "-w", "W", "--json"),
        opened("release", "verify", "W/releases/v1"),
        opened("export", "-w", "W/releases/v1", "-f", ",".join(FORMATS), "--out", "again"),
        opened("release", "import", "exports/release-json", "--out", "imported"),
        # Nobody is at the address of the profile's server: the replies are those that were kept.
        opened("build", "-w", "V", "-p", "profile.toml", "-s", "questions.jsonl"),
    ]
    assert not current or all(outcomes)
    if outcomes[0] and outcomes[-1]:
        assert outcomes[0].json() == call_quit("query", "-w", "V", labels, "--json").json() == [{"label": 2, "n": 24}]
    for name in FORMATS if current else ():
        assert verify(tmp_path / "exports" / name).files
