"""The generation cache: every reply that was paid for is on disk before anyone uses it, and no reply is paid for twice.

One SQLite file for all workspaces of a machine, in WAL mode, so that several processes can read and write at once.
Rows are only ever added. A writer thread commits what has arrived since its last commit in one transaction; a reply
counts as finished once that commit is done, so a kill costs the requests in flight and nothing else.
"""

from __future__ import annotations

import json
import queue
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from quit.common.cache import cache_folder, open_wal, select_keys
from quit.common.files import replacing
from quit.common.json_lines import json_lines
from quit.errors import InputError, WorkspaceError
from quit.models.generation.base import ChatRequest, Completion, Generator, cache_key
from quit.models.generation.meter import Meter

_SCHEMA = """
CREATE TABLE IF NOT EXISTS generations (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, prompt TEXT NOT NULL, label TEXT NOT NULL, sample INTEGER NOT NULL,
    reply TEXT NOT NULL, finish_reason TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, created REAL NOT NULL
) WITHOUT ROWID
"""
COLUMNS = "key, model, prompt, label, sample, reply, finish_reason, prompt_tokens, completion_tokens, created"
_NAMES = COLUMNS.split(", ")
_COMPLETION = _NAMES[5:9]
_INSERT = f"INSERT OR IGNORE INTO generations ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)"
_FIND = f"SELECT key, {', '.join(_COMPLETION)} FROM generations WHERE key IN ({{keys}})"
_VERSION = 1
_TICK = 0.5  # seconds between looks at what another caller is asking for


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
        self.path = path or cache_folder("generations.sqlite")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._incoming: queue.SimpleQueue[tuple[Entry, Future[None]] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._lock = threading.Lock()
        self.heard: Callable[[Sequence[bytes]], None] | None = None
        """Called with the keys of all replies that are given out or added from then on."""
        try:
            self._database = open_wal(self.path, "FULL")  # for readers; the writer has another
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise WorkspaceError(f"{self.path} was written by a newer program (cache version {version}). Upgrade.")
            self._database.execute(_SCHEMA)
            if version < _VERSION:
                self._database.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.DatabaseError as error:
            raise WorkspaceError(
                f"{self.path} cannot be used as generation cache: {error}. "
                "Move it away, or set QUIT_CACHE to another folder."
            ) from error

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """Return the completions of those keys that are known."""
        with self._lock:
            known = {key: Completion(*reply) for key, *reply in select_keys(self._database, _FIND, keys)}
        if self.heard is not None and known:
            self.heard(list(known))
        return known

    def add(self, entry: Entry) -> Future[None]:
        """Append a reply; the future is done when it is on disk. A key that is there already keeps its first reply.

        Whatever stops the writing is the future's exception: :class:`WorkspaceError` where the file cannot be written.
        """
        with self._lock:
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(target=self._write, name="generation-cache", daemon=True)
                self._writer.start()
        written: Future[None] = Future()
        written.set_running_or_notify_cancel()  # who stops waiting cannot cancel it: others' replies are in its batch
        self._incoming.put((entry, written))
        return written

    def statistics(self) -> list[dict[str, Any]]:
        """Return one row a model: replies, tokens, first and last time (seconds since 1970)."""
        query = (
            "SELECT model, count(*), sum(prompt_tokens), sum(completion_tokens), min(created), max(created) "
            "FROM generations GROUP BY model ORDER BY model"
        )
        names = ("model", "replies", "prompt_tokens", "completion_tokens", "first", "last")
        with self._lock:
            return [dict(zip(names, row, strict=True)) for row in self._database.execute(query)]

    def export(self, out: Path) -> int:
        """Write every reply to a JSONL file, sorted by key; returns how many."""
        count = 0
        with self._lock, replacing(out) as partial, partial.open("w", encoding="utf-8") as file:
            for key, *columns in self._database.execute(f"SELECT {COLUMNS} FROM generations ORDER BY key"):
                row = dict(zip(_NAMES, (key.hex(), *columns), strict=True))
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
        return count

    def merge(self, path: Path) -> tuple[int, int]:
        """Add the replies of an exported file; returns (added, already there).

        Raises :class:`InputError` for a bad line; then nothing is added.
        """
        count = added = 0
        with self._lock, self._database as database:  # rolls back on an error: all of the file or nothing
            database.execute("BEGIN IMMEDIATE")
            for row in _read_export(path):
                added += database.execute(_INSERT, row).rowcount
                count += 1
        return added, count - added

    def close(self) -> None:
        """Write what is waiting and let go of the file."""
        with self._lock:
            if self._writer is not None:
                self._incoming.put(None)
                self._writer.join()
                self._writer = None
            self._database.close()

    def __enter__(self) -> GenerationCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self) -> None:
        database: sqlite3.Connection | None = None
        stop = False
        while not stop:
            waiting = [self._incoming.get()]
            while not self._incoming.empty():
                waiting.append(self._incoming.get())
            stop = None in waiting
            batch = [item for item in waiting if item is not None]
            fault: BaseException | None = None
            try:
                database = database or open_wal(self.path, "FULL")
                self._commit(database, [entry for entry, _ in batch])
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
        if database is not None:
            database.close()

    def _commit(self, database: sqlite3.Connection, entries: Sequence[Entry]) -> None:
        with database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany(_INSERT, map(_row, entries))
        if self.heard is not None and entries:
            self.heard([entry.key for entry in entries])


