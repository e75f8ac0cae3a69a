"""A workspace in an object store, read through a local copy: DuckDB and Arrow need paths, and speed needs it.

A part that is here as its manifest says is the right one; any other is fetched when it is first read. The few files
that change (:data:`quit.store.base.CHANGING`) and the list of what there is are read when the store is opened or
locked, and when a caller asks; manifests, which a build can make again, when they are first read after that. What is
written is in the store before the call returns.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import translate
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock

from quit.common.cache import cache_folder
from quit.common.estimate import Estimate
from quit.common.files import replacing, writing
from quit.errors import WorkspaceError
from quit.store.base import CHANGING, MARKER, Make, Part
from quit.store.folder import FolderStore
from quit.store.lease import Lease
from quit.store.objects import CONNECTIONS, Objects, open_objects
from quit.store.parts import damage
from quit.store.state_files import read_state

VARIABLE = "QUIT_MIRRORS"
_STALE = 86400.0  # seconds after which a file on its way is a killed run's
_QUIET = 2.0  # seconds of fetching between two lines on the terminal
_LOGS = ("overrides/part-*.parquet", "reviews/part-*.parquet")
_RELEASES = "releases/*/release.json"


def copy_folder(objects: Objects) -> Path:
    """Return the folder of the local copy: in ``$QUIT_MIRRORS``, else in the cache folder's ``mirrors``."""
    root = os.environ.get(VARIABLE)
    digest = hashlib.sha256(objects.identity.encode()).hexdigest()[:16]
    return (Path(root).expanduser().absolute() if root else cache_folder("mirrors")) / digest / Path(objects.url).name


