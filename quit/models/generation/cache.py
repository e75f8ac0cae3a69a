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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quit.common.cache import cache_folder, in_made_folder, open_wal, select_keys, usable
from quit.common.progress import note
from quit.common.rows import first_by
from quit.errors import SettingsError, WorkspaceError, refuse_newer
from quit.models.generation.base import ChatRequest, Completion, Generator, cache_key, canonical
from quit.models.generation.meter import Meter
from quit.settings import RunSettings
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
_FEW_REFUSED = 5  # prompts of a stage: so many, or fewer, say nothing about a share
_POLL_SECONDS = 0.5  # seconds between chances to be interrupted while another caller asks


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
            note(f"{_damage(self.path, damage_count)}. Asked again.", loud=True)
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
                self._commit(database, [entry for entry, _ in batch])
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

    def _commit(self, database: sqlite3.Connection, entries: Sequence[Entry]) -> None:
        with database:
            database.execute("BEGIN IMMEDIATE")
            insert(database, [*map(_row, entries)])


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


def _damage(path: Path, count: int) -> str:
    return f"{path}: {counted(count, 'kept reply does', 'kept replies do')} not fit the checksum"


def _row(entry: Entry) -> tuple[Any, ...]:
    completion = entry.completion
    reply = (completion.text, completion.finish_reason, completion.prompt_tokens, completion.completion_tokens)
    return (entry.key, entry.model, entry.prompt, entry.label, entry.sample, *reply, time.time(), completion.origin)


class CachedGenerator:
    """Completions, from the cache where they are, else from the generator. ``cache=None`` asks for everything."""

    max_refused = RunSettings().max_refused  # share of a stage's prompts

    def __init__(self, generator: Generator, cache: GenerationCache | None, meter: Meter | None = None) -> None:
        self.name = generator.name
        self.identity = generator.identity
        self._generator = generator
        self._cache = cache
        self._meter = meter or Meter()
        self._prompts: Counter[str] = Counter()  # of each stage, by its template
        self._refused: Counter[str] = Counter()

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        """Return one completion per request, in order.

        Equal requests are asked for once, also by shards of this process at the same time. Two processes may both ask;
        then both have the reply that was on disk first. Empty replies are returned and not kept, except cut and
        withheld ones. Raises what the generator raises; every reply it gave before that is in the cache.
        """
        keys = [cache_key(self.identity, request) for request in requests]
        distinct: dict[bytes, ChatRequest] = {}
        for key, request in zip(keys, requests, strict=True):
            distinct.setdefault(key, request)
        self._prompts.update(request.template.identity for request in distinct.values())
        replies: dict[bytes, Completion] = {}
        self._meter.add(self.name, expected=len(distinct))
        if self._cache is None:
            self._ask(distinct, replies)
        while open_keys := [key for key in distinct if key not in replies]:
            assert self._cache is not None  # without one, every reply is there by now
            with self._cache.asking(open_keys) as (free_keys, events):
                cached = self._cache.find(free_keys)
                replies |= cached
                for key, completion in cached.items():
                    self._check(distinct[key], completion)
                self._meter.add(self.name, cached=len(cached))
                self._ask({key: distinct[key] for key in free_keys if key not in cached}, replies)
            for event in events:
                while not event.wait(_POLL_SECONDS):
                    pass
        self._meter.add(self.name, origins=Counter(reply.origin for reply in replies.values()))
        if cut := sum(reply.finish_reason == "length" and not reply.text.strip() for reply in replies.values()):
            note(
                f"{self.name}: {counted(cut, 'reply was', 'replies were')} cut before the answer began. Raise "
                "thinking_tokens in the profile; all of the model's replies are then asked for again.",
                loud=True,
            )
        return [replies[key] for key in keys]

    def release(self) -> None:
        """Give back the memory of a model in this process; the next request loads it again."""
        self._generator.release()

    def _check(self, request: ChatRequest, completion: Completion) -> None:
        """Raise :class:`SettingsError` where too large a share of a stage's prompts is refused."""
        stage = request.template.identity
        self._refused[stage] += completion.is_refused
        refused, prompts = self._refused[stage], self._prompts[stage]
        if completion.is_refused and refused > max(_FEW_REFUSED, self.max_refused * prompts):
            raise SettingsError(
                f"{self.name}: {refused:,} of {prompts:,} prompts from {request.template.name} are refused, more than "
                f"run.max_refused = {self.max_refused:g} ({refused / prompts:.1%}; the last, of {request.group}: "
                f"{completion.finish_reason.partition(': ')[2]}). Each counts as NO ANSWER. Ask another "
                "model or shorten what it is asked; or raise run.max_refused."
            )

    def _ask(self, requests: Mapping[bytes, ChatRequest], replies: dict[bytes, Completion]) -> None:
        """Ask the generator, in order; returns once every reply is in ``replies`` and on disk."""
        if not requests:
            return
        keys = list(requests)
        commits: list[Future[None]] = []

        def on_reply(position: int, completion: Completion) -> Future[None] | None:
            key = keys[position]
            request = requests[key]
            replies[key] = completion
            self._meter.add(self.name, requests=1, empty=int(not completion.text.strip()), **completion.tokens)
            if self._cache is None or completion.is_empty:
                return None
            entry = Entry(key, self.identity, request.template.identity, request.group, request.sample, completion)
            if not completion.is_failed:
                commits.append(self._cache.add(entry))
            self._check(request, completion)
            return None if completion.is_failed else commits[-1]

        try:
            with self._meter.busy(self.name):
                self._generator.generate(list(requests.values()), on_reply)
        finally:
            for commit in list(commits):
                commit.result()
        if self._cache is not None:  # the reply on disk counts: another process may have been first
            replies |= self._cache.find(keys)
