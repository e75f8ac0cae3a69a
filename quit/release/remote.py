"""A release at a URL, on this machine."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from quit.common.files import replacing
from quit.dataset.release import DESCRIPTION
from quit.errors import InputError
from quit.store.objects import open_objects
from quit.store.remote import copy_folder


def fetched_release(url: str) -> Path:
    """Fetch all files below a URL and return their folder, with nothing else in it; unlike a workspace's, each time.

    Raises ``InputError`` when that is not a release, and what a store refuses.
    """
    objects = open_objects(url)
    listed = objects.listing()
    if DESCRIPTION not in listed:
        raise InputError(f"There is no release at {objects.url}. List those of a workspace: quit release list -w URL")
    folder = copy_folder(objects)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        # What another command reads meanwhile is left alone: the same bytes stay, others are moved into place whole.
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_file() and path.relative_to(folder).as_posix() not in listed:
                path.unlink()
        for key in sorted(listed):
            with replacing(folder / key) as temporary:
                objects.fetch(key, temporary)
    return folder
