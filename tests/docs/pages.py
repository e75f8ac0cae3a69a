"""A page's fenced blocks in order, run as a reader would, and how what they print is compared with what it shows.

A comment above a block says what is special about it: ``not run``, ``not run: TEXT`` (lines that hold it), ``exits with
1``, ``in the background until: TEXT``.
A comment of its own, ``annotate workspace``, stands for what a person does. A ``text`` block is what the
commands before it print: its lines have to appear in order; ``...`` stands for anything, white space does not count,
and a number may be off by a tenth (models on another processor round otherwise) unless it is below ten.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from quit.engine.workspace import Workspace
from quit.settings import Settings
from quit.text.answers import answer_key
from tests.label_studio import annotate, first_server, page_result
from tests.paths import PYTHONPATH
from tests.running import Result, call_quit, run_process, until

_PART = re.compile(r"^<!-- (?P<note>(?!Made by ).*?) -->$|^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
TOLERANCE = 0.1
ALSO_RIGHT = {("jsonl-istanbul", "constantinople")}
"""What the judge has wrong in the tutorial: a question's answer."""


@dataclass(frozen=True)
class Block:
    """A fenced block (``kind``: its language) or a comment (``kind``: ``comment``), with the comment above it, and its
    line."""

    kind: str
    text: str
    note: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return a page's blocks and the comments that stand for actions."""
    text = page.read_text(encoding="utf-8")
    parts: list[Block] = []
    note, end = "", 0
    for part in _PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if note and text[end : part.start()].strip():
            raise ValueError(f"{page.name}: the comment {note!r} stands above no block")
        if part["note"] is None:
            code = part["text"].replace("\\\n", " ") if part["kind"] == "sh" else part["text"]
            parts.append(Block(part["kind"], code, note, line))
            note = ""
        elif part["note"].startswith("annotate "):
            parts.append(Block("comment", part["note"], "", line))
        else:
            note, end = part["note"], part.end()
    return parts


def missing(shown: str, printed: str) -> str | None:
    """Return the first line of ``shown`` that does not appear, after those before it, in ``printed``; none if all
    do."""
    lines = [_flat(line) for line in printed.splitlines()]
    at = 0
    for line in (_flat(line) for line in shown.splitlines()):
        if line in ("", "..."):
            continue
        place_of_line = next((place for place in range(at, len(lines)) if _alike(line, lines[place])), None)
        if place_of_line is None:
            return line
        at = place_of_line + 1
    return None


def _flat(line: str) -> str:
    return " ".join(line.split())


def _alike(shown: str, printed: str) -> bool:
    parts = re.split(r"(\.\.\.)|(" + _NUMBER.pattern + ")", shown)
    pattern = "".join(
        ".*" if part == "..." else f"({_NUMBER.pattern})" if _NUMBER.fullmatch(part) else re.escape(part)
        for part in parts
        if part
    )
    match = re.fullmatch(pattern, printed)
    wanted = [part for part in parts if part and _NUMBER.fullmatch(part)]
    return bool(match) and all(_near(a, b) for a, b in zip(wanted, match.groups(), strict=True))


def _near(shown: str, printed: str) -> bool:
    one, other = (float(text.replace(",", "")) for text in (shown, printed))
    return abs(one - other) <= (TOLERANCE * one if one >= 10 else 0)


def verify_all(workspace: Path) -> None:
    """Submit every task of the workspace's local server as the judge has it, with ``ALSO_RIGHT`` ticked."""
    from quit.annotation.client import connect  # its SDK takes a second to import

    opened = Workspace.open(workspace)
    right = {(row["question_id"], row["answer_key"]) for row in opened.read("verdicts").to_pylist() if row["correct"]}
    for row in opened.read("questions").to_pylist():
        right |= {(row["question_id"], answer_key(answer)) for answer in row["answers"]}
    server = connect(opened.path, Settings().review)
    [project] = server.ask(lambda studio: list(studio.projects.list()))
    for task in list(server.tasks(project.id, ["id", "meta", "data"])):
        question = task.meta["key"]
        keys = [row["key"] for row in task.data["answers"] if (question, row["key"]) in right | ALSO_RIGHT]
        annotate(server, task.id, page_result(question, *keys, shown=task.meta["version"]))


