"""Commands as functions: a parameter is an option or argument, and what ``Args`` says of it is its help.

::

    def check(source: list[str], profile: options.NamedProfile = "embedded", *, reason: str, limit: int = 50) -> None:

A parameter without a default is an argument, after ``*`` a required option. How else it looks (a short name, the lowest
value) is ``Annotated``: ``Annotated[Path, typer.Option("-o")]``.
"""

from __future__ import annotations

import inspect
import shlex
from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from quit.errors import SettingsError
from quit.text.words import documented

Function = TypeVar("Function", bound=Callable[..., Any])


class Command(TyperCommand):
    """A command that reads each value it is given: typer takes the last of two, and an empty one for none. It says so
    where its sources are named as another command takes them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raise ``SettingsError`` for an empty value, for an option with one value that is given twice, and for sources
        with an option where they are arguments, or without the option."""
        kinds = {parameter.name: parameter.param_type_name for parameter in self.params}
        if kinds.get("source") == "argument" and {"--source", "-s"} & {word.partition("=")[0] for word in args}:
            raise SettingsError(f"Here sources need no --source: quit {self.name} mine.jsonl")
        ctx.allow_extra_args = kinds.get("source") == "option"
        values, _, order = self.make_parser(ctx).parse_args(args=[*args])
        for parameter, times in Counter(order).items():
            name = parameter.opts[0] if parameter.param_type_name == "option" else str(parameter.name).upper()
            value = values.get(parameter.name)
            if value == "" or (isinstance(value, list | tuple) and "" in value):
                leave = "" if parameter.required else ", or leave it out"
                raise SettingsError(f"{name} is empty: give it a value{leave}.")
            if times > 1 and value not in (True, False) and parameter.nargs == 1 and not parameter.multiple:
                raise SettingsError(
                    f"{name} is given {times} times and takes one value. "
                    f"{ctx.command_path} --help says whether commas separate several."
                )
        if words := super().parse_args(ctx, args):
            meant = " ".join(f"--source {shlex.quote(word)}" for word in words)
            raise SettingsError(f"Unexpected: {' '.join(words)}. Did you mean {meant}?")
        return words


class Group(typer.Typer):
    """Commands under a common name."""

    def __init__(self, help: str, **options: Any) -> None:
        super().__init__(help=help, no_args_is_help=True, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Function], Function]:
        """Add a function as a command."""
        register = super().command

        def add(function: Function) -> Function:
            text, helps = documented(function)
            annotations = function.__annotations__
            for parameter in inspect.signature(function, eval_str=True).parameters.values():
                annotations[parameter.name] = _look(parameter, helps.get(parameter.name))
            return register(name, help=text, **{"cls": Command, **options})(function)

        return add


def _look(parameter: inspect.Parameter, help: str | None) -> Any:
    """Return a parameter's type with what typer shows of it."""
    hint = parameter.annotation
    kind, *looks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    required = parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY
    look = copy(looks[0]) if looks else typer.Argument() if required else typer.Option()
    look.help = look.help or help
    if isinstance(look, OptionInfo) and parameter.default is not True:  # that one has a --no-... too
        names = [str(name) for name in (look.default, *(look.param_decls or ())) if name is not ...]
        if not any(name.startswith("--") for name in names):
            names.insert(0, f"--{parameter.name.rstrip('_').replace('_', '-')}")
        look.default, look.param_decls = ..., names
    return Annotated[kind, look]
