"""Overrides: a person decides against an instrument. A row of an append-only log, never an edit.

The next build applies the rows in force. Their content, without ids, names and times, is part of the fingerprint of the
stage that applies them: a decision that is withdrawn gives the old fingerprint, and with it the old tables, again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.ids import content_hash
from quit.common.rows import Row, tuples
from quit.engine.logs import KEY, WITHDRAWN, Log, in_force
from quit.engine.reading import TableReader
from quit.engine.workspace import Workspace
from quit.errors import InputError, check_known, did_you_mean
from quit.sources.lines import json_lines
from quit.text.words import shell_word

KINDS: dict[str, tuple[str, ...]] = {"leak": ("leak", "no_leak")}
"""Kind of override to the decisions that a person can take. A new kind is a line here and a stage that applies it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided on a hint."""

    hint_id: str
    decision: str
    by: str
    reason: str
    kind: str = "leak"


def add(workspace: Workspace, decisions: Sequence[Decision]) -> list[Row]:
    """Append decisions to the workspace's log and return the rows written. Of several on the same, the last counts;
    where it is in force already, none of them is written.

    Raises :class:`InputError` for an unknown kind, decision or hint, naming the nearest right one; then
    nothing is written.
    """
    hints = _hints(workspace, [each.hint_id for each in decisions])
    rows = [_checked(each, hints[each.hint_id]) for each in decisions]
    now = _now()

    def make(log: pa.Table) -> pa.Table:
        ruling, last = _last_decisions(in_force(log).to_pylist()), _last_decisions(rows)
        return _number([row for row in rows if last[_about(row)] != ruling.get(_about(row))], len(log), now)

    return Log(workspace, "overrides").append(make).to_pylist()


def withdraw(workspace: Workspace, override_id: str, by: str, reason: str) -> Row:
    """Append a row that ends an override and return it: from then on the instrument decides again.

    Raises :class:`InputError` for an unknown id, or whose override is not in force (any more).
    """

    def make(log: pa.Table) -> pa.Table:
        rows = {row["override_id"]: row for row in log.to_pylist()}
        if override_id not in rows:
            near = did_you_mean(override_id, list(rows)) if rows else " The workspace has none."
            raise InputError(f"There is no override {override_id!r}.{near}")
        row = rows[override_id]
        overrides = in_force(log).to_pylist()
        ruling = {_about(each): each["override_id"] for each in overrides}.get(_about(row))
        if ruling != override_id:
            now = f"{ruling} has taken its place" if ruling else "nothing overrides that hint now"
            raise InputError(f"The override {override_id} is not in force: {now}.")
        ended = {**row, "decision": WITHDRAWN, "by": _text(by, "by"), "reason": _text(reason, "reason")}
        return _number([ended], len(log), _now())

    return Log(workspace, "overrides").append(make).to_pylist()[0]


def read_decisions(path: Path) -> list[Decision]:
    """Return the decisions of a JSONL file of {hint_id, decision, by, reason, kind?}, or of rows as :func:`listed`
    returns them, of which those in force count.

    Raises :class:`InputError` that names the line.
    """
    keys, decisions = [field.name for field in fields(Decision)], []
    for number, row in json_lines(path, "JSON Lines of overrides"):
        where = f"{path}, line {number}"
        if "override_id" in row:
            if not row.get("in_force", True):
                continue
            row = {key: row[key] for key in keys if key in row}
        row = {key: value for key, value in row.items() if value is not None}
        for key, value in row.items():
            if key not in keys:
                raise InputError(f"{where}: {key!r} is not a key of an override.{did_you_mean(key, keys)}")
            if not isinstance(value, str):
                raise InputError(f"{where}: {key!r} must be a text, found {value!r}.")
        for key in ("hint_id", "decision", "by", "reason"):
            if key not in row:
                raise InputError(f"{where}: {key!r} is missing.")
        decisions.append(Decision(**row))
    if not decisions:
        raise InputError(f"{path} holds no override.")
    return decisions


def listed(workspace: TableReader, question_id: str | None = None) -> list[Row]:
    """Return the log, oldest first (of one question), each row with ``in_force``, and ``hint_gone``: whether its
    question has no hint with that text any more."""
    log = workspace.read("overrides")
    ruling = set(in_force(log).column("override_id").to_pylist())
    rows = [row for row in log.to_pylist() if question_id in (None, row["question_id"])]
    question_ids = {row["question_id"] for row in rows}
    hints = workspace.read("hints", columns=["question_id", "hint"], question_ids=[*question_ids])
    texts = {*tuples(hints, "question_id", "hint")}
    return [
        {
            **row,
            "in_force": row["override_id"] in ruling,
            "hint_gone": (row["question_id"], row["hint"]) not in texts,
        }
        for row in rows
    ]


def _about(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in KEY)


def _last_decisions(rows: Iterable[Row]) -> dict[tuple[str, ...], tuple[str, str, str]]:
    """Return what each override is about -> decision, by and reason of the last row."""
    return {_about(row): (row["decision"], row["by"], row["reason"]) for row in rows}


def _hints(workspace: Workspace, hint_ids: Iterable[str]) -> dict[str, Row]:
    hint_ids = list(dict.fromkeys(hint_ids))
    table = workspace.read("hints")
    if not len(table):
        raise InputError(f"{workspace} has no hints yet. Run: quit build -w {shell_word(workspace)} --source KIND:PATH")
    rows = table.filter(pc.is_in(table.column("hint_id"), pa.array(hint_ids, pa.string()))).to_pylist()
    by_id = {row["hint_id"]: row for row in rows}
    for hint in hint_ids:
        if hint not in by_id:
            near = get_close_matches(hint, table.column("hint_id").to_pylist(), n=3, cutoff=0.5)
            suggestion = f" The nearest: {', '.join(near)}." if near else ""
            raise InputError(f"There is no hint {hint!r} in {workspace}.{suggestion} quit show QUESTION lists hints.")
    return by_id


def _checked(decision: Decision, hint: Row) -> Row:
    check_known(decision.kind, KINDS, "kind of override", InputError)
    if decision.decision not in KINDS[decision.kind]:
        allowed = did_you_mean(decision.decision, KINDS[decision.kind])
        raise InputError(f"{decision.decision!r} is not a decision on a {decision.kind}.{allowed}")
    texts = {name: _text(getattr(decision, name), name) for name in ("by", "reason")}
    return {**asdict(decision), **texts, "question_id": hint["question_id"], "hint": hint["hint"]}


def _number(rows: Sequence[Row], before: int, now: str) -> pa.Table:
    overrides = []
    for position, row in enumerate(rows, start=before):
        decision = {**row, "created_at": now}
        decision.pop("override_id", None)
        overrides.append({"override_id": f"ov-{content_hash(decision, position, size=5)}", **decision})
    return contracts.table("overrides").from_rows(overrides)


def _text(value: str, name: str) -> str:
    if not value.strip():
        raise InputError(f"An override needs {name!r}: {'who decided' if name == 'by' else 'why, in words'}.")
    return value.strip()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
