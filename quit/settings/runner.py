"""The text that names where shards are worked on, read in one place."""

from __future__ import annotations

import re

KNOWN = "threads, ray, ray:auto, ray:HOST:PORT, ray://HOST:10001"
_HOST = r"(?P<address>(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):\d{1,5})"


def ray_address(text: str) -> str | None:
    """Return where Ray is, for ``ray.init``: ``local``, ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``; None: threads
    of this process do the work.

    Raises ``ValueError``, whose message does not repeat what may be a password.
    """
    if text == "threads":
        return None
    if text in ("ray", "ray:auto"):
        return text.partition(":")[2] or "local"
    if match := re.fullmatch(rf"ray:(?P<scheme>//)?{_HOST}", text):
        return ("ray://" if match["scheme"] else "") + match["address"]
    safe = re.sub(r"(?<=:).*@", "***@", text)
    raise ValueError(f"{safe!r} is not a runner. Known: {KNOWN}; an address has no user and no password")
