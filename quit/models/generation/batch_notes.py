"""What is noted of batches beside the kept replies: each batch before it is made, each reply as it came, so that a kill
between any two requests loses nothing and submits nothing twice."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from filelock import FileLock

from quit.common.cache import cache_folder, in_made_folder, open_wal, select_keys, usable
from quit.models.generation.ledger import Amount

_DAY = 90_000.0  # seconds until a batch has ended, at most
_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    tag TEXT PRIMARY KEY, id TEXT, submitted REAL, cost REAL, tokens REAL, ledger TEXT, model TEXT, size REAL
);
CREATE TABLE IF NOT EXISTS requests (key BLOB PRIMARY KEY, tag TEXT, failures INTEGER, reply TEXT, fault TEXT);
CREATE TABLE IF NOT EXISTS limits (model TEXT PRIMARY KEY, tokens REAL);
"""
_ROWS = "SELECT key, tag, failures, reply, fault FROM requests WHERE key IN ({keys})"
_SIZE = "SELECT size, count(*) FROM batches JOIN requests USING (tag) WHERE tag = ?"


class NotedRequest(NamedTuple):
    """A request that was in a batch. ``tag``: of the batch that it is in now."""

    key: bytes
    tag: str | None
    failures: int
    reply: str | None
    fault: str | None


class BatchLine(NamedTuple):
    """What a line of an ended batch says of a request: its reply, or how many failures more and the last one."""

    reply: str | None
    failures: int
    fault: str | None
    key: bytes


class BatchNotes:
    """The notes of one ``model``, a server's address and the model's name there."""

    def __init__(self, database: sqlite3.Connection, model: str) -> None:
        self._database = database
        self._model = model

    def requests(self, keys: Iterable[bytes]) -> list[NotedRequest]:
        """Return what is noted of requests, in no order; nothing of those that are not noted."""
        return [NotedRequest(*row) for row in select_keys(self._database, _ROWS, [*keys])]

    def batches(self) -> list[tuple[str, str | None, float]]:
        """Return tag, id (None: perhaps never made) and time of each batch that is not collected, oldest first."""
        return self._database.execute("SELECT tag, id, submitted FROM batches ORDER BY submitted").fetchall()

    def size(self, tag: str) -> tuple[float, int]:
        """Return the estimated tokens of a batch, and its requests."""
        return self._database.execute(_SIZE, (tag,)).fetchone()

    def waiting(self) -> float:
        """Return the estimated tokens of the model's batches that may still wait."""
        query = "SELECT total(size) FROM batches WHERE model = ? AND submitted > ?"
        [(tokens,)] = self._database.execute(query, (self._model, time.time() - _DAY))
        return tokens

    def limit(self) -> float:
        """Return how many tokens may wait, as the server's refusals said; infinity without one."""
        row = self._database.execute("SELECT tokens FROM limits WHERE model = ?", (self._model,)).fetchone()
        return row[0] if row else math.inf

    def set_limit(self, tokens: float) -> None:
        """Note how many tokens may wait."""
        self._write("INSERT OR REPLACE INTO limits VALUES (?, ?)", [(self._model, tokens)])

    def add(self, tag: str, keys: Iterable[bytes], tokens: float, reserve: Amount, owner: str) -> None:
        """Note a batch that will be made, of requests of so many ``tokens``; ``owner``: of the ledger that has the
        ``reserve``."""
        request = "INSERT INTO requests VALUES (?, ?, 0, NULL, NULL) ON CONFLICT (key) DO UPDATE SET tag = excluded.tag"
        batch = (tag, time.time(), *reserve, owner, self._model, tokens)
        with self._database as notes:
            notes.execute("INSERT INTO batches VALUES (?, NULL, ?, ?, ?, ?, ?, ?)", batch)
            notes.executemany(request, [(key, tag) for key in keys])

    def set_identity(self, tag: str, identity: str) -> None:
        """Note that a batch was made."""
        self._write("UPDATE batches SET id = ? WHERE tag = ?", [(identity, tag)])

    def close(self, tag: str, lines: Iterable[BatchLine], why: str | None) -> tuple[Amount, str]:
        """Note what came of a batch, all of it or nothing; return its reserve and the ledger's owner.

        ``why`` requests have no reply; None: it was never made.
        """
        change = "reply = coalesce(reply, ?), failures = failures + ?, fault = ?"  # a good line is never lost
        again = "failures = failures + 1, fault = coalesce(fault, ?)"
        with self._database as notes:
            [(*amounts, owner)] = notes.execute("SELECT cost, tokens, ledger FROM batches WHERE tag = ?", (tag,))
            rows = [(*line, tag) for line in lines]
            notes.executemany(f"UPDATE requests SET {change} WHERE key = ? AND tag = ?", rows)
            if why is not None:
                notes.execute(f"UPDATE requests SET {again} WHERE tag = ? AND reply IS NULL", (why, tag))
            notes.execute("UPDATE requests SET tag = NULL WHERE tag = ?", (tag,))
            notes.execute("DELETE FROM batches WHERE tag = ?", (tag,))
        return Amount(*amounts), owner

    def fail(self, faults: Sequence[tuple[str, bytes]]) -> None:
        """Note (fault, key) of replies that cannot be used, in whose place another is asked for."""
        self._write("UPDATE requests SET reply = NULL, failures = failures + 1, fault = ? WHERE key = ?", faults)

    def forget(self, keys: Iterable[bytes]) -> None:
        """Forget requests."""
        self._write("DELETE FROM requests WHERE key = ?", [(key,) for key in keys])

    def _write(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._database:
            self._database.executemany(statement, rows)


@contextmanager
def batch_notes(model: str) -> Iterator[BatchNotes]:
    """Open the notes of a model. No other shard or build makes or collects a batch meanwhile.

    Raises :class:`quit.errors.WorkspaceError` where the file cannot be used.
    """
    path = in_made_folder(cache_folder("batches.sqlite"))
    lock = FileLock(path.with_suffix(".lock"))
    with usable(path, "for the notes of batches"), lock, closing(open_wal(path, "FULL")) as database:
        database.executescript(_SCHEMA)
        yield BatchNotes(database, model)
