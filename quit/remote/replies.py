"""Replies of language models that a workspace in a store rests on: copied there, so that no machine pays for them twice.

::

    replies/<time>-<random>.parquet   rows of the generation cache that a run was given since the last copy; never changed

A reply counts on its own machine as soon as it is on disk. Every ``remote.replies_seconds``, and at the end of a run, those that are
new go to the store as one more object. A machine that opens the generation cache for this workspace first adds all of them to its own.
So a machine that is lost takes the replies of the last few minutes with it, and nothing else.
"""

from __future__ import annotations

import atexit
import io
import logging
import sqlite3
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq

from quit.cache import open_wal, select_keys
from quit.errors import QuitError, WorkspaceError
from quit.models.generation.cache import COLUMNS, GenerationCache
from quit.remote.store import Store

_LOG = logging.getLogger(__name__)
_NAMES = COLUMNS.split(", ")
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        *((name, pa.string()) for name in ("model", "prompt", "label")),
        ("sample", pa.int64()),
        ("reply", pa.string()),
        ("finish_reason", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("created", pa.float64()),
    ]
)
_TABLES = """
CREATE TABLE IF NOT EXISTS remote_segments (place TEXT, name TEXT, PRIMARY KEY (place, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS remote_replies (place TEXT, key BLOB, PRIMARY KEY (place, key)) WITHOUT ROWID;
"""
UNDER = "replies"


class Replies:
    """Keeps a store's copy of the replies of one generation cache. What is in the store is remembered in the cache's own file."""

    def __init__(self, store: Store, cache: GenerationCache) -> None:
        self._store = store
        self._cache = cache
        self._place = store.identity
        self._new: set[bytes] = set()
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        with closing(self._open()) as database:
            database.executescript(_TABLES)
        self.bring()
        cache.heard = self._hear
        threading.Thread(target=self._every_few_minutes, name="replies", daemon=True).start()
        atexit.register(self._at_exit)

    def bring(self) -> int:
        """Add the replies of the store to the cache; returns how many objects were new."""
        with closing(self._open()) as database:
            known = {
                name for (name,) in database.execute("SELECT name FROM remote_segments WHERE place = ?", (self._place,))
            }
            fresh = sorted(set(self._store.listing(UNDER)) - known)
            for key in fresh:
                try:
                    rows = pq.read_table(io.BytesIO(self._store.read(key) or b"")).cast(_SCHEMA)
                except (pa.ArrowException, OSError) as error:
                    raise WorkspaceError(
                        f"{self._store.url}/{key} cannot be read: {error}. Delete it; its replies are asked for again."
                    ) from error
                values = [tuple(row[name] for name in _NAMES) for row in rows.to_pylist()]
                marks = ",".join("?" * len(_NAMES))
                with database:
                    database.executemany(f"INSERT OR IGNORE INTO generations ({COLUMNS}) VALUES ({marks})", values)
                    self._remember(database, key, [row[0] for row in values])
        return len(fresh)

    def flush(self) -> int:
        """Copy to the store what was given out or made since the last time and is not there yet; returns how many replies."""
        with self._flushing:
            with self._lock:
                waiting, self._new = sorted(self._new), set()
            try:
                return self._copy(waiting)
            except BaseException:
                with self._lock:
                    self._new.update(waiting)
                raise

    def _copy(self, keys: list[bytes]) -> int:
        with closing(self._open()) as database:
            query = (
                f"SELECT {COLUMNS} FROM generations WHERE key IN ({{keys}}) AND key NOT IN "
                "(SELECT key FROM remote_replies WHERE place = ?)"
            )
            rows = list(select_keys(database, query, keys, self._place))
            if not rows:
                return 0
            table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=_NAMES).cast(_SCHEMA)
            written = io.BytesIO()
            pq.write_table(table, written, compression="zstd")
            key = f"{UNDER}/{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.parquet"
            self._store.write(key, written.getvalue())
            with database:
                self._remember(database, key, [row[0] for row in rows])
            return len(rows)

    def _remember(self, database: sqlite3.Connection, segment: str, keys: Sequence[bytes]) -> None:
        database.execute("INSERT OR IGNORE INTO remote_segments VALUES (?, ?)", (self._place, segment))
        database.executemany("INSERT OR IGNORE INTO remote_replies VALUES (?, ?)", [(self._place, key) for key in keys])

    def _hear(self, keys: Sequence[bytes]) -> None:
        with self._lock:
            self._new.update(keys)

    def _every_few_minutes(self) -> None:
        while True:
            time.sleep(self._store.how.replies_seconds)
            self._try()

    def _at_exit(self) -> None:
        if self._new:
            self._try()

    def _try(self) -> None:
        try:
            self.flush()
        except (QuitError, sqlite3.Error) as error:
            _LOG.warning("new replies are on this machine only for now: %s", error)

    def _open(self) -> sqlite3.Connection:
        return open_wal(self._cache.path, "FULL")