def _row(entry: Entry) -> tuple[Any, ...]:
    completion = entry.completion
    reply = (completion.text, completion.finish_reason, completion.prompt_tokens, completion.completion_tokens)
    return (entry.key, entry.model, entry.prompt, entry.label, entry.sample, *reply, time.time())


def _read_export(path: Path) -> Iterator[tuple[Any, ...]]:
    for number, fields in json_lines(path):
        try:
            row = [fields[name] for name in _NAMES]
            row[0] = bytes.fromhex(row[0])
            if len(row[0]) != 32 or not fields["reply"]:
                raise ValueError("key or reply")
            Completion(*(fields[name] for name in _COMPLETION))  # refuses what the table could not hold
            "".join(fields[name] for name in ("model", "prompt", "label", "finish_reason")).encode()
            if not 0 <= fields["sample"] < 1 << 63 or fields["created"] < 0:
                raise ValueError("sample or created")
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}, line {number}: not a reply of an exported generation cache ({error}).") from None
        yield tuple(row)


class Claims:
    """The keys of the requests that a caller is sending: its own among all callers of all processes that share a cache.

    They are in ``<cache>-claims.sqlite``. As long as a caller has claims, it holds a lock on its file in the
    folder ``<cache>-claims``. The system frees that lock however its process dies, so its claims go to the next
    caller; no clock and no process number (which another machine may use too) decides. Close it.
    """

    def __init__(self, cache: Path) -> None:
        self._path = cache.with_name(f"{cache.stem}-claims.sqlite")
        self._folder = cache.with_name(f"{cache.stem}-claims")
        self._owner = secrets.token_hex(8)
        self._alive = FileLock(self._folder / self._owner, thread_local=False)

    def take(self, keys: Sequence[bytes]) -> set[bytes]:
        """Claim keys; returns those that are this caller's now. The others are being asked for by living callers.

        Raises :class:`WorkspaceError` where the file cannot be used.
        """
        if not keys:
            return set()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._alive.acquire()
            with closing(self._open()) as database:
                owners = self._claim(database, keys)
                dead = [owner for owner in {*owners.values()} - {self._owner} if not self._lives(owner)]
                if dead:
                    with database:
                        database.executemany("DELETE FROM claims WHERE owner = ?", [(owner,) for owner in dead])
                    owners = self._claim(database, keys)
        except (OSError, sqlite3.Error) as error:
            raise WorkspaceError(
                f"{self._path} cannot be used: {error}. "
                "Free space, fix the folder's rights, or set QUIT_CACHE to another folder."
            ) from error
        return {key for key, owner in owners.items() if owner == self._owner}

    def close(self) -> None:
        """Let go of all claims: what was answered is in the cache by now, what was not is anyone's."""
        with suppress(OSError, sqlite3.Error), closing(self._open()) as database, database:
            database.execute("DELETE FROM claims WHERE owner = ?", (self._owner,))
        with suppress(OSError):  # claims that are left have a dead owner, and go to the next caller
            self._alive.release(force=True)
            (self._folder / self._owner).unlink(missing_ok=True)

    def _claim(self, database: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Claim what is free; returns key -> owner."""
        with database:
            database.executemany("INSERT OR IGNORE INTO claims VALUES (?, ?)", [(key, self._owner) for key in keys])
            return dict(select_keys(database, "SELECT key, owner FROM claims WHERE key IN ({keys})", keys))

    def _lives(self, owner: str) -> bool:
        path = self._folder / owner
        if not path.exists():
            return False
        try:
            with FileLock(path, timeout=0, thread_local=False):
                path.unlink(missing_ok=True)
        except Timeout:
            return True
        return False

    def _open(self) -> sqlite3.Connection:
        schema = "CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID"
        return open_wal(self._path, "OFF", schema)  # claims mean nothing after a power cut


class CachedGenerator:
    """Completions, from the cache where they are, else from the generator. ``cache=None`` asks for everything."""

    def __init__(self, generator: Generator, cache: GenerationCache | None, meter: Meter | None = None) -> None:
        self.name = generator.name
        self.identity = generator.identity
        self._generator = generator
        self._cache = cache
        self._meter = meter or Meter()

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        """Return one completion a request, in order.

        Equal requests are asked for once, also by two shards, or two processes that share the cache, at the same
        time. Empty replies are returned and not kept. Raises what the generator raises; every reply it gave before
        that is in the cache.
        """
        keys = [cache_key(self.identity, request) for request in requests]
        distinct: dict[bytes, ChatRequest] = {}
        for key, request in zip(keys, requests, strict=True):
            distinct.setdefault(key, request)
        replies: dict[bytes, Completion] = {}
        self._meter.add(self.name, expected=len(distinct))
        if self._cache is None:
            self._ask(distinct, replies)
        while missing := self._look_up(distinct, replies):
            assert self._cache is not None  # without one, every reply is there by now
            with closing(Claims(self._cache.path)) as claims:
                mine = claims.take(list(missing))
                # Between the look-up and the claim, another caller may have asked and let go.
                self._ask(self._look_up({key: missing[key] for key in missing if key in mine}, replies), replies)
            if len(mine) < len(missing):
                time.sleep(_TICK)
        return [replies[key] for key in keys]

    def release(self) -> None:
        """Give back the memory of a model in this process; the next request loads it again."""
        self._generator.release()

    def _look_up(
        self, requests: Mapping[bytes, ChatRequest], replies: dict[bytes, Completion]
    ) -> dict[bytes, ChatRequest]:
        """Add what the cache has to ``replies``; returns the requests that have none."""
        missing = {key: request for key, request in requests.items() if key not in replies}
        if self._cache is None or not missing:
            return missing
        known = self._cache.find(list(missing))
        replies |= known
        self._meter.add(self.name, cached=len(known))
        return {key: request for key, request in missing.items() if key not in known}

    def _ask(self, requests: Mapping[bytes, ChatRequest], replies: dict[bytes, Completion]) -> None:
        """Ask the generator, in order; returns once every reply is in ``replies`` and on disk."""
        if not requests:
            return
        keys = list(requests)
        commits: list[Future[None]] = []

        def done(position: int, completion: Completion) -> Future[None] | None:
            key = keys[position]
            request = requests[key]
            replies[key] = completion
            self._meter.add(
                self.name,
                requests=1,
                empty=int(not completion.text.strip()),
                prompt_tokens=completion.prompt_tokens,
                completion_tokens=completion.completion_tokens,
                cached_tokens=completion.cached_tokens,
            )
            if self._cache is None or not completion.text.strip():
                return None
            entry = Entry(key, self.identity, request.template.identity, request.group, request.sample, completion)
            commits.append(self._cache.add(entry))
            return commits[-1]

        try:
            with self._meter.busy(self.name):
                self._generator.generate(list(requests.values()), done)
        finally:
            for commit in list(commits):
                commit.result()
