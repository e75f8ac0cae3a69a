"""``quit papers``: the tables and figures of the papers, and one beside our results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quit.commands.declaring import Group
from quit.commands.options import show
from quit.qa.commands import options
from quit.render.table import Table

app = Group("See the papers' tables beside your results.")

Results = Annotated[list[str] | None, typer.Argument(metavar="[PART=]RESULTS")]


@app.command("list")
def list_(as_json: options.Json = False) -> None:
    """List the tables and figures of the papers: what of each can be run here, and what not, and why.

    Example: `quit papers list`
    """
    from quit.qa.papers.items import items

    rows = [(item.id, item.title, item.about) for item in items()]
    show([item.facts for item in items()], as_json, [Table("", ("id", "title", "here"), rows, text=(1, 2))])


@app.command()
def table(item_id: str, results: Results = None, as_json: options.Json = False) -> None:
    """Print a table as published, with our values and their differences from it; without results, how to make ours.

    Rows that have none are named, with the reason.

    Examples: `quit papers table quit-5 results`, `quit papers table sunar-1 MQA=sunar WQA=sunar-2wiki`

    Args:
        item_id: Id of a table or figure: quit papers list.
        results: Folders of runs (or of a release, or the file of `quit index evaluate --json`). PART: what it is of,
            where a table needs several; of a table with two such axes both: "MQA gpt-4o-mini=DIR".
    """
    from quit.qa.papers import comparison
    from quit.qa.papers.items import item

    paper_table = item(item_id)
    folders = [_placed(text) for text in results or ()]
    rows = comparison.compare(paper_table, folders)
    commands = [] if folders else [each.command for each in paper_table.runs]
    facts = {**paper_table.facts, "rows": comparison.row_facts(paper_table, rows)}
    show(facts, as_json, [*comparison.pieces(paper_table, rows), *commands])


def _placed(text: str) -> tuple[str, Path]:
    """Return the part and the path of ``PART=DIR`` or ``DIR``."""
    part, equals, path = text.partition("=")
    return (part, Path(path)) if equals and not Path(text).exists() else ("", Path(text))
