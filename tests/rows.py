"""Tables by hand: a test writes the columns that it is about, all other required ones have plain values. JSON Lines.
Tables of cases beside a test."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit import contracts
from quit.stages.labelling.answers import Answers, number_answers

_PLAIN: dict[str, Any] = {
    **{"source": "jsonl", "file": "f", "coarse": "LOC:LOCATION", "fine": "city:City", "judge": "rules"},
    **{"difficulty_bin": "easy", "stage": "update", "kind": "question"},
}
_BY_TYPE: dict[str, Any] = {"bool": True, "double": 0.5, "int16": 1, "int64": 1, "string": "x"}


def table_of(name: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Return a table of the workspace. A question's ``content_key`` is its id where it is not given."""
    table = contracts.table(name)
    required = [field for field in table.schema if not field.nullable]
    plain = {field.name: _PLAIN.get(field.name, _BY_TYPE.get(str(field.type), ["x"])) for field in required}
    keys = {"content_key"} & {*plain}
    return table.from_rows([{**plain, **{key: row["question_id"] for key in keys}, **row} for row in rows])


def answers_in(replies: pa.Table) -> Answers:
    """Return replies with their texts by number."""
    return Answers.numbered(number_answers(replies))


def changed(table: pa.Table, place: int | None = None, **values: Any) -> pa.Table:
    """Return the table with other values in the row at a place, in every row where none is named."""
    rows = table.to_pylist()
    for row in rows if place is None else [rows[place]]:
        row |= values
    return pa.Table.from_pylist(rows, table.schema)


def tuples(table: pa.Table, *names: str, **where: Any) -> list[tuple]:
    """Return the named columns of a table's rows, of those rows that have these values."""
    rows = [row for row in table.to_pylist() if all(row[name] == value for name, value in where.items())]
    return [tuple(row[name] for name in names) for row in rows]


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    """Write JSON Lines, a row each; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def cases(test: str, name: str) -> list[Any]:
    """Return the rows of a table that lies beside a test: JSON a line, or texts between tabs below a line of names."""
    lines = Path(test).with_name(name).read_text(encoding="utf-8").split("\n")[:-1]
    return [line.split("\t") for line in lines[1:]] if name.endswith(".tsv") else [json.loads(line) for line in lines]
