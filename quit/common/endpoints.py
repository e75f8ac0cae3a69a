"""Addresses of servers: as logs and metrics show them (without user, password, query or token), and their proxies."""

from __future__ import annotations

import re
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

UNTRUSTED = "Name the file of its certificate, or of who signed it, in SSL_CERT_FILE: it is not trusted here."
"""The remedy where a server's certificate cannot be verified."""


def address(url: str) -> str:
    """Return a URL without user, password, query and fragment; nothing for what is no URL."""
    parts = urlsplit(url)
    if not parts.netloc:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


def is_local(url: str) -> bool:
    """Whether a URL is of this machine, which no proxy of the environment (``HTTPS_PROXY``) stands before."""
    return re.match(r"https?://(?:[^/@]*@)?(?:localhost|127\.[\d.]+|\[::1\])(?:[:/]|$)", url) is not None


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for a URL (``HTTPS_PROXY``, ``NO_PROXY``); None: there is none."""
    parts = urlsplit(url)
    if is_local(url) or proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
