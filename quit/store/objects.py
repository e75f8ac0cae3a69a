"""Objects under a URL, by fsspec: list, read, write, create where there is none. Each appears whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import RLock, Timer
from typing import Any
from urllib.parse import urlsplit

from quit.common.files import replacing
from quit.common.progress import note
from quit.errors import MissingDependency, SettingsError, WorkspaceError, did_you_mean
from quit.settings.settings import Remote
from quit.store.faults import endpoint, is_missing_bucket, translate_errors

PROTOCOLS = ("s3", "file", "memory", "gs", "az", "abfs")
CONNECTIONS = 8
"""Objects fetched at the same time; fewer than botocore's pool of ten."""
_CONNECT_SECONDS, _ANSWER_SECONDS = 10, 60  # longest waits
_SAY_SECONDS = 20.0  # of a request, after which people are told
_MEMORY = RLock()
"""fsspec's memory is one place for all threads and guards nothing."""
_PACKAGES = {"s3": "-c constraints.txt -e '.[object-store]'", "gs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}


def checked_url(text: str) -> str:
    """Return the URL without slashes at its end. Raises ``SettingsError`` for an unknown protocol, or credentials."""
    parts = urlsplit(text)
    if parts.username or parts.password or "@" in parts.netloc:
        raise SettingsError(
            f"{text}: a URL must hold no credentials, such as those before its @. Give them by the environment "
            "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or AWS_PROFILE."
        )
    if parts.scheme not in PROTOCOLS:
        raise SettingsError(f"{text}: {parts.scheme!r} is not a known store.{did_you_mean(parts.scheme, PROTOCOLS)}")
    if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
        raise SettingsError(f"{text}: a shared folder is named by its whole path, such as file:///srv/shared/quit.")
    if not (parts.netloc or parts.path.strip("/")):
        raise SettingsError(f"{text} names no bucket. Expected such as s3://bucket/prefix.")
    return text.rstrip("/")


def open_objects(url: str, how: Remote | None = None) -> Objects:
    """Return the objects under a URL. Raises as :func:`checked_url`, and ``MissingDependency``."""
    url = checked_url(url)
    return (SharedFolder if url.startswith("file:") else Objects)(url, how or Remote())


class Objects:
    """Objects by key below a URL. Safe to use from several threads; every error is one of :mod:`quit.errors`."""

    def __init__(self, url: str, how: Remote) -> None:
        self.url = url
        self.use(how)
        self._guard = _MEMORY if url.startswith("memory:") else nullcontext()
        self._refuses: bool | None = None
        self._last_line = -float("inf")

    def use(self, how: Remote) -> None:
        """Follow these settings from now on."""
        import fsspec

        self.how = how
        protocol = self.url.partition(":")[0]
        try:
            self._files, self._root = fsspec.core.url_to_fs(self.url, **_options(protocol, how))
        except ImportError:
            package = _PACKAGES.get(protocol, "fsspec")
            raise MissingDependency(
                f"{self.url} needs a package that is not installed. Run: pip install {package}"
            ) from None

    @property
    def identity(self) -> str:
        """The URL and the service's address, which tell it from equal URLs of other services."""
        return f"{self.url} {endpoint() if self.url.startswith('s3') else ''}".strip()

    def listing(self, under: str = "") -> dict[str, int]:
        """Return key -> bytes of every object (below ``under``). Raises :class:`WorkspaceError` for a key with ``..``,
        which would name a file outside the folder that it is copied to."""
        self._files.invalidate_cache()
        facts_of = self._ask("list", lambda: self._files.find(self._path(under).rstrip("/"), detail=True)) or {}
        start = len(self._root) + 1
        if unsafe := next((name for name in facts_of if ".." in name[start:].split("/")), None):
            raise WorkspaceError(f"{self.url} has an object {unsafe[start:]!r}: its name leads elsewhere. Delete it.")
        return {name[start:]: facts["size"] or 0 for name, facts in facts_of.items() if len(name) > start}

    def read(self, key: str) -> bytes | None:
        """Return an object, None where there is none."""
        return self._ask("read", lambda: self._files.cat_file(self._path(key)))

    def fetch(self, key: str, target: Path) -> bool:
        """Copy an object to a file; False where there is none."""
        return self._ask("read", lambda: (self._files.get_file(self._path(key), str(target)), True)) is not None

    def write(self, key: str, value: bytes | Path) -> None:
        """Write an object, replacing what is there."""
        self._ask("write to", lambda: self._put(key, value), missing=False)

    def create(self, key: str, value: bytes | Path) -> bool:
        """Write an object where there is none; False, and nothing written, where there is one with other content.

        Of several who create one key at once exactly one gets True. Where the store cannot refuse to replace an
        object, the last writer wins and everyone looks again after ``settle_seconds``.
        """
        with self._guard, self._watched("write to"), translate_errors(self.url, "write to"):
            if self._can_refuse() and self._put_new(key, value):
                return True
            if not self._refuses and self.read(key) is None:
                self._put(key, value)
                time.sleep(self.how.settle_seconds)
            content = value.read_bytes() if isinstance(value, Path) else value
            return self.read(key) == content  # a repeated request meets its own object

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; one that is not there is no fault."""
        for key in keys:
            self._ask("delete from", partial(self._files.rm_file, self._path(key)))

    def _ask(self, doing: str, request: Callable[[], Any], *, missing: bool = True) -> Any:
        """Return the answer to a request, None where there is no such object (``missing``: which is no fault)."""
        with self._guard, self._watched(doing), translate_errors(self.url, doing):
            try:
                return request()
            except FileNotFoundError as error:
                if is_missing_bucket(error) or not missing:
                    raise
                return None

    @contextmanager
    def _watched(self, doing: str) -> Iterator[None]:
        """Say that a request takes long, at most one line a minute; the attempts are fsspec's, which tells of none."""
        timer = Timer(_SAY_SECONDS, self._say, (doing,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _say(self, doing: str) -> None:
        now = time.monotonic()
        if now - self._last_line >= _ANSWER_SECONDS:
            self._last_line = now
            note(
                f"{self.url}: a request to {doing} it has no whole reply within {_SAY_SECONDS:g} s. After "
                f"{_ANSWER_SECONDS} s without data it is sent again ({self.how.attempts} attempts).",
                loud=True,
            )

    def _can_refuse(self) -> bool:
        """Whether the store applies a condition on writing; tried out once on an object for that purpose."""
        if self._refuses is None:
            key = f"locks/probe-{uuid.uuid4().hex}"
            self._put_new(key, b"first")
            try:
                self._refuses = not self._put_new(key, b"second")
            finally:
                self.delete([key])
        return self._refuses

    def _put(self, key: str, value: bytes | Path, mode: str | None = None) -> None:
        """Write an object; ``mode``: fsspec's, such as ``create`` (None leaves it to fsspec)."""
        options = {} if mode is None else {"mode": mode}
        if isinstance(value, Path):
            self._files.put_file(str(value), self._path(key), **options)
        else:
            self._files.pipe_file(self._path(key), value, **options)

    def _put_new(self, key: str, value: bytes | Path) -> bool:
        try:
            self._put(key, value, mode="create")
        except FileExistsError:
            return False
        return True

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"


class SharedFolder(Objects):
    """A shared folder. fsspec writes files in place; here they are moved or linked into place whole."""

    def listing(self, under: str = "") -> dict[str, int]:
        """Return key -> bytes of every file (below ``under``), without those that are just being written."""
        sizes = super().listing(under)
        return {key: size for key, size in sizes.items() if not key.rpartition("/")[2].startswith(".")}

    def _put(self, key: str, value: bytes | Path, mode: str | None = None) -> None:
        naming = os.link if mode == "create" else os.replace  # unlike a move, a link refuses to replace
        with replacing(Path(self._path(key)), place=naming) as temporary:
            if isinstance(value, Path):
                shutil.copyfile(value, temporary)
            else:
                temporary.write_bytes(value)

    def _put_new(self, key: str, value: bytes | Path) -> bool:
        try:
            return super()._put_new(key, value)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
                raise
            raise WorkspaceError(
                f"The file system of {self.url} has no hard links, by which machines agree who writes. Use the folder "
                "itself (without file://) from one machine, or another place."
            ) from error


def _options(protocol: str, how: Remote) -> dict[str, Any]:
    """The options for fsspec. Listings are never taken from its memory: another machine may have written meanwhile."""
    if protocol != "s3":
        return {}
    config = {
        "retries": {"mode": "standard", "max_attempts": how.attempts},
        "connect_timeout": _CONNECT_SECONDS,
        "read_timeout": _ANSWER_SECONDS,
    }
    return {"config_kwargs": config, "use_listings_cache": False, "skip_instance_cache": True}
