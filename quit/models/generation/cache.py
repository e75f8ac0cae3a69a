"""The generation cache: every reply that was paid for, on disk before anyone uses it.

One SQLite file for all workspaces of a machine, in WAL mode, so that several processes can read and write at once. Rows are only
ever added. A writer thread commits what has arrived since its last commit in one transaction; a reply counts as finished once
that commit is done, so a kill costs the requests in flight and nothing else.
"""

from __future__ import annotations

import json
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quit.cache import cache_folder
from quit.errors import InputError, WorkspaceError
from quit.models.generation.base import Completion

_SCHEMA = """
CREATE TABLE IF NOT EXISTS generations (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, prompt TEXT NOT NULL, label TEXT NOT NULL, sample INTEGER NOT NULL,
    reply TEXT NOT NULL, finish_reason TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    created REAL NOT NULL
) WITHOUT ROWID
"""
COLUMNS = "key, model, prompt, label, sample, reply, finish_reason, prompt_tokens, completion_tokens, created"
_INSERT = f"INSERT OR IGNORE INTO generations ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)"
_COMPLETION = ("reply", "finish_reason", "prompt_tokens", "completion_tokens")
_LOOKUP = 500  # keys a query; SQLite allows more, this is where it stops getting faster
_VERSION = 1


def default_path() -> Path:
    """Return ``$QUIT_CACHE/generations.sqlite``; the cache folder is ``~/.cache/quit`` where the variable is not set."""
    return cache_folder("generations.sqlite")


@dataclass(frozen=True, slots=True)
class Entry:
    """A reply with what it answers. ``label``: what it was for, such as a question's id; never part of the key."""

    key: bytes
    model: str
    prompt: str
    label: str
    sample: int
    completion: Completion


