"""Objects under a URL: list, read, write, create only where there is none. An object appears whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import time
import uuid
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from threading import RLock
from typing import Any
from urllib.parse import urlsplit

from quit.errors import MissingDependency, SettingsError, WorkspaceError, did_you_mean
from quit.remote.faults import endpoint, is_missing_bucket, speaking
from quit.settings.remote import Remote

PROTOCOLS = ("s3", "file", "memory", "gs", "az", "abfs")
_MEMORY = RLock()
"""fsspec's memory is one place for all threads and guards nothing."""
_PACKAGES = {"s3": "-c constraints.txt -e '.[object-store]'", "gs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}


def checked_url(text: str) -> str:
    """Return the URL without slashes at its end. Raises ``SettingsError`` for a protocol nobody knows, or credentials in it."""
    parts = urlsplit(text)
    if parts.username or parts.password or "@" in parts.netloc:
        raise SettingsError(
            f"{text}: a URL must hold no credentials, such as those before its @. Give them by the environment "
            "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or AWS_PROFILE."
        )
    if parts.scheme not in PROTOCOLS:
        raise SettingsError(
            f"{text}: {parts.scheme!r} is no store that is known.{did_you_mean(parts.scheme, PROTOCOLS)}"
        )
    if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
        raise SettingsError(f"{text}: a shared folder is named by its whole path, such as file:///srv/shared/quit.")
    if not (parts.netloc or parts.path.strip("/")):
        raise SettingsError(f"{text} names no bucket. Expected such as s3://bucket/prefix.")
    return text.rstrip("/")


def open_store(url: str, how: Remote | None = None) -> Store:
    """Return the store of a URL. Raises ``SettingsError`` for a URL that is none, ``MissingDependency`` for a missing package."""
    url = checked_url(url)
    return (FolderStore if url.startswith("file:") else Store)(url, how or Remote())


class Store:
    """Objects by key below a URL, by fsspec. Safe to use from several threads; every error is one of :mod:`quit.errors`."""

    def __init__(self, url: str, how: Remote) -> None:
        self.url = url
        self.use(how)
        self._guard = _MEMORY if url.startswith("memory:") else nullcontext()
        self._refuses: bool | None = None

    def use(self, how: Remote) -> None:
        """Go by these settings from now on."""
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
        """What tells this place from others of the same URL: the URL and the service's address."""
        return f"{self.url} {endpoint() if self.url.startswith('s3') else ''}".strip()

    def listing(self, under: str = "") -> dict[str, int]:
        """Return key -> bytes of every object (below ``under``)."""
        with self._guard, speaking(self.url, "list"):
            self._files.invalidate_cache()
            try:
                found = self._files.find(f"{self._root}/{under}".rstrip("/"), detail=True)
            except FileNotFoundError as error:
                if is_missing_bucket(error):
                    raise
                return {}
        start = len(self._root) + 1
        return {name[start:]: facts["size"] or 0 for name, facts in found.items() if len(name) > start}

    def read(self, key: str) -> bytes | None:
        """Return an object, None where there is none."""
        with self._guard, speaking(self.url, "read"):
            try:
                return self._files.cat_file(self._path(key))
            except FileNotFoundError as error:
                if is_missing_bucket(error):
                    raise
                return None

    def fetch(self, key: str, target: Path) -> bool:
        """Copy an object to a file; False where there is none."""
        with self._guard, speaking(self.url, "read"):
            try:
                self._files.get_file(self._path(key), str(target))
            except FileNotFoundError as error:
                if is_missing_bucket(error):
                    raise
                return False
        return True

    def write(self, key: str, value: bytes | Path) -> None:
        """Write an object, replacing what is there."""
        with self._guard, speaking(self.url, "write to"):
            self._put(key, value)

    def create(self, key: str, value: bytes | Path) -> bool:
        """Write an object where there is none; False, and nothing written, where there is one with other content.

        Of several who create one key at once exactly one is told True. Where the store cannot refuse to replace an object, the last
        writer wins and everyone looks again after ``settle_seconds``.
        """
        with self._guard, speaking(self.url, "write to"):
            if self._can_refuse():
                return self._put_new(key, value) or self.read(key) == _bytes(
                    value
                )  # a repeated request meets its own object
            if self.read(key) is not None:
                return False
            self._put(key, value)
            time.sleep(self.how.settle_seconds)
            return self.read(key) == _bytes(value)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; one that is not there is no fault."""
        with self._guard, speaking(self.url, "delete from"):
            for key in keys:
                try:
                    self._files.rm_file(self._path(key))
                except FileNotFoundError:
                    continue

    def _can_refuse(self) -> bool:
        """Whether the store heeds a condition on writing; tried out once on an object of its own."""
        if self._refuses is None:
            key = f"locks/probe-{uuid.uuid4().hex}"
            self._put_new(key, b"first")
            try:
                self._refuses = not self._put_new(key, b"second")
            finally:
                self.delete([key])
        return self._refuses

    def _put(self, key: str, value: bytes | Path) -> None:
        if isinstance(value, Path):
            self._files.put_file(str(value), self._path(key))
        else:
            self._files.pipe_file(self._path(key), value)

    def _put_new(self, key: str, value: bytes | Path) -> bool:
        try:
            if isinstance(value, Path):
                self._files.put_file(str(value), self._path(key), mode="create")
            else:
                self._files.pipe_file(self._path(key), value, mode="create")
        except FileExistsError:
            return False
        return True

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"


class FolderStore(Store):
    """A shared folder. fsspec writes files in place; here they appear whole: a temporary name, flushed, then moved or linked."""

    def listing(self, under: str = "") -> dict[str, int]:
        """Return key -> bytes of every file (below ``under``), without those that are just being written."""
        found = super().listing(under)
        return {key: size for key, size in found.items() if not key.rpartition("/")[2].startswith(".")}

    def _put(self, key: str, value: bytes | Path) -> None:
        temporary = self._written(key, value)
        os.replace(temporary, self._path(key))

    def _put_new(self, key: str, value: bytes | Path) -> bool:
        temporary = self._written(key, value)
        try:
            os.link(temporary, self._path(key))  # unlike a move, this refuses to replace
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
                raise WorkspaceError(
                    f"The file system of {self.url} has no hard links, by which machines agree who writes. Use the folder "
                    "itself (without file://) from one machine, or another place."
                ) from error
            raise
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def _written(self, key: str, value: bytes | Path) -> Path:
        target = Path(self._path(key))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("wb") as file:
                if isinstance(value, Path):
                    with value.open("rb") as source:
                        shutil.copyfileobj(source, file)
                else:
                    file.write(value)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary


def _bytes(value: bytes | Path) -> bytes:
    return value.read_bytes() if isinstance(value, Path) else value


def _options(protocol: str, how: Remote) -> dict[str, Any]:
    """What fsspec is told. Listings are never taken from its memory: another machine may have written meanwhile."""
    if protocol != "s3":
        return {}
    config = {
        "retries": {"mode": "standard", "max_attempts": how.attempts},
        "connect_timeout": how.connect_seconds,
        "read_timeout": how.answer_seconds,
        "max_pool_connections": max(10, how.connections),
    }
    return {"config_kwargs": config, "use_listings_cache": False, "skip_instance_cache": True}
