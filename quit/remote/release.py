"""A release at a URL, on this machine."""

from __future__ import annotations

from pathlib import Path

from quit.errors import InputError
from quit.release.release import DESCRIPTION
from quit.remote.store import open_store
from quit.remote.workspace import mirror_folder


def fetched_release(url: str) -> Path:
    """Fetch all files below a URL and return their folder, with nothing else in it; unlike a workspace's, always anew.

    Raises ``InputError`` when that is no release, and what a store refuses.
    """
    store = open_store(url)
    found = store.listing()
    if DESCRIPTION not in found:
        raise InputError(
            f"{store.url} is no release: it has no {DESCRIPTION}. List a workspace's: quit release list -w URL"
        )
    folder = mirror_folder(store)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for key in found:
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        store.fetch(key, folder / key)
    return folder
