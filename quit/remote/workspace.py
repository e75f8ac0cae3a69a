"""A workspace in a store: a local mirror in front of it, so that everything that reads files goes on reading files.

Parts and manifests never change once they are there, so the mirror needs no coherence protocol: a file it has is the right one, a
file it lacks is fetched when it is first read, with the manifest's checksum. The few files that do change (``state.json``,
``build.json``, ``usage.jsonl``, what a review remembers) are read anew whenever the workspace is opened or locked, and written to the
store before anything else happens. A finished part is in the store before its shard counts as done; its manifest comes after all
parts, ``state.json`` after the manifest: the order in which they are written on a disk.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow as pa
from filelock import FileLock

import schemas
from quit.cache import cache_folder
from quit.errors import WorkspaceError
from quit.estimate import Estimate
from quit.files import file_checksum, known_checksum, replacing, write_json, writing
from quit.parts import part_name
from quit.ranges import Range
from quit.remote.lease import Lease
from quit.remote.replies import Replies
from quit.remote.store import Store, open_store
from quit.settings.remote import Remote
from quit.workspace import Workspace

VARIABLE = "QUIT_MIRRORS"
_STALE = 86400.0  # seconds after which a file on its way is a killed run's
CHANGING = (
    *("workspace.json", "build.json", "state.json", "usage.jsonl", "runs.jsonl"),
    *("reviews/applied.json", "reviews/project.json", "reviews/sync.json"),
)
"""What is written more than once."""
_LOGS = ("overrides/part-*.parquet", "reviews/part-*.parquet")
_RELEASES = "releases/*/release.json"


def mirror_folder(store: Store) -> Path:
    """Return the local folder in front of a store: in ``$QUIT_MIRRORS``, else in the cache folder's ``mirrors``."""
    root = os.environ.get(VARIABLE)
    digest = hashlib.sha256(store.identity.encode()).hexdigest()[:16]
    return (Path(root).expanduser().absolute() if root else cache_folder("mirrors")) / digest / (_last(store.url))


