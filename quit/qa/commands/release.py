"""``quit release what-if``: the labels, and the order of a benchmark's systems, under another rule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quit.commands.options import show, working
from quit.commands.release import app
from quit.errors import SettingsError
from quit.qa.commands import options
from quit.render.table import Table
from quit.text.words import split_names


@app.command("what-if")
def what_if(
    place: Path,
    labelers: str = "",
    without: str = "",
    least: Annotated[int | None, typer.Option(min=1)] = None,
    judge: str | None = None,
    benchmark: Path | None = None,
    limit: Annotated[int, typer.Option(min=0)] = 10,
    as_json: options.Json = False,
) -> None:
    """Say which labels flip under another rule, from kept answers and verdicts; no model is asked.

    Without options: leaving out each labeler in turn, and two labelers instead of one. With --benchmark and a rule:
    also the order of systems, now and then. Nothing is changed.

    Example: `quit release what-if workspace/releases/v1 --without minilm-late`

    Args:
        place: Folder of a release, or folder of a finished workspace.
        labelers: Only these labelers: NAME,NAME.
        without: Without these labelers: NAME,NAME.
        least: Labelers that must be right; 1 if not given.
        judge: The judge whose verdicts decide: of `quit release rejudge`, or a second one of the build.
        benchmark: Folder of `quit benchmark run` on this release.
        limit: Questions that are listed.
    """
    from quit.dataset.release import open_release
    from quit.qa.benchmark.whatif import order_pieces, orders
    from quit.release.whatif import opened, pieces, shares_of_people, summary

    with working("what-if", as_json):
        answered = opened(place, judge)
        has_rule = bool(labelers or without or least or judge)
        if benchmark and not has_rule:
            raise SettingsError("--benchmark compares orders under one rule: name it, as --least 2 or --without NAME.")
        if not has_rule:
            effects = answered.effects(answered.standard_rules())
            none = "No labeler can be left out, and no second one asked for. Name a rule: --least or --judge."
            output: list[Table | str] = [summary(effects) if effects else none]
        else:
            rule = answered.rule(split_names(labelers), split_names(without), least or 1)
            effects = answered.effects([rule])
            effects[0]["people"] = shares_of_people(place, effects[0])
            output = pieces(effects[0], limit)
            if benchmark:
                effects[0]["benchmark"] = orders(benchmark, open_release(place), answered, rule)
                output += order_pieces(effects[0]["benchmark"])
    show(effects, as_json, output)
