"""Replies of language models, copied to the store of the workspace that rests on them: no machine pays for one twice.

::

    replies/<time>-<random>.parquet   rows of the generation cache that a run was given since the last copy

A reply counts on its own machine as soon as it is on disk. Every ``remote.replies_seconds``, and at the end of a run,
new ones go to the store as one more object, which never changes. A machine that opens the generation cache for this
workspace first adds all of them to its own. So a lost machine takes the replies of the last few minutes with it, and
nothing else.
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

from quit.common.cache import select_keys
from quit.errors import QuitError, WorkspaceError
from quit.models.generation.cache import COLUMNS, GenerationCache, insert, is_fit, open_cache
from quit.store.objects import Objects

_LOG = logging.getLogger(__name__)
_NAMES = COLUMNS.split(", ")
_TYPES = {"key": pa.binary(), "created": pa.float64()}
_TYPES |= dict.fromkeys(("sample", "prompt_tokens", "completion_tokens"), pa.int64())
_SCHEMA = pa.schema([(name, _TYPES.get(name, pa.string())) for name in _NAMES])
_TABLES = """
CREATE TABLE IF NOT EXISTS remote_segments (place TEXT, name TEXT, PRIMARY KEY (place, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS remote_replies (place TEXT, key BLOB, PRIMARY KEY (place, key)) WITHOUT ROWID;
"""
UNDER = "replies"


class SharedReplies:
    """Copies the replies of one generation cache to a store, and remembers in the cache's file what is there."""

    def __init__(self, objects: Objects, cache: GenerationCache) -> None:
        self._objects = objects
        self._cache = cache
        self._place = objects.identity
        self._new: set[bytes] = set()
        self._flushing = threading.Lock()
        with closing(self._open()) as database:
            database.executescript(_TABLES)
        self._bring()
        cache.heard = self._new.update
        threading.Thread(target=self._every_few_minutes, name="replies", daemon=True).start()
        atexit.register(self._try_to_flush)

    def _bring(self) -> None:
        """Add the replies of the store to the cache."""
        with closing(self._open()) as database:
            names = {
                name for (name,) in database.execute("SELECT name FROM remote_segments WHERE place = ?", (self._place,))
            }
            fresh = sorted(set(self._objects.listing(UNDER)) - names, reverse=True)  # what replaced a reply comes first
            for key in fresh:
                try:
                    rows = pq.read_table(io.BytesIO(self._objects.read(key) or b"")).cast(_SCHEMA)
                except (pa.ArrowException, OSError) as error:
                    raise WorkspaceError(
                        f"{self._objects.url}/{key} cannot be read: {error}. Delete it; its replies are asked for "
                        "again."
                    ) from error
                with database:
                    database.execute("BEGIN IMMEDIATE")
                    insert(database, (tuple(row.values()) for row in rows.to_pylist()))
                    self._remember(database, key, rows["key"].to_pylist())

    def flush(self) -> int:
        """Copy to the store what was given out or made since the last time; returns how many replies were new there."""
        with self._flushing:
            if not self._new:
                return 0
            keys = sorted(self._new.copy())  # other threads add to it
            copied = self._copy(keys)
            self._new.difference_update(keys)
            return copied

    def _copy(self, keys: list[bytes]) -> int:
        with closing(self._open()) as database:
            query = (
                f"SELECT {COLUMNS}, checksum FROM replies WHERE key IN ({{keys}}) AND key NOT IN "
                "(SELECT key FROM remote_replies WHERE place = ?)"
            )
            rows = [row[:-1] for row in select_keys(database, query, keys, self._place) if is_fit(row)]
            if not rows:
                return 0
            table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=_NAMES).cast(_SCHEMA)
            buffer = io.BytesIO()
            pq.write_table(table, buffer, compression="zstd")
            key = f"{UNDER}/{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.parquet"
            self._objects.write(key, buffer.getvalue())
            with database:
                self._remember(database, key, [row[0] for row in rows])
            return len(rows)

    def _remember(self, database: sqlite3.Connection, segment: str, keys: Sequence[bytes]) -> None:
        database.execute("INSERT OR IGNORE INTO remote_segments VALUES (?, ?)", (self._place, segment))
        database.executemany("INSERT OR IGNORE INTO remote_replies VALUES (?, ?)", [(self._place, key) for key in keys])

    def _every_few_minutes(self) -> None:
        while True:
            time.sleep(self._objects.how.replies_seconds)
            self._try_to_flush()

    def _try_to_flush(self) -> None:
        try:
            self.flush()
        except (QuitError, sqlite3.Error) as error:
            _LOG.warning("new replies are on this machine only for now: %s", error)

    def _open(self) -> sqlite3.Connection:
        return open_cache(self._cache.path)
