"""Options from a function's parameters, their help from its ``Args``."""

from typing import Annotated

import typer
import typer.main

from quit.commands.declaring import Group


def test_a_parameter_is_an_option_or_argument_and_args_its_help() -> None:
    group = Group("Of a test.")

    @group.command()
    def add(
        path: str,
        *,
        by_whom: str,
        set_: Annotated[int, typer.Option("-s", min=3)] = 4,
        origin: Annotated[str | None, typer.Option("--from")] = None,
        quick: bool = False,
        bounds: bool = True,
    ) -> None:
        """Add something.

        Args:
            path: Where
                it is.
            by_whom: Who.
            set_: How much.
            origin: Whence.
            quick: Sooner.
            bounds: Both.
        """

    group.command("other")(lambda: None)
    command = typer.main.get_command(group).commands["add"]  # type: ignore[attr-defined]
    looks = {each.name: (each.param_type_name, each.required, each.opts, each.secondary_opts, each.help)
             for each in command.params}  # fmt: skip
    assert command.help == "Add something." and looks == {
        "path": ("argument", True, ["path"], [], "Where it is."),
        "by_whom": ("option", True, ["--by-whom"], [], "Who."),
        "set_": ("option", False, ["--set", "-s"], [], "How much."),
        "origin": ("option", False, ["--from"], [], "Whence."),
        "quick": ("option", False, ["--quick"], [], "Sooner."),
        "bounds": ("option", False, ["--bounds"], ["--no-bounds"], "Both."),
    }
