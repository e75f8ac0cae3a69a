"""``quit status``: how far a workspace is, and what was left out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from quit.commands import options
from quit.commands.options import open_workspace, print_json
from quit.commands.options import show as print_pieces
from quit.errors import InputError


def status(
    workspace: options.Workspace = Path("workspace"), left_out: bool = False, as_json: options.Json = False
) -> None:
    """Say how far each stage is, what was left out and why.

    Examples: `quit status`, `quit status --left-out`

    Args:
        left_out: List every record, hint and question that was left out, and why.
    """
    from quit.commands.console import print_left_out, print_status
    from quit.engine.planning import last_build
    from quit.status.losses import left_out as rows_left_out
    from quit.status.summary import as_dict

    opened = open_workspace(workspace)
    if left_out:
        rows = rows_left_out(opened)
        if as_json:
            print_json(rows)
        else:
            print_left_out(rows, opened)
        return

    pipeline = None
    with suppress(InputError):  # not built yet, or its sources cannot be read any more
        pipeline = last_build(opened)
    if as_json:
        print_json(as_dict(opened, pipeline))
    else:
        print_status(opened, pipeline)


def show(
    question_id: str,
    workspace: options.WorkspaceOrRelease = Path("workspace"),
    as_json: options.Json = False,
    passages: int = 12,
    why: bool = False,
) -> None:
    """Show everything about one question: hints, leaks, type, difficulty, probe, split, passages, answers, verdicts,
    labels.

    A hint's digit is its number in the passages, by convergence; its id ends in its place in the source. Both count
    from 0, lines and records of a source from 1.

    Examples: `quit show jsonl-geo-003 --passages 20`, `quit show jsonl-geo-003 --why`

    Args:
        question_id: Id of a question; the source's id works if it is unique.
        passages: Passages to print; 0 for all.
        why: Say which hints suffice, add and harm, and whether their order matters.
    """
    from quit.commands.question import print_question
    from quit.library.tables import open_tables
    from quit.status import why as reasons

    life = open_tables(workspace).question(question_id)
    if why:
        facts = reasons.why(life)
        print_pieces(facts, as_json, reasons.why_pieces(facts))
    elif as_json:
        print_json(life)
    else:
        print_question(life, passages)