class RemoteStore:
    """Objects under a URL as a :class:`quit.store.base.Store`, as they were at the last look."""

    def __init__(self, url: str) -> None:
        self.objects = open_objects(url)
        self.address = self.objects.url
        self.path = copy_folder(self.objects)
        self._copy = FolderStore(self.path)
        self._sizes: dict[str, int] = {}  # key -> bytes of every object that is known here
        self._fetched: set[str] = set()  # since the last look
        self._lease: Lease | None = None
        self._look()

    def __str__(self) -> str:
        return self.address

    def has(self, path: Path, *, now: bool = False) -> bool:
        if now:
            self._look()
        return self._key(path) in self._sizes

    def below(self, folder: Path) -> Iterator[tuple[Path, float]]:
        under = "" if folder == self.path else f"{self._key(folder)}/"
        for key in list(self._sizes):
            if key.startswith(under) and not key.startswith("locks/"):
                yield self.path / key, 0.0

    def fetch(self, parts: Mapping[Path, Part | None]) -> None:
        missing = [(path, part) for path, part in parts.items() if not self._is_here(path, part)]
        sizes = (part["bytes"] if part else self._sizes.get(self._key(path), 0) for path, part in missing)
        estimate, size_done, last_line = Estimate(sum(sizes) >> 10), 0, time.monotonic()
        with ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="fetch") as pool:
            for size in pool.map(lambda pair: self._fetch(*pair), missing):
                size_done += size >> 10
                if time.monotonic() - last_line > _QUIET and sys.stderr.isatty():
                    last_line = time.monotonic()
                    sys.stderr.write(f"fetching from {self}: {estimate.at(size_done)} KiB\n")

    def fault(self, path: Path, part: Part | None) -> str | None:
        """Return what is wrong with a part in the store: by its size, or by reading one that no manifest describes.

        A damaged copy of the latter is fetched again.
        """
        size = self._sizes.get(self._key(path))
        if part is not None:
            wrong = "is missing in the store" if size is None else "was altered in the store"
            return None if size == part["bytes"] else wrong
        fault = damage(path, None)
        if fault is not None and size is not None:
            self._fetch(path, None)
            fault = damage(path, None)
        return fault

    def write(self, path: Path, make: Make) -> None:
        self._check_lease()
        with self._changing_copy():
            self._copy.write(path, make)
            self._upload(path)

    @contextmanager
    def changing(self, path: Path) -> Iterator[Path]:
        with self._changing_copy():
            with self._copy.changing(path):
                yield path
            if path.is_file():
                self._upload(path)

    def add(self, path: Path, make: Make) -> None:
        self._copy.add(path, make)
        key, size = self._key(path), path.stat().st_size
        self._sizes[key] = size if self.objects.create(key, path) else self._fetch(path, None)

    def create(self, path: Path, make: Make) -> bool:
        def place(temporary: Path, target: Path) -> None:
            if not self.objects.create(self._key(target), temporary):
                raise FileExistsError
            self._sizes[self._key(target)] = temporary.stat().st_size
            with self._changing_copy():
                os.replace(temporary, target)

        created = self._copy.create(path, make, place)
        if not created:
            self._look()
        return created

    def add_folder(self, source: Path, target: Path, last: str) -> None:
        if self.objects.read(self._key(target / last)) is not None:
            raise WorkspaceError(
                f"{self}/{self._key(target / last)} is there already with other content. Choose another name."
            )
        self._check_lease()
        self.remove([path for path, _ in self.below(target)])  # of a copy that was interrupted
        self._copy.add_folder(source, target, last)
        for path in sorted((path for path, _ in self._copy.below(target)), key=lambda path: path == target / last):
            self._upload(path)

    def remove(self, paths: Iterable[Path]) -> None:
        paths = list(paths)
        keys = [key for key in map(self._key, paths) if key in self._sizes]
        if keys:
            self._check_lease()
            self.objects.delete(keys)
        for key in keys:
            self._sizes.pop(key, None)
        self._copy.remove(paths)

    @contextmanager
    def lock(self, seconds: float, waiting: Callable[[str], None]) -> Iterator[None]:
        lease = Lease(self.objects)
        lease.acquire(seconds, waiting)
        try:
            self._look()  # the run before may have been another machine's
            with self._changing_copy():
                self._copy.remove_leftovers(_STALE)
                for path in self.path.glob(_RELEASES):
                    if not self.has(path):  # it never got into the store
                        shutil.rmtree(path.parent)
            self._lease = lease
            yield
        finally:
            self._lease = None
            lease.release()

    def holder(self) -> dict[str, Any] | None:
        return Lease(self.objects).info()

    def _look(self) -> None:
        """Fetch what is small and may have changed, and forget here what is gone there."""
        with writing(self.path), self._changing_copy():
            sizes = self.objects.listing()
            for name in CHANGING:
                path = self.path / name
                before = path.read_bytes() if path.is_file() else None
                now = self.objects.read(name) if name in sizes else None
                if now == before:
                    continue
                if name == MARKER and before is not None:  # the place was cleared, and perhaps built again
                    for folder in ("tables", "releases"):
                        shutil.rmtree(self.path / folder, ignore_errors=True)
                if now is None:
                    path.unlink()
                else:
                    self._copy.write(path, partial(Path.write_bytes, data=now))
            self._sizes, self._fetched = sizes, set()
            stale_paths = (path for pattern in _LOGS for path in self.path.glob(pattern) if not self.has(path))
            self._copy.remove(list(stale_paths))  # of a workspace that was removed
            runs = read_state(self.path / "state.json", {}).items()
            manifests = (f"tables/*_{run.replace(':', '_')}/{mark}/manifest.json" for run, mark in runs)
            small = re.compile("|".join(map(translate, (*_LOGS, _RELEASES, *manifests))))
            self.fetch({self.path / key: None for key in list(sizes) if small.match(key)})

    def _fetch(self, path: Path, part: Part | None) -> int:
        """Fetch a file, twice where it does not arrive as its manifest says; returns its bytes."""
        key = self._key(path)
        with writing(path), replacing(path) as temporary:
            for _ in range(2):
                if not self.objects.fetch(key, temporary):
                    raise WorkspaceError(
                        f"{self}/{key} is missing. Restore it, or delete its folder in the store and build again."
                    )
                if part is None or damage(temporary, part) is None:
                    self._fetched.add(key)
                    return temporary.stat().st_size
            raise WorkspaceError(
                f"{self}/{key} does not have the checksum of its manifest. Delete its folder in the store and build "
                "again."
            )

    def _is_here(self, path: Path, part: Part | None) -> bool:
        if part is not None:
            return damage(path, part) is None
        key = self._key(path)
        if path.suffix == ".json" and key not in self._fetched:  # other tables can have a manifest of the same size
            return False
        return path.is_file() and path.stat().st_size == self._sizes.get(key)

    def _upload(self, path: Path) -> None:
        self.objects.write(self._key(path), path)
        self._sizes[self._key(path)] = path.stat().st_size

    def _check_lease(self) -> None:
        if self._lease is not None:
            self._lease.check()

    def _key(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()

    @contextmanager
    def _changing_copy(self) -> Iterator[None]:
        """Keep other processes of this machine from changing the copy's small files meanwhile."""
        self.path.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path / ".mirror.lock"):
            yield
