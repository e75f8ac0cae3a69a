"""Prefect's server, asked and watched by Prefect's own client: it knows the certificates, headers and proxies that its
settings name."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from json import JSONDecodeError

from prefect import get_client
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import PREFECT_API_URL

from quit.common.endpoints import address
from quit.errors import ServerError


def check_health() -> None:
    """Raise ``ServerError`` where the server does not answer."""
    try:
        with get_client(httpx_settings={"timeout": 10}, sync_client=True) as client:
            if (fault := client.api_healthcheck()) is None:
                client.api_version()
    except Exception as error:  # a certificate that cannot be read
        fault = error
    is_refused = isinstance(fault, PrefectHTTPStatusError) and fault.response.status_code < 500
    if is_refused or isinstance(fault, JSONDecodeError):
        raise ServerError(
            f"{address(PREFECT_API_URL.value())} answers, but is not the API of a Prefect server "
            f"({type(fault).__name__}). Write its address as http://127.0.0.1:4200/api."
        )
    if fault is not None:
        raise ServerError(
            f"The Prefect server {address(PREFECT_API_URL.value())} does not answer ({type(fault).__name__}). Start it "
            "(prefect server start), or unset PREFECT_API_URL to run without one."
        )


@contextmanager
def server_watched(patience: float = 60.0) -> Iterator[None]:
    """End this process where the server has not answered for ``patience`` seconds: Prefect's client would try without
    end. Use it only in a process that does nothing else."""
    end_event = threading.Event()

    def watch() -> None:
        last = time.monotonic()
        while not end_event.wait(min(5.0, patience / 4)):
            with suppress(ServerError):
                check_health()
                last = time.monotonic()
            if time.monotonic() - last > patience:
                error = ServerError(
                    f"The Prefect server {address(PREFECT_API_URL.value())} has not answered for {patience:g} s. What "
                    "is done stays done. Start it and run the same command again, or unset PREFECT_API_URL to run "
                    "without one."
                )
                with suppress(OSError, ValueError):
                    print(f"quit: {error}", file=sys.stderr, flush=True)
                os._exit(ServerError.exit_code)

    threading.Thread(target=copy_context().run, args=(watch,), name="prefect server", daemon=True).start()
    try:
        yield
    finally:
        end_event.set()