class RemoteWorkspace(Workspace):
    """A workspace behind a URL. ``path`` is its mirror."""

    def __init__(self, url: str, how: Remote | None = None) -> None:
        self.store = open_store(url, how)
        super().__init__(mirror_folder(self.store))
        self._known: dict[str, int] = {}
        self._lease: Lease | None = None
        self._replies: Replies | None = None
        self._sync()

    def __str__(self) -> str:
        return self.store.url

    @property
    def address(self) -> str:
        """The URL."""
        return self.store.url

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return _last(self.store.url)

    @property
    def exists(self) -> bool:
        """Whether there is a workspace."""
        return "workspace.json" in self._known

    @property
    def empty(self) -> bool:
        """Whether there is nothing; what a killed run left of its lock is nothing."""
        return all(key.startswith("locks/") for key in list(self._known))

    def heed(self, settings: Any) -> None:
        """Go by the settings of a run."""
        if settings.remote != self.store.how:
            self.store.use(settings.remote)

    def make(self) -> None:
        """Write what makes the place a workspace."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            temporary = self._incoming()
            write_json(temporary, {"format": schemas.WORKSPACE_FORMAT, "id": uuid.uuid4().hex})
        self.store.create("workspace.json", temporary)  # another machine's, made at the same moment, is as good
        temporary.unlink()
        self._sync()

    # The lock

    @contextmanager
    def lock(self, seconds: float, waiting: Callable[[str], None] = lambda _: None) -> Iterator[None]:
        """Hold the workspace for one run, by a lease in the store (:mod:`quit.remote.lease`). Raises :class:`WorkspaceError`."""
        lease = Lease(self.store)
        lease.acquire(seconds, waiting)
        try:
            self._sync()  # the run before may have been another machine's
            self._clear()
            self._lease = lease
            yield
            if self._replies is not None:
                self._replies.flush()
        finally:
            self._lease = None
            lease.release()

    def refresh(self) -> None:
        """Take notice of what others have written. Who holds the lock knows it already."""
        if self._lease is None:
            self._sync()

    def look(self) -> None:
        """Take notice of what workers elsewhere have written for the run that holds the workspace."""
        self._sync()

    @property
    def lock_info(self) -> dict[str, Any] | None:
        """What the lease says of its holder (``pid``, ``host``, ``since``), dead or alive; None where it was given back."""
        return Lease(self.store).info()

    # Writing

    def put_json(self, name: str, value: Any) -> None:
        """Write one of the small files that change, here and in the store."""
        self._check()
        with self._mirror():
            write_json(self.path / name, value)
            self._upload(self.path / name)

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Change a small file of the mirror and copy it to the store afterwards, replacing what is there."""
        with self._mirror():
            yield
            if (self.path / name).is_file():
                self._upload(self.path / name)

    def publish_once(self, path: Path) -> None:
        """Copy a part or a manifest to the store. Where another run has put one there first, that one counts, here too."""
        key = self._key(path)
        if self.store.create(key, path):
            self._known[key] = path.stat().st_size
        else:
            self._fetch(key, None)

    def place_new(self, temporary: Path, target: Path) -> bool:
        """Give a finished file its name, in the store first; False where the name is taken."""
        if not self.store.create(self._key(target), temporary):
            self._sync()
            return False
        self._known[self._key(target)] = temporary.stat().st_size
        with self._mirror():
            os.replace(temporary, target)
        return True

    def publish_folder(self, folder: Path, last: str) -> None:
        """Copy a folder to the store; ``last`` is the file whose presence marks it as complete."""
        marker = self._key(folder / last)
        if self.store.read(marker) == (folder / last).read_bytes():
            return
        self._check()
        wanted = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / last]
        left = set(self.store.listing(self._key(folder))) - {self._key(path) for path in wanted}
        if marker in left:
            raise WorkspaceError(f"{self.store.url}/{marker} is there already with other content. Choose another name.")
        self.store.delete(left)  # of a copy that was interrupted
        for path in [*wanted, folder / last]:
            self._upload(path)

    def drop_other_parts(self, folder: Path, wanted: Sequence[str]) -> None:
        """Remove what is no part of a table, here and in the store."""
        super().drop_other_parts(folder, wanted)
        self.remove([folder / name for name in self.files_below(folder) if name not in wanted])

    def append(self, name: str, make: Callable[[pa.Table], pa.Table]) -> pa.Table:
        """Append rows to a log as one part and return them. Of two machines that append at once, the second makes its rows anew."""
        (self.path / name).mkdir(exist_ok=True)
        with FileLock(self.path / name / "lock"):  # other processes of this machine
            while True:
                self._sync()
                rows = make(self.read_log(name)).cast(schemas.table(name).schema)
                if not len(rows) or self.add_log_part(name, rows) is not None:
                    return rows

    def flush_replies(self) -> None:
        """Copy the replies that came in so far to the store."""
        if self._replies is not None:
            self._replies.flush()

    def keep_replies(self, cache: Any) -> None:
        """Bring the replies that were paid for, and copy new ones to the store from now on."""
        if self._replies is None:
            self._replies = Replies(self.store, cache)

    # What is there

    def has(self, path: Path) -> bool:
        """Whether the store has a file, as far as is known since the last :meth:`refresh`."""
        return self._key(path) in self._known

    def files_below(self, folder: Path) -> dict[str, float]:
        """Return the name of every file below a folder, relative to it; the store's times are not asked for."""
        under = self._key(folder) + "/"
        return {key.removeprefix(under): 0.0 for key in self._known if key.startswith(under)}

    def part_done(self, folder: Path, outputs: Sequence[str], shard: Range, *, publish: bool = False) -> bool:
        """Whether the store has this shard's parts; ``publish``: those that a killed run left here only are copied there."""
        paths = [folder / name / part_name(shard) for name in outputs]
        if not all(self._key(path) in self._known or (publish and path.is_file()) for path in paths):
            return False
        for path in paths:
            if self._key(path) not in self._known:
                self.publish_once(path)
        return True

    def manifest(self, folder: Path) -> dict[str, Any] | None:
        """Return the manifest of a complete stage run, or None."""
        key = self._key(folder / "manifest.json")
        size = self._known.get(key)
        if size is None:
            return None
        if not (folder / "manifest.json").is_file() or (folder / "manifest.json").stat().st_size != size:
            self._fetch(key, None)
        return super().manifest(folder)

    def damaged(self) -> list[Path]:
        """Return the current part files that the store lacks or has with another checksum; a damaged mirror is repaired."""
        found = []
        for path, part in self.current_parts():
            try:
                if self.part_fault(path, part) is None:
                    self.bring([path])
                    continue
            except WorkspaceError:
                pass
            found.append(path)
        return found

    def part_fault(self, path: Path, part: Mapping[str, Any] | None) -> str | None:
        """Return what is wrong with a part, None where nothing is.

        Of a complete stage run the store is asked for the size alone: its bytes are compared when they are fetched. Where the mirror's
        copy is the damaged one, that is fetched anew.
        """
        size = self._known.get(self._key(path))
        if part is not None:
            return (
                None
                if size == part["bytes"]
                else "is missing in the store"
                if size is None
                else "was altered in the store"
            )
        fault = super().part_fault(path, None)
        if fault is not None and size is not None:
            self._fetch(self._key(path), None)
            fault = super().part_fault(path, None)
        return fault

    def remove(self, paths: Sequence[Path]) -> None:
        """Remove files, in the store first."""
        gone = [key for path in paths if (key := self._key(path)) in self._known]
        if gone:
            self._check()
            self.store.delete(gone)
        for key in gone:
            self._known.pop(key, None)
        super().remove(paths)

    def discard(self, folder: Path) -> None:
        """Remove a stage run, in the store first: its manifest, then its parts."""
        self.remove([folder / "manifest.json"])
        self.remove([folder / name for name in self.files_below(folder)])
        super().discard(folder)

    def bring(self, paths: Sequence[Path]) -> None:
        """Fetch those of these files that the mirror lacks, or has in another state than the manifest says."""
        wanted = [(self._key(path), self._expected(path)) for path in dict.fromkeys(paths)]
        wanted = [(key, part) for key, part in wanted if not self._sound(self.path / key, part)]
        if not wanted:
            return
        total = sum(part["bytes"] if part else self._known.get(key, 0) for key, part in wanted) >> 10
        estimate, done, told = Estimate(total), 0, time.monotonic()
        with ThreadPoolExecutor(self.store.how.connections, thread_name_prefix="fetch") as pool:
            for size in pool.map(lambda one: self._fetch(*one), wanted):
                done += size >> 10
                if time.monotonic() - told > self.store.how.quiet_seconds and sys.stderr.isatty():
                    told = time.monotonic()
                    sys.stderr.write(f"fetching from {self.store.url}: {estimate.at(done)} KiB\n")

    def bring_folder(self, folder: Path) -> None:
        """Fetch every file below a folder."""
        under = self._key(folder) + "/"
        self.bring([self.path / key for key in list(self._known) if key.startswith(under)])

    # The mirror

    def _sync(self) -> None:
        """Bring what is small and may have changed, and forget here what is gone there."""
        with writing(self.path), self._mirror():
            known = self.store.listing()
            for name in CHANGING:
                value = self.store.read(name) if name in known else None
                path = self.path / name
                if name == "workspace.json" and path.is_file() and path.read_bytes() != value:
                    for of_another in ("tables", "releases"):  # the place was cleared, and perhaps built anew
                        shutil.rmtree(self.path / of_another, ignore_errors=True)
                if value is None:
                    path.unlink(missing_ok=True)
                elif not path.is_file() or path.read_bytes() != value:
                    with replacing(path) as temporary:
                        temporary.write_bytes(value)
            for pattern in _LOGS:
                for path in self.path.glob(pattern):
                    if self._key(path) not in known:  # of a workspace that was removed
                        path.unlink()
            self._known = dict(known)  # other threads add what they write
            self.bring([self.path / key for key in known if any(fnmatchcase(key, one) for one in (*_LOGS, _RELEASES))])
        for run, fingerprint in self.state.items():
            ending = f"_{run.replace(':', '_')}/{fingerprint}/manifest.json"
            for key in [key for key in known if key.startswith("tables/") and key.endswith(ending)]:
                self.manifest((self.path / key).parent)

    def _clear(self) -> None:
        """Remove what killed runs left: halves of files, releases that never got into the store. Only under the lock."""
        with self._mirror():
            self._remove_leftovers()
        for path in (self.path / ".incoming").glob("*"):
            if time.time() - path.stat().st_mtime > _STALE:
                path.unlink(missing_ok=True)
        for path in self.path.glob(_RELEASES):
            if not self.has(path):
                shutil.rmtree(path.parent)

    def _fetch(self, key: str, part: Mapping[str, Any] | None) -> int:
        """Fetch an object whole, twice where it does not arrive as its manifest says; returns its bytes."""
        target = self.path / key
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            for _ in range(2):
                temporary = self._incoming()
                try:
                    if not self.store.fetch(key, temporary):
                        break
                    if file_checksum(temporary) == (part or {}).get("sha256", file_checksum(temporary)):
                        os.replace(temporary, target)
                        return target.stat().st_size
                finally:
                    temporary.unlink(missing_ok=True)
            else:
                raise WorkspaceError(
                    f"{self.store.url}/{key} does not have the checksum of its manifest. Delete its folder in the store and "
                    "build again."
                )
        raise WorkspaceError(
            f"{self.store.url}/{key} is missing. Restore it, or delete its folder in the store and build again."
        )

    def _sound(self, path: Path, part: Mapping[str, Any] | None) -> bool:
        """Whether the mirror's file is the one that is meant."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return False
        if part is None:
            return found.st_size == self._known.get(self._key(path), found.st_size)
        return found.st_size == part["bytes"] and known_checksum(path) == part["sha256"]

    def _expected(self, path: Path) -> dict[str, Any] | None:
        if path.relative_to(self.path).parts[0] == "tables":
            manifest = self.manifest(path.parents[1]) or {"tables": {}}
            for part in manifest["tables"].get(path.parent.name, {}).get("parts", ()):
                if part["file"] == path.name:
                    return part
        return None

    def _upload(self, path: Path) -> None:
        self.store.write(self._key(path), path)
        self._known[self._key(path)] = path.stat().st_size

    def _check(self) -> None:
        if self._lease is not None:
            self._lease.check()

    def _key(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()

    def _incoming(self) -> Path:
        """A name for a file on its way; not below ``tables``, where a run removes what killed ones left."""
        folder = self.path / ".incoming"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / uuid.uuid4().hex

    @contextmanager
    def _mirror(self) -> Iterator[None]:
        """Keep other processes of this machine from changing the mirror's small files meanwhile."""
        self.path.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path / ".mirror.lock"):
            yield


def _last(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]
