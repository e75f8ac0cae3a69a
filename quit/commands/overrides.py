"""``quit override``: what a person decides against an instrument, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quit.commands import options
from quit.commands.declaring import Group
from quit.commands.options import open_workspace, show
from quit.common.rows import Row
from quit.text.words import shell_word

override = Group("Overrule findings of the leakage filter; the next build applies it.")

ByOption = Annotated[str, typer.Option(help="Who decides.")]
ReasonOption = Annotated[str, typer.Option(help="Why, in words.")]


@override.command("leak")
def override_leak(
    *,
    hint: str,
    decision: str,
    by: ByOption,
    reason: ReasonOption,
    workspace: options.Workspace = Path("workspace"),
    as_json: options.Json = False,
) -> None:
    """Decide whether a hint gives an answer away, over the leakage filter.

    The next `quit build` applies it.

    Example: `quit override leak --hint jsonl-geo-003-h02 --decision no_leak --by ada --reason "A river's name."`

    Args:
        hint: Id of the hint.
        decision: `leak` or `no_leak`.
    """
    from quit.review.overrides import Decision, add

    rows = add(open_workspace(workspace), [Decision(hint, decision, by, reason)])
    _print(rows, as_json, "That is in force already: nothing was written.", workspace)


@override.command("import")
def override_import(
    file: Path, workspace: options.Workspace = Path("workspace"), as_json: options.Json = False
) -> None:
    """Import overrides from a file; if a line is wrong, none. Decisions that are in force already are skipped.

    Example: `quit override import decisions.jsonl`

    Args:
        file: JSONL of {hint_id, decision, by, reason, kind?}.
    """
    from quit.review.overrides import add, read_decisions

    rows = add(open_workspace(workspace), read_decisions(file))
    _print(rows, as_json, "All of these are in force already: nothing was written.", workspace)


@override.command("list")
def override_list(workspace: options.Workspace = Path("workspace"), as_json: options.Json = False) -> None:
    """List all overrides, oldest first, those replaced or withdrawn too.

    Example: `quit override list`
    """
    from quit.commands.question import override_line
    from quit.review.overrides import listed

    rows = listed(open_workspace(workspace))
    show(rows, as_json, [override_line(row) for row in rows] or ["There are no overrides."])


@override.command("withdraw")
def override_withdraw(
    override_id: str,
    by: ByOption,
    reason: ReasonOption = "withdrawn",
    workspace: options.Workspace = Path("workspace"),
    as_json: options.Json = False,
) -> None:
    """End an override (by one more row): the instrument decides again, and its old tables are current again.

    Example: `quit override withdraw ov-3f1c09a2b4 --by ada`

    Args:
        override_id: Id of an override that is in force.
    """
    from quit.review.overrides import withdraw

    _print([withdraw(open_workspace(workspace), override_id, by, reason)], as_json, "", workspace)


def _print(rows: list[Row], as_json: bool, nothing: str, workspace: Path) -> None:
    from quit.commands.question import describe_override

    lines = [f"{row['override_id']}: {describe_override(row)}" for row in rows]
    show(rows, as_json, [*lines, f"Applied by the next: quit build -w {shell_word(workspace)}"] if rows else [nothing])
