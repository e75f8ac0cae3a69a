"""Where a workspace is: in a folder (:mod:`folder`), or in an object store behind a local copy (:mod:`remote`).

Every file is written under a temporary name, flushed and moved into place, or appears in one request to the store. What
killed runs were writing is removed by the next run.
"""

from pathlib import Path

from quit.common.files import is_url
from quit.store.base import Store
from quit.store.folder import FolderStore


def open_store(place: str | Path) -> Store:
    """Return the store of a path or a URL. Raises what a store refuses."""
    if is_url(place):
        from quit.store.remote import RemoteStore  # a folder needs none of it

        return RemoteStore(str(place))
    return FolderStore(Path(place))
