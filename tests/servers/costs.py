"""What each server costs to start, in seconds of wall and of processor time: ``python -m tests.servers.costs``."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil

from flows.server import prefect_server
from quit.settings import ServeSettings
from tests.annotation.browser import annotator
from tests.label_studio import Live
from tests.servers.moto import MotoServer
from tests.servers.prefect import prefect_database
from tests.servers.ray_cluster import RayCluster
from tests.servers.real_model import real_server


@contextmanager
def _prefect(folder: Path) -> Iterator[None]:
    os.environ["PREFECT_HOME"] = str(folder)
    shutil.copy(prefect_database(), folder / "prefect.db")
    with prefect_server(True, ServeSettings(server_port=0)):
        yield


@contextmanager
def _label_studio(folder: Path) -> Iterator[None]:
    server = Live(folder)
    yield
    server.stop()


STARTERS: dict[str, Callable[[Path], AbstractContextManager]] = {
    "vLLM": lambda folder: real_server(),
    "Label Studio": _label_studio,
    "Ray": lambda folder: RayCluster(),
    "Prefect": _prefect,
    "browser": lambda folder: annotator("about:blank", folder),
    "moto (S3)": MotoServer,
}


def _processor_seconds() -> float:
    """Return what the processes below this one have used, those that have ended too."""
    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return sum(sum(time[:4]) for time in times)


if __name__ == "__main__":
    for name, start in STARTERS.items():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            began, used = time.monotonic(), _processor_seconds()
            with start(Path(folder)):
                print(f"{name}: {time.monotonic() - began:.1f} s, processor {_processor_seconds() - used:.1f} s")
