"""The generation cache: each reply is on disk before it is used, and a kept reply is never asked for again.

One SQLite file for all workspaces of a machine, in WAL mode, so that several processes can read and write at once.
A writer thread commits all replies since its last commit in one transaction. A reply counts as finished after its
commit, so a kill costs only the requests in flight. Each reply has a checksum. A reply that does not match it is not
used, and the next reply to the same request replaces it.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quit.common.cache import cache_folder, in_made_folder, open_wal, select_keys, usable
from quit.common.progress import note
from quit.common.rows import first_by
from quit.errors import WorkspaceError, refuse_newer
from quit.models.generation.base import Completion, canonical
from quit.text.words import counted

COLUMNS = "key, model, prompt, label, sample, reply, finish_reason, prompt_tokens, completion_tokens, created, origin"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, prompt TEXT NOT NULL, label TEXT NOT NULL, sample INTEGER NOT NULL,
    reply TEXT NOT NULL, finish_reason TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, created REAL NOT NULL, origin TEXT NOT NULL, checksum INTEGER NOT NULL
) WITHOUT ROWID
"""
_INSERT = f"INSERT OR REPLACE INTO replies ({COLUMNS}, checksum) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
_FIND = f"SELECT {COLUMNS}, checksum FROM replies WHERE key IN ({{keys}})"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A reply with what it answers. ``label``: what it was for, such as a question's id; never part of the key."""

    key: bytes
    model: str
    prompt: str
    label: str
    sample: int
    completion: Completion


class GenerationCache(AbstractContextManager["GenerationCache"]):
    """A file of replies. Thread-safe; close it, or use it as a context manager.

    Raises :class:`WorkspaceError` for a file that is no cache, or a newer program's.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = in_made_folder(path or cache_folder("generations.sqlite"))
        self._incoming: queue.SimpleQueue[tuple[Entry, Future[None]] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._lock = threading.Lock()
        self._events: dict[bytes, threading.Event] = {}
        with self._usable():
            self._database = open_cache(self.path)  # for readers; the writer has another
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            refuse_newer(f"The generation cache {self.path}", version, _VERSION)
            self._database.execute(_SCHEMA)
            self._database.execute(f"PRAGMA user_version = {_VERSION}")

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """Return the completions of the keys that have one; replies that do not match their checksum are left out."""
        with self._lock, self._usable():
            rows = list(select_keys(self._database, _FIND, keys))
        completions = {
            row[0]: Completion(row[5], row[6], row[7], row[8], origin=row[10]) for row in rows if is_fit(row)
        }
        if damage_count := len(rows) - len(completions):
            damage = counted(damage_count, "kept reply does", "kept replies do")
            note(f"{self.path}: {damage} not fit the checksum. Asked again.", loud=True)
        return completions

    @contextmanager
    def asking(self, keys: Sequence[bytes]) -> Iterator[tuple[list[bytes], set[threading.Event]]]:
        """Reserve keys for this caller, among the threads of this process.

        Yields the keys that no other caller has reserved, and the events that are set when the other callers finish.
        """
        end_event = threading.Event()
        with self._lock:
            events = {self._events[key] for key in keys if key in self._events}
            free_keys = [key for key in keys if key not in self._events]
            self._events |= dict.fromkeys(free_keys, end_event)
        try:
            yield free_keys, events
        finally:
            with self._lock:
                for key in free_keys:
                    del self._events[key]
            end_event.set()

    def add(self, entry: Entry) -> Future[None]:
        """Append a reply; the future is done when it is on disk. A key that is there already keeps its first fit reply.

        Whatever stops the writing is the future's exception: :class:`WorkspaceError` where the file cannot be written.
        """
        with self._lock:
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(target=self._write, name="generation-cache", daemon=True)
                self._writer.start()
        commit: Future[None] = Future()
        commit.set_running_or_notify_cancel()  # a waiter must not cancel it: its batch holds other replies
        self._incoming.put((entry, commit))
        return commit

    def statistics(self) -> list[dict[str, Any]]:
        """Return one row per model and origin: replies, tokens, first and last time (seconds since 1970)."""
        query = (
            "SELECT model, origin, count(*), sum(prompt_tokens), sum(completion_tokens), min(created), max(created) "
            "FROM replies GROUP BY model, origin ORDER BY model, origin"
        )
        names = ("model", "origin", "replies", "prompt_tokens", "completion_tokens", "first", "last")
        with self._lock, self._usable():
            return [dict(zip(names, row, strict=True)) for row in self._database.execute(query)]

    def drop(self, model: str, origin: str | None = None) -> int:
        """Delete a model's replies, of all servers or of one, and return their number. Tables made of them stay."""
        of_origin, values = ("", (model,)) if origin is None else (" AND origin = ?", (model, origin))
        with self._lock, self._usable(), self._database as database:
            return database.execute(f"DELETE FROM replies WHERE model = ?{of_origin}", values).rowcount

    def close(self) -> None:
        """Write the waiting replies and close the file."""
        with self._lock:
            if self._writer is not None:
                self._incoming.put(None)
                self._writer.join()
                self._writer = None
            self._database.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _usable(self) -> AbstractContextManager[None]:
        return usable(self.path, "as generation cache")

    def _write(self) -> None:
        database: sqlite3.Connection | None = None
        stop = False
        while not stop:
            items = [self._incoming.get()]
            while not self._incoming.empty():
                items.append(self._incoming.get())
            stop = None in items
            batch = [item for item in items if item is not None]
            fault: BaseException | None = None
            try:
                database = database or open_cache(self.path)
                with database:
                    database.execute("BEGIN IMMEDIATE")
                    insert(database, [_row(entry) for entry, _ in batch])
            except sqlite3.Error as error:
                fault = WorkspaceError(
                    f"{self.path} cannot be written: {error}. Check its disk's space and its rights."
                )
            except BaseException as error:  # whatever it is, someone waits for it
                fault = error
            for _, commit in batch:
                if fault is None:
                    commit.set_result(None)
                else:
                    commit.set_exception(fault)
        if database is not None:
            database.close()


def open_cache(path: Path) -> sqlite3.Connection:
    """Return a connection that also returns damaged texts, so that their checksums can be compared."""
    database = open_wal(path, "FULL")
    database.text_factory = lambda raw: raw.decode(errors="replace")
    return database


def insert(database: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> None:
    """Add rows of :data:`COLUMNS` in the caller's transaction.

    A key with a fit reply keeps it; one that is damaged is replaced.
    """
    first = first_by((row[0], row) for row in rows)
    fit_keys = {row[0] for row in select_keys(database, _FIND, list(first)) if is_fit(row)}
    database.executemany(_INSERT, [(*row, _checksum(row)) for key, row in first.items() if key not in fit_keys])


def is_fit(row: Sequence[Any]) -> bool:
    """Whether a row of :data:`COLUMNS` and ``checksum`` matches its checksum."""
    try:
        return bool(row[-1] == _checksum(row[:-1]))
    except (AttributeError, TypeError, ValueError):  # one changed bit makes a blob of SQLite's text or number
        return False


def _checksum(row: Sequence[Any]) -> int:
    return zlib.crc32(canonical([row[0].hex(), *row[1:]]))


def _row(entry: Entry) -> tuple[Any, ...]:
    completion = entry.completion
    reply = (completion.text, completion.finish_reason, completion.prompt_tokens, completion.completion_tokens)
    return (entry.key, entry.model, entry.prompt, entry.label, entry.sample, *reply, time.time(), completion.origin)
