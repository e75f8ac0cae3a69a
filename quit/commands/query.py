"""``quit query``: SQL over the current tables."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from quit.commands import options
from quit.commands.options import json_text, print_json
from quit.text.invisible import visible


def query(
    sql: str,
    workspace: options.WorkspaceOrRelease = Path("workspace"),
    as_json: options.Json = False,
    csv: bool = False,
) -> None:
    """Run SQL over the current tables of a workspace or a release. DuckDB's SQL can read and write any file that you
    can.

    The view `labelled_passages` has each passage with question, text, label, valid answers and split.

    Example: `quit query "SELECT label, count(*) FROM labels GROUP BY label"`

    Args:
        sql: A query in DuckDB's SQL; the tables are views of their names.
        csv: Print CSV; lists are JSON.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    from quit.errors import SettingsError
    from quit.library.tables import open_tables

    if as_json and csv:
        raise SettingsError("Name one of --json and --csv.")
    rows = open_tables(workspace).sql(sql)
    if as_json:
        print_json(rows.to_pylist())
    elif csv:
        for position, field in enumerate(rows.schema):
            if pa.types.is_nested(field.type):
                values = rows[position].to_pylist()
                texts = [None if each is None else json_text(each) for each in values]
                rows = rows.set_column(position, field.name, pa.array(texts, pa.string()))
        text = io.BytesIO()
        try:
            arrow_csv.write_csv(rows, text)
        except pa.ArrowException as error:
            raise SettingsError(f"CSV cannot hold such a column ({error}): use --json, or cast it to text.") from None
        rows_text = text.getvalue().decode()
        sys.stdout.write(visible(rows_text) if sys.stdout.isatty() else rows_text)
    else:
        from quit.commands.console import print_rows

        print_rows(rows)
