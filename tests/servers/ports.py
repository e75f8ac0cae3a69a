"""Ports for servers that tests start and that cannot be told to take any free one."""

import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

FIRST, EACH = 20_000, 1_500
"""Below the ports that the system gives away itself; every worker has some of its own."""

_taken: set[int] = set()


def free_port() -> int:
    """Return a port of this machine that nothing listens on now and that no other worker's test will be given."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    start = FIRST + worker % 8 * EACH
    while True:
        port = random.SystemRandom().randrange(start, start + EACH)
        with socket.socket() as probe:
            if port not in _taken and probe.connect_ex(("127.0.0.1", port)) != 0:
                _taken.add(port)
                return port


@contextmanager
def taken_port() -> Iterator[int]:
    """A port of this machine that something listens on, which never answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]