class Reader:
    """Somebody who does in ``folder`` what a page says; ``printed`` is what came since the last block of output."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.printed = folder, ""
        self._background: list[subprocess.Popen] = []
        tools = folder / ".bin"
        tools.mkdir()
        for name, program in (("quit", "-m quit"), ("python", "")):
            (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {program} "$@"\n')
            (tools / name).chmod(0o755)
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        self._variables = {"HF_HOME": str(folder / ".hf"), "COLUMNS": "120", "PATH": path, "PYTHONPATH": PYTHONPATH}

    def read(self, page: Path, kinds: Collection[str] = ("sh", "python")) -> int:
        """Do all that a page says, except blocks of other languages; return how many commands and programs ran."""
        try:
            return sum(self.do(block, kinds) for block in blocks(page))
        finally:
            for process in self._background:
                process.terminate()
                process.wait(120)

    def do(self, block: Block, kinds: Collection[str] = ("sh", "python")) -> int:
        """Do what one block says."""
        word, _, rest = block.note.partition(": ")
        if block.kind == "comment":
            verify_all(self.folder / block.text.split()[1])
        elif block.kind == "text":
            assert (line := missing(block.text, self.printed)) is None, f"line {block.line}: {line}\n{self.printed}"
            self.printed = ""
        elif word == "in the background until":
            self._start(block.text, rest)
        elif block.kind in kinds and block.note != "not run":
            commands = [line for line in block.text.splitlines() if line.strip()[:1] not in ("", "#")]
            lines = commands if block.kind == "sh" else [block.text]
            lines = [line for line in lines if word != "not run" or rest not in line]
            for line in lines:
                code = int(word.removeprefix("exits with ")) if word.startswith("exits") and line == lines[-1] else 0
                result = self._run(line, block.kind, code)
                text = result.out + result.err
                assert "Traceback" not in text and "\x1b" not in text, text
                self.printed += result.out
            return len(lines)
        return 0

    def _run(self, line: str, kind: str, code: int) -> Result:
        """Run ``quit`` and Python in this process, which saves their start; all else in a shell."""
        with contextlib.chdir(self.folder):
            if kind == "python":
                out = io.StringIO()
                with contextlib.redirect_stdout(out), patch("datasets.config.HF_DATASETS_CACHE", self.folder / ".hf"):
                    exec(compile(line, "the page", "exec"), {})
                assert out.getvalue() or "print(" not in line, line
                return Result(0, out.getvalue(), "")
            program, *words = shlex.split(line.partition(" > ")[0], comments=True)
            if Path(program).name != "quit":
                return run_process("bash", "-ec", line, cwd=self.folder, **self._variables)
            if words[0] == "export" and "--overwrite" not in words:
                words.append("--overwrite")  # a page's exports may be alternatives
            result = call_quit(*words, code=code, **self._variables)
            assert result.out.strip() or {"-q", "--quiet"} & {*words}, f"{line} prints nothing"
            return result

    def _start(self, command: str, ready: str) -> None:
        shutil.copytree(first_server(), self.folder / "workspace" / "reviews" / "server")
        log = self.folder / ".background"
        line = f"exec {command.strip().replace('quit review serve', 'quit review serve --port 0')}"
        how: dict[str, Any] = {"cwd": self.folder, "env": {**os.environ, **self._variables}}
        with log.open("w") as output:
            process = subprocess.Popen(["bash", "-c", line], stdout=output, stderr=subprocess.STDOUT, **how)
        self._background.append(process)
        until(lambda: ready in log.read_text() and "next " in log.read_text(), process, seconds=900, every=0.5)
        self.printed += log.read_text()
