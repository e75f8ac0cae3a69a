"""Commands that pages show, run over a finished workspace: each must end well and print what it is for. Builds and
servers: the tutorial's test."""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.conftest import ROOT, call_quit
from tests.docs.pages import blocks

pytestmark = pytest.mark.slow

HOWTOS = ("report", "release", "export", "terminal", "library")
PAGES = ("README.md", *(f"docs/howto/{name}.md" for name in HOWTOS))
NOT_HERE = re.compile(r"quit (?:build|browse|review|models)\b|^(?:make|pip|python|export|hf) ")
"""Builds, servers that stay, installations: other tests run them."""


@pytest.fixture(scope="module")
def workspace(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the finished workspace with two releases, and beside it the first one's release JSON."""
    copy = tmp_path_factory.mktemp("shown") / "W"
    shutil.copytree(built, copy)
    for name in ("v1", "v2"):
        done = call_quit("release", "create", "-w", str(copy), "--name", name)
        assert done.returncode == 0, done.stderr
    published = ("-f", "release-json", "--paper-keys", "--out", str(copy.parent), "-q")
    assert call_quit("export", "--release", str(copy / "releases" / "v1"), *published).returncode == 0
    return copy


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_shows_runs(page: str, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("W", "workspace"):
        (tmp_path / name).symlink_to(workspace)
    (tmp_path / "QUIT").symlink_to(workspace.parent / "release-json")
    lines = (ROOT / "docs" / "tutorial" / "hints.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    faultless = [line for line in lines if "everest" not in line]
    (tmp_path / "mine.jsonl").write_text("".join(faultless), encoding="utf-8")
    ran = 0
    for block in blocks(ROOT / page):
        if block.kind == "sh" and block.note != "not run":
            for line in block.text.splitlines():
                if NOT_HERE.search(line) or not line.strip():
                    continue
                words = shlex.split(line, comments=True)
                target = words.index(">") if ">" in words else len(words)
                assert Path(words[0]).name == "quit", line
                command = words[1:target]
                if words[1] == "export" and "--overwrite" not in words:
                    command.append("--overwrite")  # the page's exports are alternatives
                done = call_quit(*command)
                assert done.returncode == 0 and (done.stdout.strip() or "--quiet" in words), f"{line}\n{done.stderr}"
                ran += 1
        elif block.kind == "python" and page.endswith("library.md") and block.note != "not run":
            with redirect_stdout(io.StringIO()):
                exec(compile(block.text, f"{page}:{block.line}", "exec"), {})
            ran += 1
        elif block.kind == "python" and page == "README.md":
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path / "hf")}
            environment.pop("HF_DATASETS_CACHE", None)
            done = subprocess.run([sys.executable, "-c", block.text], env=environment, capture_output=True, text=True)
            assert done.returncode == 0 and done.stdout.strip(), done.stderr
            ran += 1
    assert ran >= 4
