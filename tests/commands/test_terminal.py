"""What a terminal, a pipe and a script get to see."""

import json
import os
import pty
import re
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from quit import errors
from quit.cli import main
from quit.common.terminal import wrapped
from quit.engine.workspace import Workspace
from quit.errors import SettingsError
from quit.render import terminal
from quit.render.table import Table
from tests.commands.conftest import commands
from tests.paths import ROOT
from tests.running import QUIT, call_quit, run_process

ESCAPE = "\x1b"


def _on_a_terminal(*arguments: str, **variables: str) -> tuple[int, str, str]:
    """Run a command with stdout in a pipe and stderr on a terminal: code, stdout, what the terminal shows."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def read() -> None:
        with suppress(OSError):  # the other end is closed
            while block := os.read(ours, 65536):
                shown.extend(block)

    reader = threading.Thread(target=read)
    reader.start()
    variables = {"NO_COLOR": "", "TERM": "xterm-256color", **variables}
    terminal.console.cache_clear()  # it looks at the terminal once
    with os.fdopen(theirs, "w") as stderr:
        result = call_quit(*arguments, code=None, stderr=stderr, **variables)
    terminal.console.cache_clear()
    reader.join()
    os.close(ours)
    return result.code, result.out, shown.decode(errors="replace")


def test_every_command_has_help_with_an_example_that_names_it_and_says_what_its_options_are() -> None:
    for name, command in commands().items():
        examples = re.findall(r"`(quit [^`]+)`", command.help or "")
        assert any(example.startswith(f"quit {name}") for example in examples), name
        for parameter in command.params:
            assert parameter.name == "help" or getattr(parameter, "help", ""), f"{name} {parameter.name}"


@pytest.mark.parametrize("name", commands())
def test_each_value_that_is_given_is_read(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """None is empty, and none is replaced by a later one."""
    before: list[str] = []  # arguments before this one
    for parameter in (each for each in commands()[name].params if not getattr(each, "is_flag", False)):
        if parameter.param_type_name == "argument":
            cases = {f"{parameter.name.upper()} is empty": [*before, ""]}
            before.append("a")
        else:
            option = parameter.opts[0]
            cases = {f"{option} is empty": [option, ""]}
            if not parameter.multiple:
                cases[f"{option} is given 2 times and takes one value"] = [option, "a", option, "b"]
        for message, words in cases.items():
            with pytest.raises(SystemExit) as end:
                main([*name.split(), *words])
            assert (end.value.code, message in capsys.readouterr().err) == (SettingsError.exit_code, True)


@pytest.mark.parametrize("words", ["status -w {}", "build -s {}", "build -s starter --profile {}", "release show {}"])
def test_a_name_that_the_system_refuses_is_one_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words.format("x" * 300).split())
    written = capsys.readouterr().err
    assert end.value.code and "File name too long" in written and "Traceback" not in written


@pytest.mark.parametrize("words", ["cache stats", "check ~nosuchuser/q.jsonl"])
def test_a_home_folder_that_is_not_known_is_one_line(words: str) -> None:
    result = call_quit(*words.split(), code=errors.WorkspaceError.exit_code, QUIT_CACHE="~nosuchuser/x")
    assert "names no such home folder" in result.err and "Traceback" not in result.err


def test_the_page_has_the_exit_codes_of_the_code() -> None:
    page = (ROOT / "docs" / "howto" / "terminal.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d, ]+) \|", page, flags=re.M)
    listed = {int(code) for row in rows for code in row.split(", ")}
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    ours = {kind.exit_code for kind in kinds if issubclass(kind, errors.QuitError)}
    assert ours <= listed and {0, 2, 129, 130, 143} <= listed


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("It is wrong, in a-file-with-a-long-name.jsonl", ["It is wrong, in", "a-file-with-a-long-name.jsonl"]),
        ("Nothing. Run: quit build -w a/b --source c", ["Nothing. Run:", "quit build -w a/b --source c"]),
        ("short\n  and indented words", ["short", "  and indented", "words"]),
    ],
)
def test_sentences_break_at_spaces_and_commands_stay_whole(text: str, lines: list[str]) -> None:
    assert wrapped(text, 15).split("\n") == lines


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("quit rel", {"release"}),
        ("quit export --format beir,hu", {"beir,huggingface"}),
        ("quit build --profile e", {"embedded"}),
        ("quit build --source trivia", {"triviahg:"}),
        ("quit build --source quit/starter/q", {"quit/starter/questions.jsonl"}),
        ("quit check quit/start", {"quit/starter/"}),
        ("quit build --set split.met", {"split.method="}),
    ],
)
def test_the_shell_completes(words: str, offered: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["quit"])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # else the program is called python -m pytest
    place = str(len(words.split()) - 1)
    result = call_quit(_QUIT_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place)
    assert set(result.out.split()) == offered, result.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    ["status -w W", "status -w W --json", "show -w W geo-003", "settings", "plan -w W", "doctor -w W", "check S",
     "report -w W --out O/r.html", "export -w W --format trec --out O/x", "release check -w W", "build --help"],
)  # fmt: skip
def test_piped_output_has_no_escape_codes(words: str, built: Path, small_source: Path, tmp_path: Path) -> None:
    paths = {"W": str(built), "S": str(small_source)}
    arguments = [paths.get(word, word.replace("O/", f"{tmp_path}/")) for word in words.split()]
    code = 1 if words.startswith("check") else 0  # it finds the broken lines of the source
    result = call_quit(*arguments, code=code, NO_COLOR="", TERM="xterm-256color", COLUMNS="150")
    assert result.out.strip() and ESCAPE not in result.out and ESCAPE not in result.err
    if "--json" in words:
        result.json()


@pytest.mark.slow
def test_a_terminal_sees_how_far_it_is_and_stdout_stays_clean(built: Path, tmp_path: Path) -> None:
    code, out, err = _on_a_terminal("report", "-w", str(built), "--json")
    assert code == 0 and json.loads(out)["counts"]
    assert "figures" in err and "left" in err and ESCAPE in err
    frozen = ("release", "create", "-w", str(built), "--name", "t", "--out", str(tmp_path / "t"))
    code, out, err = _on_a_terminal(*frozen)
    assert code == 0 and ESCAPE not in out
    assert all(words in err for words in ("quality gates", "tables")), err
    code, out, err = _on_a_terminal("export", "-w", str(built), "-f", "beir", "--out", str(tmp_path / "x"))
    assert code == 0 and "beir: passages" in err and ESCAPE not in out


@pytest.mark.slow
def test_no_color_and_quiet_are_heeded(built: Path, tmp_path: Path) -> None:
    workspace = shutil.copytree(built, tmp_path / "W")
    code, _, err = _on_a_terminal("report", "-w", str(workspace), "--json", NO_COLOR="1")
    assert code == 0 and not re.search(r"\x1b\[(?:3|4|9)\d[;\dm]", err)
    for arguments in (
        ("report", "--out", str(tmp_path / "r.html")),
        ("export", "-f", "trec", "--out", str(tmp_path / "x")),
        ("release", "create", "--name", "q", "--out", str(tmp_path / "q")),
        ("review", "apply"),
        ("build",),
    ):
        code, out, err = _on_a_terminal(*arguments, "-w", str(workspace), "--quiet")
        assert (code, out, err) == (0, "", ""), arguments


def test_a_name_between_colons_is_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.line("probe:one: done")
    terminal.show([Table("Readers", ("read:one:",), [(":mali:",)]), "read:one: 3 replies"])
    printed = capsys.readouterr().out
    assert printed.count(":one:") == 3 and ":mali:" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "code", "message"),
    [
        ("{quit} settings > /dev/full", 7, "quit: The output cannot be written (No space left on device)"),
        ("{quit} settings --json > /dev/full", 7, "quit: The output cannot be written (No space left on device)"),
        ("{quit} --version >&-", 0, ""),
        ("{quit} settings >&-", 0, ""),
        ("{quit} settings --json 2>&- > /dev/null", 0, ""),
        ("set -o pipefail; {quit} settings | true", 1, ""),
    ],
)
def test_an_output_that_takes_no_more_is_one_line_at_most(shell: str, code: int, message: str) -> None:
    if "/dev/full" in shell and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    result = run_process("bash", "-c", shell.format(quit=" ".join(QUIT)), code=code)
    assert result.err.startswith(message) and result.err.count("\n") == bool(message)


def test_csv_is_raw_in_a_pipe_and_visible_on_a_terminal(tmp_path, monkeypatch, capsys) -> None:
    from quit.commands.query import query

    Workspace.create(tmp_path / "W")
    for is_terminal, expected in ((False, "\x1b[2J\u202e"), (True, r"\u001b[2J\u202e")):
        monkeypatch.setattr(sys.stdout, "isatty", lambda shown=is_terminal: shown, raising=False)
        query("SELECT chr(27) || '[2J' || chr(8238) AS reply", tmp_path / "W", csv=True)
        assert expected in capsys.readouterr().out
    query("SELECT ['a'] AS answers", tmp_path / "W", csv=True)
    assert capsys.readouterr().out.splitlines()[1] == '"[""a""]"'
    with pytest.raises(SettingsError, match="use --json"):
        query("SELECT INTERVAL 1 DAY AS duration", tmp_path / "W", csv=True)


@pytest.mark.parametrize("option", ["--corpus", "--questions-from", "--top", "--qrels"])
def test_an_option_of_runs_needs_a_run(option: str, own_folder: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["build", "-s", "starter", option, "5"])
    assert (end.value.code, "go with --source run:FILE" in capsys.readouterr().err) == (SettingsError.exit_code, True)


@pytest.mark.parametrize(
    "more", [[], ["--corpus", "c.jsonl"], ["--corpus", "c.jsonl", "--questions-from", "q", "-s", "x"]]
)
def test_a_run_is_the_only_source_and_needs_its_texts(more: list[str], own_folder: None, capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main(["build", "-s", "run:a.run", *more])
    assert (end.value.code, "A run is the only source" in capsys.readouterr().err) == (SettingsError.exit_code, True)
