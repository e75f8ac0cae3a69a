"""A store's errors as one line that says what to do, without keys and passwords."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from quit.errors import QuitError, ServerError, SettingsError, WorkspaceError
from quit.text.secrets import shown

_ENDPOINTS = ("FSSPEC_S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_CREDENTIALS = {"NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "CredentialRetrievalError"}
_UNREACHABLE = {"EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError"}
_UNREACHABLE |= {"ConnectionError", "HTTPClientError", "ProxyConnectionError", "SSLError", "ResponseStreamingError"}
_UNREACHABLE |= {"ClientConnectorError", "ClientError", "ClientPayloadError", "ServerDisconnectedError", "TimeoutError"}
_BAD_KEYS = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "RequestTimeTooSkewed"}
_BUSY = (errno.EBUSY, errno.EREMOTEIO, errno.EIO, errno.ETIMEDOUT)


def endpoint() -> str:
    """Return the address of the S3 service in the environment, without user and password; ``""`` for the default."""
    parts = urlsplit(next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), ""))
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path.rstrip('/')}" if parts.scheme else ""


@contextmanager
def translate_errors(url: str, doing: str = "use") -> Iterator[None]:
    """Translate a store's errors into the project's; ``doing``: the attempted action, such as ``write to``."""
    try:
        yield
    except QuitError:
        raise
    except Exception as error:
        raise _explained(error, url, doing) from error


def is_missing_bucket(error: BaseException) -> bool:
    """Whether a store said that there is no such bucket (not: no such object)."""
    return _code(error) == "NoSuchBucket" or "bucket does not exist" in str(error)


def _explained(error: Exception, url: str, doing: str) -> QuitError:
    names = {type(cause).__name__ for cause in _chain(error)}
    where = f" at {endpoint()}" if url.startswith("s3") and endpoint() else ""
    number = error.errno if isinstance(error, OSError) else None
    code = _code(error)
    kind = code or type(list(_chain(error))[-1]).__name__
    if names & _CREDENTIALS:
        return SettingsError(
            f"There are no credentials for {url}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE "
            "(~/.aws/config), or run where a role gives them."
        )
    if code in _BAD_KEYS:
        return WorkspaceError(
            f"The store{where} does not accept the credentials for {url} ({code}). Check AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN or AWS_PROFILE, and this machine's clock."
        )
    if isinstance(error, PermissionError):
        return WorkspaceError(
            f"No permission to {doing} {url}{where}. Reading needs to list and get objects, building to put and delete "
            "them too (s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject); in a shared folder, the rights to "
            "read and write."
        )
    if is_missing_bucket(error):
        return WorkspaceError(
            f"There is no bucket for {url}{where}. Make it, or check its name and the endpoint (AWS_ENDPOINT_URL)."
        )
    if number in (errno.ENOSPC, errno.EDQUOT):
        return WorkspaceError(f"There is no space left to {doing} {url}. Free some and run the same command again.")
    if names & _UNREACHABLE or isinstance(error, TimeoutError) or number in _BUSY:
        return ServerError(
            f"{url}{where} did not answer, or answered with an error, however often it was tried ({kind}). Check the "
            "network and the endpoint (AWS_ENDPOINT_URL) and run the same command again; what is done stays done."
        )
    return WorkspaceError(f"Could not {doing} {url}{where}: {kind}: {shown(str(error), 200)}")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    error_ids: set[int] = set()
    while error is not None and id(error) not in error_ids:
        error_ids.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _code(error: BaseException) -> str:
    for cause in _chain(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
    return ""
