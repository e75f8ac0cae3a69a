"""Addresses of servers: as logs and metrics show them (without user, password, query or token), their proxies, and
keys."""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl, urlsplit
from urllib.request import getproxies, proxy_bypass

from quit.errors import SettingsError
from quit.text.secrets import register_secret

_SECRET = re.compile(r"key|token|secret|code|sig|pass|pwd|auth", re.IGNORECASE)
UNTRUSTED = "Name the file of its certificate, or of who signed it, in SSL_CERT_FILE: it is not trusted here."
"""The remedy where a server's certificate cannot be verified."""


def address(url: str) -> str:
    """Return a URL without user, password, query and fragment; nothing for what is no URL."""
    parts = urlsplit(url)
    if not parts.netloc:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


def is_address(url: str) -> bool:
    """Return whether a text is the URL of a web server."""
    try:
        return url.startswith(("http://", "https://")) and urlsplit(url).port != 0
    except ValueError:  # a port beyond 65535, or none that is a number
        return False


def secrets_in(url: str) -> list[str]:
    """Return what only its owner may read of a URL: user or password, and values of a query that sound like keys.
    Raises ``ValueError`` for what is no URL."""
    parts = urlsplit(url)
    values = [value for name, value in parse_qsl(parts.query) if _SECRET.search(name)]
    return [value for value in (parts.password or parts.username, *values) if value]


def is_local(url: str) -> bool:
    """Whether a URL is of this machine, which no proxy of the environment (``HTTPS_PROXY``) stands before."""
    return re.match(r"https?://(?:[^/@]*@)?(?:localhost|127\.[\d.]+|\[::1\])(?:[:/]|$)", url) is not None


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for a URL (``HTTPS_PROXY``, ``NO_PROXY``); None: there is none."""
    parts = urlsplit(url)
    if is_local(url) or proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)


def secret_of(variable: str) -> str:
    """Return the key or token in an environment variable, which no text shows from then on; empty where there is none.

    Raises ``SettingsError`` for characters that no header takes.
    """
    value = os.environ.get(variable, "").strip()
    register_secret(value, variable)
    if not (value.isascii() and value.isprintable()):
        raise SettingsError(f"{variable} has characters that no key or token has, such as a line end. Copy it again.")
    return value
