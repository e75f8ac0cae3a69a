"""Commands about a workspace as they are typed (what gc does is tested in tests/operations)."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.report import tiny
from tests.running import call_quit

pytestmark = pytest.mark.usefixtures("own_folder")


def test_gc_lists_first_and_removes_when_told(tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    assert call_quit("workspace", "gc", "-w", workspace.path).out == "Nothing is left over.\n"
    current = workspace.current()["rank"][0]
    shutil.copytree(current, current.with_name("00aa"))
    listed = call_quit("workspace", "gc", "-w", workspace.path)
    assert listed.out.startswith("rank 00aa: ") and "--remove" in listed.out
    output = call_quit("workspace", "gc", "-w", workspace.path, "--json").json()
    assert [run["fingerprint"] for run in output["runs"]] == ["00aa"] and not output["removed"]
    assert call_quit("workspace", "gc", "-w", workspace.path, "--keep", 1).out == "Nothing is left over.\n"
    assert current.with_name("00aa").is_dir()
    assert "freed" in call_quit("workspace", "gc", "-w", workspace.path, "--remove").out
    assert not current.with_name("00aa").exists() and current.is_dir()


def test_a_shell_reads_the_path_in_the_command_of_a_message() -> None:
    """Here of one message; no other prints a path after ``-w`` in another way."""
    path = "my friend's data"
    command = call_quit("status", "-w", path, code=7).err.partition("build it: ")[2]
    words = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True
    ).stdout.splitlines()
    assert words == ["quit", "build", "-w", path, "--source", "starter"]
    files = [file for package in ("annotation", "flows", "quit") for file in (ROOT / package).rglob("*.py")]
    other = re.compile(r"quit [\w ]+ -w \"?\s*f?\"?\{(?!shell_word\(|path\})")
    assert not [file for file in files if other.search(file.read_text(encoding="utf-8"))]


def test_settings_are_those_of_the_last_build(tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    unbuilt = call_quit("settings", "-w", workspace.path, code=3)
    assert "has not been built yet" in unbuilt.err
    build = {"profile": "paper", "overrides": ["judge.threshold=0.6"], "sources": ["starter"]}
    (workspace.path / "build.json").write_text(json.dumps(build))
    rows = call_quit("settings", "-w", workspace.path, "--set", "split.seed=a", "--json").json()
    origins = {row["key"]: (row["value"], row["origin"]) for row in rows}
    assert origins["judge.threshold"] == (0.6, "--set") and origins["split.seed"] == ("a", "--set")
    assert origins["models.equivalence"] == ("bem", "profile paper")
