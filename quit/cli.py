"""The command line assembled, and its end: errors made for people become one line. Heavy imports happen in commands."""

from __future__ import annotations

import gc
import os
import re
import shlex
import sys
import traceback
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from quit.commands.declaring import Group
from quit.common.estimate import span
from quit.common.faults import fault_of_a_file, fault_of_the_machine
from quit.common.logs import without_secrets_in_logs
from quit.common.progress import is_heard, saying
from quit.common.stopping import end_with, exit_code, handling_interrupts
from quit.common.telemetry import without_telemetry
from quit.common.terminal import echo, say
from quit.errors import InputError, QuitError, SettingsError
from quit.text.secrets import without_secrets
from quit.version import __version__

COMMANDS = {
    "From sources to a published dataset": "build:build status:show review release export:export",
    "Look closer": "build:check build:plan status:status report:report report:browse query:query overrides:override",
    "Run and measure QA systems": (
        "qa/corpora:corpus qa/corpora:index qa/corpora:graph qa/benchmark qa/evaluate qa/complexity qa/sunar "
        "qa/bandits qa/papers"
    ),
    "Set up and operate": "qa/settings:settings setup:doctor models:models models:cache workspace serve:serve",
}
"""Panel of ``quit --help`` -> its commands in working order: module and name in :mod:`quit.commands` (``qa/``: in
:mod:`quit.qa.commands`), or a module whose ``app`` is a group of commands."""

_LASTING = (("serve",), ("browse",), ("review", "serve"))
"""Commands that Ctrl-C ends as a matter of course; they see to it themselves."""


_PLACES = {re.split("[/:]", place)[-1]: (panel, place) for panel, text in COMMANDS.items() for place in text.split()}


class _InOrder(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(_PLACES)


@cache
def assembled(command: str = "") -> Group:
    """Return the command line: of one command, where there is one of this name, since all modules take 0.1 s."""
    app = Group(
        "Build inferential question answering datasets: from hints to labelled passages to an exported release.\n\n"
        "Start with `quit build --source starter`, then `quit show jsonl-geo-003`.",
        name="quit",
        cls=_InOrder,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in [command] if command in _PLACES else _PLACES:
        panel, place = _PLACES[name]
        module, _, member_name = place.partition(":")
        wing, _, module = module.rpartition("/")
        member = getattr(
            import_module(".".join(filter(None, ("quit", wing, "commands", module)))), member_name or "app"
        )
        if isinstance(member, typer.Typer):
            app.add_typer(member, name=name, rich_help_panel=panel)
        else:
            app.command(name, rich_help_panel=panel)(member)
    return app


def _version(asked: bool) -> None:
    if asked:
        echo(f"quit {__version__}")
        raise typer.Exit


def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass  # main() reads --debug; it stands here for --help


def _check_order(arguments: list[str]) -> None:
    """Raise ``SettingsError`` for a command's options before its name."""
    words = [word for word in arguments if word not in ("--debug", "--version", "--help", "-h")]
    before = 0
    while words[before : before + 1] and words[before].startswith("-"):
        before += 2
    if before and words[before : before + 1] and words[before] in _PLACES:
        command = shlex.join([words[before], *words[:before], *words[before + 1 :]])
        raise SettingsError(f"Options come after the command: quit {command}")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors made for people become one line on stderr and an exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started this
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    gc.set_threshold(50_000, 20, 50)  # imports make objects that stay: the search for garbage is a sixth of their time
    without_telemetry()
    without_secrets_in_logs()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    words = tuple(word for word in arguments if not word.startswith("-"))
    lasting = any(words[: len(name)] == name for name in _LASTING)
    try:
        with nullcontext() if lasting else handling_interrupts(quiet_after=not debug):
            try:
                _check_order(arguments)
                if bad := [word for word in arguments if word != word.encode(errors="replace").decode()]:
                    raise InputError(f"{bad[0]!a} is not UTF-8: rename the file or folder.")
                command, is_quiet = arguments[:1], lasting or {"-q", "--quiet"} & {*arguments}
                with saying(lambda seconds: "" if is_quiet or is_heard() else f"{''.join(command)}: {span(seconds)}"):
                    assembled(*command)(arguments)
            finally:
                sys.stdout.flush()
    except KeyboardInterrupt:
        raise SystemExit(exit_code()) from None
    except Exception as error:
        if isinstance(error, OSError):
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (what it still holds cannot be written)
        if isinstance(error, BrokenPipeError):  # who reads the output has read enough
            raise SystemExit(1) from None
        fault = error if isinstance(error, QuitError) else fault_of_the_machine(error) or fault_of_a_file(error)
        if fault and not debug:
            say(f"quit: {fault}", err=True)
            raise SystemExit(fault.exit_code) from None
        echo(without_secrets(traceback.format_exc()), err=True, nl=False)
        raise SystemExit(1) from None


class _WithoutPandas:
    """For commands that need no pandas: pyarrow imports it at the first array, which takes 0.3 s."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def run() -> None:
    """Run the command line and end the process."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would look through all installed packages
    if sys.argv[1:2] in (["status"], ["show"], ["query"]):
        sys.meta_path.insert(0, _WithoutPandas())
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            end_with(end.code or 0)
        raise
