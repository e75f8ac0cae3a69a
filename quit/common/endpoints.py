"""The address of a model as logs and metrics show it: without user, password, query or token."""

from __future__ import annotations

from urllib.parse import urlsplit


def address(url: str) -> str:
    """Return a URL without user, password, query and fragment; nothing for what is no URL."""
    parts = urlsplit(url)
    if not parts.netloc:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")
