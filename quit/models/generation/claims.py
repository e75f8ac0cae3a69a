"""Who is asking for what just now, over all processes that share a generation cache: equal requests are paid for once, by one of them.

A claim belongs to a process, and a process holds a lock on a file of its own as long as it lives. The system frees that lock however
the process dies, so its claims go to whoever wants them next; no clock and no process number (which another machine may use too) decides.
"""

from __future__ import annotations

import atexit
import secrets
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from filelock import FileLock, Timeout

from quit.errors import WorkspaceError

_LOOKUP = 500  # keys a query
_PATIENCE = 60.0  # seconds that a busy file is waited for


class Claims:
    """Claims beside a cache file, in ``<cache>-claims.sqlite`` and the folder ``<cache>-claims``. Thread-safe.

    A process claims a key for itself as a whole: which of its threads asks is for the caller to settle before.
    """

    def __init__(self, cache: Path) -> None:
        self._path = cache.with_name(f"{cache.stem}-claims.sqlite")
        self._folder = cache.with_name(f"{cache.stem}-claims")
        self._owner = secrets.token_hex(8)
        self._alive: FileLock | None = None
        self._lock = threading.Lock()

    def take(self, keys: Sequence[bytes]) -> set[bytes]:
        """Claim keys; returns those that are this process's now. The others are being asked for by living processes.

        Raises :class:`WorkspaceError` where the file cannot be used.
        """
        if not keys:
            return set()
        try:
            with self._lock:
                self._show_life()
                with closing(self._open()) as database:
                    owners = self._claim(database, keys)
                    dead = [owner for owner in set(owners.values()) if owner != self._owner and not self._lives(owner)]
                    if dead:
                        with database:
                            database.executemany("DELETE FROM claims WHERE owner = ?", [(owner,) for owner in dead])
                        owners = self._claim(database, keys)
        except (OSError, sqlite3.Error) as error:
            raise WorkspaceError(
                f"{self._path} cannot be used: {error}. Free space, mend the folder's rights, or set QUIT_CACHE to another folder."
            ) from error
        return {key for key, owner in owners.items() if owner == self._owner}

    def release(self, keys: Sequence[bytes]) -> None:
        """Let go of keys: what was answered is in the cache by now, what was not is anyone's."""
        try:
            with self._lock, closing(self._open()) as database, database:
                mine = [(key, self._owner) for key in keys]
                database.executemany("DELETE FROM claims WHERE key = ? AND owner = ?", mine)
        except (OSError, sqlite3.Error):
            return  # a claim that stays costs others a wait until this process ends, and nothing else

    def _claim(self, database: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Claim what is free; returns key -> owner."""
        owners: dict[bytes, str] = {}
        with database:
            database.executemany("INSERT OR IGNORE INTO claims VALUES (?, ?)", [(key, self._owner) for key in keys])
            for start in range(0, len(keys), _LOOKUP):
                some = keys[start : start + _LOOKUP]
                marks = ",".join("?" * len(some))
                owners.update(database.execute(f"SELECT key, owner FROM claims WHERE key IN ({marks})", some))
        return owners

    def _show_life(self) -> None:
        if self._alive is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            alive = FileLock(self._folder / self._owner, thread_local=False)
            alive.acquire()
            self._alive = alive
            atexit.register(self._end)

    def _end(self) -> None:
        if self._alive is not None:
            self._alive.release()
            (self._folder / self._owner).unlink(missing_ok=True)

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
        database = sqlite3.connect(self._path, timeout=_PATIENCE)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = OFF")  # claims mean nothing after a power cut
            database.execute(
                "CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID"
            )
        except BaseException:
            database.close()
            raise
        return database
