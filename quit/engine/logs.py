"""Logs of a workspace: tables that people append to, one part an entry, never changed.

::

    W/overrides/part-00001.parquet   what people decided
    W/reviews/part-00001.parquet     what people said, one part per pull
    W/reviews/applied.json           the parts of reviews that labels rest on
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
from typing_extensions import TypedDict

from quit import contracts
from quit.common.files import remove_leftovers, replacing, writing
from quit.common.parquet import joined
from quit.common.state_files import StateFile
from quit.engine.location import Location
from quit.engine.parts import log_number, read_log_part, write_log_part
from quit.errors import WorkspaceError

KEY = ("kind", "question_id", "hint")
"""Columns that say what an override is about."""
WITHDRAWN = "withdrawn"


class _Applied(TypedDict):
    parts: list[str]


_APPLIED: StateFile[_Applied] = StateFile(
    "applied.json", _Applied, "Delete it and apply the reviews again: quit review apply."
)


class Log:
    """One log of a workspace."""

    def __init__(self, location: Location, name: str) -> None:
        self.name = name
        self.folder = location.path / name
        self._location = location

    @property
    def files(self) -> list[Path]:
        """Its parts, oldest first."""
        return sorted(self.folder.glob("part-*.parquet"))

    def read(self, files: Iterable[Path] | None = None) -> pa.Table:
        """Return the rows of all parts, or of these, oldest first (empty if there are none).

        Raises :class:`WorkspaceError` for a part that is damaged.
        """
        parts = [read_log_part(self.name, path) for path in (self.files if files is None else files)]
        return joined(parts, contracts.table(self.name).schema)

    def append(self, make: Callable[[pa.Table], pa.Table]) -> pa.Table:
        """Append rows as one part and return them.

        ``make`` is given the log and returns the new rows (none: nothing is written). A running build continues with
        the log as it was when it began.
        """
        from filelock import FileLock

        with writing(self.folder):
            self.folder.mkdir(exist_ok=True)
            with FileLock(self.folder / "lock"):
                rows = make(self.read()).cast(contracts.table(self.name).schema)
                if len(rows) and self.add_part(rows) is None:  # by a program that does not know the lock
                    raise WorkspaceError(
                        f"{self.files[-1]} was written by another program meanwhile. Run the same command again."
                    )
                return rows

    def next_part(self) -> Path:
        """Return the path of the next part: numbered after the last one that is there, whichever others are."""
        last = self.files[-1:]
        return self.folder / f"part-{log_number(last[0]) + 1 if last else 1:05d}.parquet"

    def add_part(self, rows: pa.Table) -> Path | None:
        """Write rows as the next part and return its path; None where someone else has taken that name meanwhile.

        Nothing that exists is ever replaced. The caller holds the log's own lock.
        """
        target = self.next_part()
        remove_leftovers(target.parent, "part-*")
        with writing(target):
            try:
                with replacing(target, place=os.link) as temporary:
                    write_log_part(temporary, rows)
            except FileExistsError:  # unlike a move, a link refuses to replace
                return None
        return target


def in_force(log: pa.Table, kind: str | None = None) -> pa.Table:
    """Return the rows of a log of overrides that count (of one kind): the last of each key, unless it is a
    withdrawal."""
    last: dict[tuple, int] = {}
    for position, row in enumerate(log.select([*KEY, "decision"]).to_pylist()):
        key = tuple(row[name] for name in KEY)
        if row["decision"] == WITHDRAWN:
            last.pop(key, None)
        elif kind in (None, row["kind"]):
            last[key] = position
    return log.take(pa.array(sorted(last.values()), pa.int64()))


def contents(rows: pa.Table) -> list[list[str | None]]:
    """Return what overrides say, sorted, without ids, names, reasons and times: what a fingerprint has to know."""
    texts = [[row[name] for name in (*KEY, "decision")] for row in rows.select([*KEY, "decision"]).to_pylist()]
    return sorted(texts, key=lambda row: [text or "" for text in row])


def applied_reviews(location: Location) -> list[Path]:
    """Return the parts of the log of reviews that labels rest on (none: people's verdicts are not applied)."""
    folder = location.path / "reviews"
    applied = _APPLIED.read(folder)
    return [folder / name for name in applied["parts"]] if applied else []
