"""What a terminal, a pipe and a script get to see."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from quit import errors
from quit.cli import app
from quit.progress import advance, listening
from tests.conftest import ROOT

ESCAPE = "\x1b"


def _commands() -> dict[str, typer.core.TyperCommand]:
    found = {}

    def walk(command, path: tuple[str, ...]) -> None:
        for name, child in getattr(command, "commands", {}).items():
            walk(child, (*path, name))
        if not getattr(command, "commands", {}):
            found[" ".join(path)] = command

    walk(typer.main.get_command(app), ())
    return found


def _run(home: Path, *arguments: str, terminal: bool = False, **variables: str) -> tuple[int, str, str]:
    """Run a command with stdout in a pipe and stderr in a pipe or on a terminal: code, stdout, stderr."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    environment = {**kept, "PREFECT_HOME": str(home), "TERM": "xterm-256color", "COLUMNS": "150", **variables}
    command = [sys.executable, "-m", "quit.cli", *arguments]
    if not terminal:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=600)
        return done.returncode, done.stdout, done.stderr
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment, cwd=ROOT)
    os.close(theirs)
    shown = bytearray()
    while True:
        try:
            block = os.read(ours, 65536)
        except OSError:
            break
        if not block:
            break
        shown += block
    out = process.stdout.read().decode()
    os.close(ours)
    return process.wait(60), out, shown.decode(errors="replace")


def test_every_command_has_help_with_an_example_that_names_it() -> None:
    for name, command in _commands().items():
        examples = re.findall(r"`(quit [^`]+)`", command.help or "")
        assert any(one.startswith(f"quit {name}") for one in examples), name


def test_every_option_and_argument_says_what_it_is() -> None:
    for name, command in _commands().items():
        for parameter in command.params:
            assert parameter.name == "help" or getattr(parameter, "help", ""), f"{name} {parameter.name}"


def test_the_page_has_the_exit_codes_of_the_code() -> None:
    page = (ROOT / "docs" / "howto" / "terminal.md").read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.M)}
    ours = {
        value.exit_code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.QuitError)
    }
    assert ours <= listed and {0, 2, 130} <= listed


def test_progress_is_told_only_to_who_listens() -> None:
    told = []
    advance("nothing", 1, 2)
    with listening(lambda *words: told.append(words)):
        advance("something", 3, 10)
    advance("nothing", 1, 2)
    assert told == [("something", 3, 10)]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("quit rel", {"release"}),
        ("quit export --format beir,h", {"beir,huggingface"}),
        ("quit build --profile e", {"embedded"}),
        ("quit build --source trivia", {"triviahg:"}),
        ("quit build --set split.met", {"split.method="}),
    ],
)
def test_the_shell_completes(words: str, offered: set[str]) -> None:
    asked = {"_QUIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    code = "import sys; sys.argv[0] = 'quit'; from quit.cli import main; main([])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **asked}, cwd=ROOT
    )
    assert set(done.stdout.split()) == offered, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "status -w W", "status -w W --left-out", "status -w W --json", "show -w W geo-003", "show -w W geo-003 --json",
        "settings", "plan -w W", "plan -w W --json", "doctor -w W", "check S", "check S --json", "report -w W --out O/r.html",
        "report -w W --json", "export -w W --format trec --out O/x", "release check -w W", "release list -w W",
        "review status -w W --json", "override list -w W", "benchmark list", "sunar variants --json", "--help", "build --help",
    ],
)  # fmt: skip
def test_piped_output_has_no_escape_codes(
    words: str, built: Path, small_source: Path, tmp_path: Path, prefect_home: Path
) -> None:
    stand_for = {"W": str(built), "S": str(small_source)}
    arguments = [stand_for.get(word, word.replace("O/", f"{tmp_path}/")) for word in words.split()]
    code, out, err = _run(prefect_home, *arguments)
    assert code in (0, 1) and out.strip(), err
    assert ESCAPE not in out and ESCAPE not in err and "Traceback" not in err
    if "--json" in words:
        json.loads(out)


@pytest.mark.slow
def test_a_terminal_sees_how_far_it_is_and_stdout_stays_clean(built: Path, tmp_path: Path, prefect_home: Path) -> None:
    code, out, err = _run(prefect_home, "report", "-w", str(built), "--json", terminal=True)
    assert code == 0 and json.loads(out)["counts"]
    assert "figures" in err and "left" in err and ESCAPE in err
    code, out, err = _run(
        prefect_home, "release", "create", "-w", str(built), "--name", "t", "--out", str(tmp_path / "t"), terminal=True
    )
    assert code == 0 and ESCAPE not in out
    assert all(words in err for words in ("quality gates", "tables", "MiniLM reads texts")), err
    code, out, err = _run(
        prefect_home, "export", "-w", str(built), "-f", "beir", "--out", str(tmp_path / "x"), terminal=True
    )
    assert code == 0 and "beir: passages" in err and ESCAPE not in out


@pytest.mark.slow
def test_no_color_and_quiet_are_heeded(built: Path, tmp_path: Path, prefect_home: Path) -> None:
    code, _, err = _run(prefect_home, "report", "-w", str(built), "--json", terminal=True, NO_COLOR="1")
    assert code == 0 and not re.search(r"\x1b\[(?:3|4|9)\d[;\dm]", err)
    for arguments in (
        ("report", "--out", str(tmp_path / "r.html")),
        ("export", "-f", "trec", "--out", str(tmp_path / "x")),
        ("release", "create", "--name", "q", "--out", str(tmp_path / "q")),
        ("review", "apply"),
        ("build",),
    ):
        code, out, err = _run(prefect_home, *arguments, "-w", str(built), "--quiet", terminal=True)
        assert (code, out, err) == (0, "", ""), arguments
