"""The tutorial, run from top to bottom as a reader does, with what it prints compared to what it shows."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from annotation.server import label_studio_programs
from quit.errors import MissingDependency
from tests.docs.annotator import verify_all
from tests.docs.pages import Block, blocks, missing
from tests.label_studio import first_server
from tests.paths import PYTHONPATH, ROOT
from tests.running import Result, call_quit, run_process

TUTORIAL = ROOT / "docs" / "tutorial.md"


@pytest.mark.parametrize(
    ("shown", "printed", "line"),
    [
        ("a 10 b", "x\n a  10 b ", None),
        ("a 100 b\n...\nc", "a 109 b\nz\nc", None),
        ("a 100 b", "a 111 b", "a 100 b"),
        ("a 3 b", "a 4 b", "a 3 b"),
        ("a ... b", "a anything at all b", None),
        ("b\na", "a\nb", "a"),
        ("1,000.5 x", "1,000.4 x", None),
        ("a", "ab", "a"),
    ],
)
def test_what_is_printed_is_compared_with_what_is_shown(shown: str, printed: str, line: str | None) -> None:
    assert missing(shown, printed) == line


class Reader:
    """Somebody who types what the page says; ``printed`` is what came since the last block of output."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.printed = folder, ""
        self._running: list[subprocess.Popen] = []
        tools = folder / ".bin"
        tools.mkdir()
        for name, words in (("quit", "-m quit.cli"), ("python", "")):
            (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            (tools / name).chmod(0o755)
        self._variables = {"HF_HOME": str(folder / ".hf"), "COLUMNS": "120"}
        self._environment = {
            **os.environ,
            **self._variables,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": PYTHONPATH,
        }

    def do(self, block: Block) -> None:
        word, _, rest = block.note.partition(": ")
        if word == "not run":
            return
        if block.kind == "comment":
            verify_all(self.folder / block.text.split()[1])
        elif block.kind == "sh" and word.startswith("in the background"):
            self._start(block.text, rest)
        elif block.kind in ("sh", "python"):
            processes = list(self._runs(block))
            text = "".join(process.out + process.err for process in processes)
            codes = [0] * (len(processes) - 1) + [int(block.note == "exits with 1")]
            assert [process.code for process in processes] == codes, f"line {block.line}: {text}"
            assert "Traceback" not in text and "\x1b" not in text, text
            self.printed += "".join(process.out for process in processes)
        elif block.kind == "text":
            assert (line := missing(block.text, self.printed)) is None, f"line {block.line}: {line}\n{self.printed}"
            self.printed = ""

    def _runs(self, block: Block) -> Iterator[Result]:
        """Run a line of ``quit`` in this process, which saves its start; all else as its language is."""
        for text in block.text.splitlines() if block.kind == "sh" else [block.text]:
            if text.startswith("quit "):
                with contextlib.chdir(self.folder):
                    yield call_quit(*shlex.split(text, comments=True)[1:], code=None, **self._variables)
            else:
                command = ["bash", "-ec"] if block.kind == "sh" else [sys.executable, "-c"]
                yield run_process(*command, text, code=None, cwd=self.folder, env=self._environment)

    def _start(self, command: str, until: str) -> None:
        shutil.copytree(first_server(), self.folder / "workspace" / "reviews" / "server")
        log = self.folder / ".background"
        started = subprocess.Popen(
            ["bash", "-c", f"exec {command.strip().replace('quit review serve', 'quit review serve --port 0')}"],
            cwd=self.folder,
            env=self._environment,
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
        )
        self._running.append(started)
        for _ in range(1800):
            if until in log.read_text() and "next " in log.read_text():
                break
            assert started.poll() is None, log.read_text()
            time.sleep(0.5)
        self.printed += log.read_text()

    def leave(self) -> None:
        for started in self._running:
            started.terminate()
            started.wait(120)


def _without_label_studio() -> str | None:
    """Return why Label Studio cannot be started here; None if it can."""
    try:
        label_studio_programs()
    except MissingDependency as error:
        return str(error)
    return None


def _lines_of(heading: str) -> range:
    """Return the lines of a section of the tutorial."""
    lines = TUTORIAL.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines, 1) if line.startswith(f"## {heading}"))
    after = (number for number, line in enumerate(lines, 1) if number > first and line.startswith("## "))
    return range(first, next(after))


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    shutil.copy(ROOT / "docs" / "tutorial" / "hints.jsonl", tmp_path)
    reason = _without_label_studio()
    left_out = _lines_of("5. ") if reason else range(0)
    try:
        for block in blocks(TUTORIAL):
            if block.line not in left_out:
                reader.do(block)
    finally:
        reader.leave()
    assert (tmp_path / "exports" / "huggingface" / "README.md").is_file()
    if reason:
        pytest.skip(f"all but section 5 was run: {reason}")
