"""The folder for what may be made again: encodings of corpora, probabilities of slow models. Deleting it costs time, nothing else."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

VARIABLE = "QUIT_CACHE"
_LOG = logging.getLogger(__name__)
_LOOKUP = 500  # keys a query
_PATIENCE = 60.0  # seconds that a busy file is waited for


def cache_folder(name: str) -> Path:
    """Return the cache folder of that name (not made yet): in ``$QUIT_CACHE``, else in ``~/.cache/quit``."""
    root = os.environ.get(VARIABLE)
    return (Path(root).expanduser().absolute() if root else Path.home() / ".cache" / "quit") / name


def content_key(*texts: str) -> bytes:
    """Return 32 bytes that stand for texts in their order; no two different lists run together to the same bytes."""
    digest = hashlib.sha256()
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.digest()


class ContentStore:
    """Values by the hash of what they were made of, in one table of a SQLite file with a write-ahead log, added to only.

    Several threads and processes may use it at once. Where the file cannot be used (read-only folder, full disk, damage) nothing is
    found and nothing is kept, and a warning that names ``what`` says so once.
    """

    def __init__(self, path: Path, table: str, what: str) -> None:
        self._path, self._table, self._what = path, table, what
        self._warned = False

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Any]:
        """Return the values of those keys that are known: a float or bytes, as they were written."""
        found: dict[bytes, Any] = {}
        try:
            with closing(self._open()) as database:
                for start in range(0, len(keys), _LOOKUP):
                    part = keys[start : start + _LOOKUP]
                    marks = ",".join("?" * len(part))
                    found.update(database.execute(f"SELECT key, value FROM {self._table} WHERE key IN ({marks})", part))
        except (OSError, sqlite3.Error) as error:
            self._warn(error)
        return found

    def write(self, values: Mapping[bytes, Any]) -> None:
        """Add values; a key that is there already keeps its own."""
        try:
            with closing(self._open()) as database, database:
                database.executemany(f"INSERT OR IGNORE INTO {self._table} VALUES (?, ?)", values.items())
        except (OSError, sqlite3.Error) as error:
            self._warn(error)

    def _open(self) -> sqlite3.Connection:
        """Return a connection of this call's own: they must not pass between threads."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self._path, timeout=_PATIENCE)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.execute(f"CREATE TABLE IF NOT EXISTS {self._table} (key BLOB PRIMARY KEY, value)")
        except BaseException:
            database.close()
            raise
        return database

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            _LOG.warning(
                "%s are not kept: %s (%s). Delete the file or set %s.", self._what, error, self._path, VARIABLE
            )
