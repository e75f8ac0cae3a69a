"""The text that names where shards are worked on, read in one place."""

from __future__ import annotations

import re

KNOWN = "threads, ray, ray:auto, ray:HOST:PORT, ray://HOST:10001"
_HOST = r"(?P<address>(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):\d{1,5})"


def parse_runner(text: str) -> tuple[str, str]:
    """Return kind and address of a runner: ``("ray", "ray://head:10001")``, ``("ray", "local")``, ``("threads", "")``.

    Raises ``ValueError``, whose message does not repeat what may be a password.
    """
    if text == "threads":
        return "threads", ""
    if text == "ray":
        return text, "local"
    if text == "ray:auto":
        return "ray", "auto"
    if match := re.fullmatch(rf"ray:(?P<scheme>//)?{_HOST}", text):
        return "ray", ("ray://" if match["scheme"] else "") + match["address"]
    safe = re.sub(r"//.*@", "//***@", text)
    raise ValueError(f"{safe!r} is not a runner. Known: {KNOWN}; an address has no user and no password")
