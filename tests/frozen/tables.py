"""Tables and files in short: a checksum a column, means of floats a question, and what has to be read, in words."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import quit
from quit.common.arithmetic import sum_in_order
from tests.frozen.values import checksum

PROVENANCE = ("README.md", "manifest.json", "croissant.json", "settings.json")
"""Files of an export that say what made it."""

IDENTITIES = ("reader", "judge", "producer", "type_producer", "difficulty_producer", "method", "basis")


def tables(place: Path) -> dict[str, Any]:
    """Return entry -> value of a workspace's current tables that have rows."""
    opened = quit.open(place)
    rows = {name: opened.arrow(name) for name in opened.names}
    return {f"table {name}": table(name, of_table) for name, of_table in rows.items() if len(of_table)}


def table(name: str, rows: pa.Table) -> dict[str, Any]:
    """Return a table in short. Its order, that of its parts, is no part of it."""
    floats = [field.name for field in rows.schema if pa.types.is_floating(field.type)]
    exact = [column for column in rows.column_names if column not in floats]
    sorted_by = [column for column in exact if not pa.types.is_list(rows.schema.field(column).type)]
    rows = rows.sort_by([(column, "ascending") for column in sorted_by])
    columns = {column: rows[column].to_pylist() for column in rows.column_names}
    of_identities = {
        column: sorted({str(value) for value in columns[column]}) for column in exact if column in IDENTITIES
    }
    short: dict[str, Any] = {
        "rows": len(rows),
        "columns": {column: checksum(json.dumps(columns[column], ensure_ascii=False)) for column in exact},
    }
    if of_identities:
        short["identities"] = of_identities
    if floats:
        short["means"] = _means(
            columns.get("question_id") or [""] * len(rows), {name: columns[name] for name in floats}
        )
    if name in IN_WORDS:
        short["questions"] = IN_WORDS[name](rows)
    return short


def _means(ids: list[str], columns: dict[str, list[float | None]]) -> dict[str, dict[str, float | None]]:
    """Return question -> column -> mean of its values (None: it has none)."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: {name: [] for name in columns})
    for name, column in columns.items():
        for question_id, value in zip(ids, column, strict=True):
            if value is not None:
                values[question_id][name].append(value)
    return {
        question_id: {name: figure(sum_in_order(rows) / len(rows)) for name, rows in of_columns.items() if rows}
        for question_id, of_columns in values.items()
    }


def figure(value: Any) -> Any:
    """Return figures, however nested, with nine digits."""
    if isinstance(value, dict):
        return {key: figure(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [figure(inner) for inner in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _of_questions(write: Callable[[list[dict]], Any]) -> Callable[[pa.Table], dict[str, Any]]:
    def of_questions(rows: pa.Table) -> dict[str, Any]:
        by_question: dict[str, list[dict]] = defaultdict(list)
        for row in rows.to_pylist():
            by_question[row["question_id"] or row.get("record_id") or ""].append(row)
        return {question_id: write(of_question) for question_id, of_question in by_question.items()}

    return of_questions


def _labels(rows: pa.Table) -> dict[str, str]:
    """One digit a passage: the labelers that are right, as bits in the order of their names."""
    names = sorted({name for labelers in rows["labelers"].to_pylist() for name in labelers})
    bits = {name: 1 << number for number, name in enumerate(names)}
    return _of_questions(
        lambda of_question: "".join(f"{sum(map(bits.__getitem__, row['labelers'])):x}" for row in of_question)
    )(rows)


def _verdicts(rows: list[dict]) -> str:
    accepted = [row["answer_key"] for row in rows if row["correct"]]
    return " | ".join([*accepted, f"{len(rows) - len(accepted)} others"])


def _changes(rows: list[dict]) -> list[str]:
    kinds = Counter(
        f"{row['change']}{'' if row['before'] is None else ' {before}>{after}'.format(**row)}"
        f"{'' if row['answer'] is None else ' ' + row['answer']} ({row['reason']}; {', '.join(row['reviews'])})"
        for row in rows
    )
    return [f"{count} {kind}" for kind, count in sorted(kinds.items())]


def _fields(*names: str) -> Callable[[list[dict]], list[str]]:
    return lambda rows: [" | ".join(str(row[name]) for name in names) for row in rows]


IN_WORDS: dict[str, Callable[[pa.Table], dict[str, Any]]] = {
    "labels": _labels,
    "splits": _of_questions(lambda rows: rows[0]["split"] + (" parametric" if rows[0]["parametric"] else "")),
    "verdicts": _of_questions(_verdicts),
    "changes": _of_questions(_changes),
    "valid_answers": _of_questions(_fields("answer", "origin", "passages")),
    "leak_findings": _of_questions(_fields("hint_id", "span", "answer", "method")),
    "rejects": _of_questions(_fields("stage", "kind", "reason", "hint_id", "detail")),
}


def files(folder: Path) -> dict[str, dict[str, str]]:
    """Return ``export FORMAT`` -> file -> checksum, without the release's fingerprint."""
    formats: dict[str, dict[str, str]] = defaultdict(dict)
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in PROVENANCE):
        name, _, file = path.relative_to(folder).as_posix().partition("/")
        manifest = json.loads((folder / name / "manifest.json").read_text(encoding="utf-8"))
        content = path.read_bytes().replace(manifest["release_fingerprint"].encode(), b"")
        formats[f"export {name}"][file] = checksum(content)
    return dict(formats)
