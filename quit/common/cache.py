"""The folder for what can be computed again (vectors, probabilities): deleting it costs time only."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from quit.errors import WorkspaceError

VARIABLE = "QUIT_CACHE"
_LOG = logging.getLogger(__name__)
_LOOKUP = 500  # keys a query; SQLite allows more, this is where it stops getting faster
_PATIENCE = 60.0  # seconds that a busy file is waited for
_VECTOR_BYTES = 2 << 30  # of vectors on disk; the oldest leave


def cache_folder(name: str) -> Path:
    """Return the cache folder of that name (not made yet): in ``$QUIT_CACHE``, else in ``$XDG_CACHE_HOME/quit``, else
    in ``~/.cache/quit``."""
    if root := os.environ.get(VARIABLE):
        return Path(root).expanduser().absolute() / name
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (caches if caches.is_absolute() else Path.home() / ".cache") / "quit" / name  # as its specification says


def in_made_folder(path: Path) -> Path:
    """Return a path of the cache, after making its folder. Raises ``WorkspaceError`` where that cannot be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"Cannot make the cache's folder {path.parent} ({error.strerror or error})"
        raise WorkspaceError(f"{what}. Set {VARIABLE} to a folder where you may write.") from error
    return path


@contextmanager
def usable(path: Path, purpose: str) -> Iterator[None]:
    """Raise ``WorkspaceError`` for what SQLite says of a file that must not be lost: it holds what was paid for."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL  # Python's own errors have no code
        remedy = "Free some space" if is_full else f"Move it away, or set {VARIABLE} to another folder"
        raise WorkspaceError(f"{path} cannot be used {purpose}: {error}. {remedy}.") from error


def content_key(*texts: str) -> bytes:
    """Return 32 bytes that stand for texts in their order; no two different lists run together to the same bytes."""
    digest = hashlib.sha256()
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.digest()


def open_wal(path: Path, synchronous: str, schema: str = "") -> sqlite3.Connection:
    """Return a connection to a SQLite file with a write-ahead log; one thread at a time may use it.

    ``synchronous``: SQLite's pragma (``OFF``, ``NORMAL``, ``FULL``); ``schema``: a statement that creates a table.
    """
    database = sqlite3.connect(path, timeout=_PATIENCE, check_same_thread=False)
    try:
        _write_ahead(database)
        database.execute(f"PRAGMA synchronous = {synchronous}")
        database.execute(schema)
    except BaseException:
        database.close()
        raise
    return database


def _write_ahead(database: sqlite3.Connection) -> None:
    """Switch a file to a write-ahead log. SQLite does not wait for a lock there, as it does elsewhere: another thread
    may be opening the same new file."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.05)


def select_keys(
    database: sqlite3.Connection, query: str, keys: Sequence[bytes], *more: object
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query with ``key IN ({keys})`` for any number of keys; ``more``: later parameters."""
    for start in range(0, len(keys), _LOOKUP):
        part = keys[start : start + _LOOKUP]
        yield from database.execute(query.format(keys=",".join("?" * len(part))), (*part, *more))


class ContentStore:
    """Bytes by the hash of what they were made of, in one table of a SQLite file with a write-ahead log.

    Several threads and processes may use it at once, and any of them may be killed. Each value is kept with its
    checksum: one that no longer fits is not returned, and the next write replaces it. ``limit``: bytes of values kept;
    above it the oldest are dropped (None: all are kept). Where the file cannot be used (read-only folder, full disk,
    damage) nothing is read and nothing is kept, and a warning that names ``what`` says so once.
    """

    def __init__(self, path: Path, table: str, what: str, limit: int | None = None) -> None:
        self.path, self.table, self.limit = path, table, limit
        self._what = what
        self._warned = False

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of those keys that are known, as they were written."""
        values: dict[bytes, bytes] = {}
        try:
            with closing(self._open()) as database:
                rows = select_keys(database, f"SELECT key, value FROM {self.table} WHERE key IN ({{keys}})", keys)
                values.update((key, value[:-4]) for key, value in rows if _whole(value))
        except (OSError, sqlite3.Error) as error:
            self._warn(error)
        return values

    def write(self, values: Mapping[bytes, bytes]) -> None:
        """Add values, then drop the oldest tenth until the limit holds."""
        rows = [(key, value + zlib.crc32(value).to_bytes(4, "big")) for key, value in values.items()]
        try:
            with closing(self._open()) as database, database:
                database.execute("BEGIN IMMEDIATE")
                database.executemany(f"INSERT OR REPLACE INTO {self.table} VALUES (?, ?)", rows)
                oldest = f"SELECT rowid FROM {self.table} ORDER BY rowid"
                tenth = f"LIMIT (SELECT count(*) / 10 + 1 FROM {self.table})"
                drop = f"DELETE FROM {self.table} WHERE rowid IN ({oldest} {tenth})"
                while self.limit is not None and self._used(database) > self.limit:
                    if not database.execute(drop).rowcount:
                        break  # an empty file has pages too
        except (OSError, sqlite3.Error) as error:
            self._warn(error)

    @staticmethod
    def _used(database: sqlite3.Connection) -> int:
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    def _open(self) -> sqlite3.Connection:
        """Return a connection of this call's own: they must not pass between threads."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        schema = f"CREATE TABLE IF NOT EXISTS {self.table} (key BLOB PRIMARY KEY, value BLOB)"
        return open_wal(self.path, "NORMAL", schema)

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            _LOG.warning("%s are not kept: %s (%s). Delete the file or set %s.", self._what, error, self.path, VARIABLE)


def _whole(value: object) -> bool:  # one changed bit makes a text of SQLite's blob
    return isinstance(value, bytes) and zlib.crc32(value[:-4]).to_bytes(4, "big") == value[-4:]


def vector_store() -> ContentStore:
    """Return the one store of sentence and token vectors, for all workspaces and processes of a user."""
    return ContentStore(cache_folder("vectors.sqlite"), "vectors", "Vectors", _VECTOR_BYTES)


def leak_store() -> ContentStore:
    """Return the store of what was found in the hints of a question (about 100 bytes each: it has no limit)."""
    return ContentStore(cache_folder("leaks.sqlite"), "findings", "Findings of the leakage filter")


def equivalence_store() -> ContentStore:
    """Return the store of answer equivalence probabilities (25 bytes each with their key: it has no limit)."""
    return ContentStore(cache_folder("equivalence.sqlite"), "probabilities", "Equivalence probabilities")
