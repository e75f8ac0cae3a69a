"""Equivalence probabilities kept on disk by content: a pair that was paid for once is never paid for again.

One SQLite file with a write-ahead log, appended to only; several threads and processes may use it at once. Deleting it costs time,
nothing else. It serves the embedded model too: keeping costs it nothing that can be measured (9.5 s either way for 1,500 pairs), and a
filter that runs again after an override finds its pairs at once (0.04 s).
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from quit.models.protocols import Equivalence, Pair

_LOG = logging.getLogger(__name__)
CHUNK = 4096
"""Pairs asked at a time: what a killed run loses at most."""
_LOOKUP = 500
_PATIENCE = 60.0


class CachedEquivalence:
    """Wraps an equivalence model; values are the wrapped model's, to the bit.

    A key is the hash of the model's identity, question, reference and candidate. Where the file cannot be used (read-only folder,
    full disk, damage) the model is asked as if there were none, and a warning says so once.
    """

    def __init__(self, equivalence: Equivalence, path: Path) -> None:
        self._equivalence = equivalence
        self._path = path
        self._warned = False
        self.identity = equivalence.identity

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the probability that each pair is equivalent, shape (len(pairs),), float64 in [0, 1]."""
        keys = {pair: self._key(pair) for pair in pairs}
        known = self._read(list(keys.values()))
        fresh = [pair for pair, key in keys.items() if key not in known]
        for start in range(0, len(fresh), CHUNK):
            part = fresh[start : start + CHUNK]
            made = dict(zip((keys[pair] for pair in part), self._equivalence.probability(part).tolist(), strict=True))
            self._write(made)
            known.update(made)
        return np.array([known[keys[pair]] for pair in pairs], dtype=np.float64)

    def _key(self, pair: Pair) -> bytes:
        digest = hashlib.sha256()
        for text in (self.identity, pair.question, pair.reference, pair.candidate):
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(
                len(raw).to_bytes(8, "big") + raw
            )  # lengths: no two different fours run together to the same bytes
        return digest.digest()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, float]:
        found: dict[bytes, float] = {}
        try:
            with closing(self._open()) as database:
                for start in range(0, len(keys), _LOOKUP):
                    part = keys[start : start + _LOOKUP]
                    marks = ",".join("?" * len(part))
                    found.update(database.execute(f"SELECT key, value FROM probability WHERE key IN ({marks})", part))
        except (OSError, sqlite3.Error) as error:
            self._warn(error)
        return found

    def _write(self, values: dict[bytes, float]) -> None:
        try:
            with closing(self._open()) as database, database:
                database.executemany("INSERT OR IGNORE INTO probability VALUES (?, ?)", values.items())
        except (OSError, sqlite3.Error) as error:
            self._warn(error)

    def _open(self) -> sqlite3.Connection:
        """Return a connection of this call's own: they must not pass between threads."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self._path, timeout=_PATIENCE)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.execute("CREATE TABLE IF NOT EXISTS probability (key BLOB PRIMARY KEY, value REAL) WITHOUT ROWID")
        except BaseException:
            database.close()
            raise
        return database

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            _LOG.warning(
                "Equivalence probabilities are not kept: %s (%s). Delete the file or set QUIT_CACHE.", error, self._path
            )