class GenerationCache:
    """A file of replies. Thread-safe; close it, or use it as a context manager.

    Raises :class:`WorkspaceError` for a file that is no cache, or a newer program's.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._incoming: queue.SimpleQueue[tuple[Entry, Future[None]] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._lock = threading.Lock()
        self.heard: Callable[[Sequence[bytes]], None] | None = None
        """Told the keys of all replies that are given out or added from then on."""
        try:
            connection = self._connect()
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise WorkspaceError(f"{self.path} was written by a newer program (cache version {version}). Upgrade.")
            connection.execute(_SCHEMA)
            if version < _VERSION:
                connection.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.DatabaseError as error:
            raise WorkspaceError(
                f"{self.path} cannot be used as generation cache: {error}. Move it away, or set QUIT_CACHE to another folder."
            ) from error

    def find(self, keys: Sequence[bytes], since: float = 0.0) -> dict[bytes, Completion]:
        """Return the completions of those keys that are known, made at ``since`` (seconds since 1970) or later."""
        connection, found = self._connect(), {}
        for start in range(0, len(keys), _LOOKUP):
            some = keys[start : start + _LOOKUP]
            marks = ",".join("?" * len(some))
            for key, *rest in connection.execute(
                f"SELECT key, {', '.join(_COMPLETION)} FROM generations WHERE key IN ({marks}) AND created >= ?",
                (*some, since),
            ):
                found[bytes(key)] = Completion(*rest)
        if self.heard is not None and found:
            self.heard(list(found))
        return found

    def add(self, entry: Entry) -> Future[None]:
        """Append a reply; the future is done when it is on disk. A key that is there already keeps its first reply.

        Whatever stops the writing is the future's exception: :class:`WorkspaceError` where the file cannot be written.
        """
        self._start_writer()
        written: Future[None] = Future()
        written.set_running_or_notify_cancel()  # who stops waiting cannot cancel it: others' replies are in its batch
        self._incoming.put((entry, written))
        return written

    def statistics(self) -> list[dict[str, Any]]:
        """Return one row a model: replies, tokens, first and last time (seconds since 1970)."""
        rows = self._connect().execute(
            "SELECT model, count(*), sum(prompt_tokens), sum(completion_tokens), min(created), max(created) "
            "FROM generations GROUP BY model ORDER BY model"
        )
        names = ("model", "replies", "prompt_tokens", "completion_tokens", "first", "last")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def export(self, out: Path) -> int:
        """Write every reply to a JSONL file, sorted by key; returns how many."""
        partial = out.with_name(out.name + ".partial")
        count = 0
        with partial.open("w", encoding="utf-8") as file:
            for row in self._connect().execute(f"SELECT {COLUMNS} FROM generations ORDER BY key"):
                named = dict(zip(COLUMNS.split(", "), row, strict=True))
                named["key"] = bytes(named["key"]).hex()
                file.write(json.dumps(named, ensure_ascii=False) + "\n")
                count += 1
        partial.replace(out)
        return count

    def merge(self, path: Path) -> tuple[int, int]:
        """Add the replies of an exported file; returns (added, already there). Raises :class:`InputError` for a bad line."""
        connection = self._connect()
        before = connection.execute("SELECT count(*) FROM generations").fetchone()[0]
        count = 0
        with connection:  # rolls back on an error: all of the file or nothing
            connection.execute("BEGIN IMMEDIATE")
            for row in _read_export(path):
                connection.execute(_INSERT, row)
                count += 1
        added = connection.execute("SELECT count(*) FROM generations").fetchone()[0] - before
        return added, count - added

    def close(self) -> None:
        """Write what is waiting and let go of the file."""
        with self._lock:
            if self._writer is not None:
                self._incoming.put(None)
                self._writer.join()
                self._writer = None
            for connection in self._connections:
                connection.close()
            self._connections.clear()
            self._local = threading.local()

    def __enter__(self) -> GenerationCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> sqlite3.Connection:
        if not hasattr(self._local, "connection"):
            connection = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            self._local.connection = connection
            self._connections.append(connection)
        return self._local.connection

    def _start_writer(self) -> None:
        with self._lock:
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(target=self._write, name="generation-cache", daemon=True)
                self._writer.start()

    def _write(self) -> None:
        stop = False
        while not stop:
            waiting = [self._incoming.get()]
            while not self._incoming.empty():
                waiting.append(self._incoming.get())
            stop = None in waiting
            batch = [item for item in waiting if item is not None]
            fault: BaseException | None = None
            try:
                self._commit([entry for entry, _ in batch])
            except sqlite3.Error as error:
                fault = WorkspaceError(
                    f"{self.path} cannot be written: {error}. Check its disk's space and its rights."
                )
            except BaseException as error:  # whatever it is, someone waits for it
                fault = error
            for _, written in batch:
                if fault is None:
                    written.set_result(None)
                else:
                    written.set_exception(fault)

    def _commit(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        connection = self._connect()
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_INSERT, map(_row, entries))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if self.heard is not None:
            self.heard([entry.key for entry in entries])


def _row(entry: Entry) -> tuple[Any, ...]:
    made = entry.completion
    return (
        entry.key,
        entry.model,
        entry.prompt,
        entry.label,
        entry.sample,
        made.text,
        made.finish_reason,
        made.prompt_tokens,
        made.completion_tokens,
        time.time(),
    )


def _read_export(path: Path) -> Iterator[tuple[Any, ...]]:
    names = COLUMNS.split(", ")
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    named = json.loads(line)
                    row = [named[name] for name in names]
                    row[0] = bytes.fromhex(row[0])
                    if len(row[0]) != 32 or not named["reply"]:
                        raise ValueError("key or reply")
                    Completion(*(named[name] for name in _COMPLETION))  # refuses what the table could not hold
                    "".join(named[name] for name in ("model", "prompt", "label", "finish_reason")).encode()
                    if not 0 <= named["sample"] < 1 << 63 or named["created"] < 0:
                        raise ValueError("sample or created")
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise InputError(
                        f"{path}, line {number}: not a reply of an exported generation cache ({error})."
                    ) from None
                yield tuple(row)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
