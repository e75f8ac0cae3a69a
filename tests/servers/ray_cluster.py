"""A real Ray cluster of several nodes on this machine, started by Ray's own command line; nodes can be killed one by
one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import psutil

from quit.common.children import SupervisedProcess
from quit.common.starting import is_free
from tests.paths import ROOT
from tests.running import until
from tests.servers.ports import free_port

_TASKS = ("ray::shard", "ray::portion")


class RayCluster:
    """Nodes of one CPU each; use as a context manager."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qr", dir="/tmp"))  # short: Ray puts sockets below it
        keys = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        patience = {
            "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "180"
        }  # a busy machine starts a client's server slowly
        own = {"PYTHONPATH": str(ROOT), "RAY_TMPDIR": str(self.folder), "RAY_USAGE_STATS_ENABLED": "0"}
        self.environment = {**os.environ, **own, **keys, **patience}
        patience = {"RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "60", "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S": "120"}
        self.client_environment = {**keys, **patience}
        self._port, self._client_port = free_port(), free_port()
        self._nodes: list[SupervisedProcess] = []

    @property
    def address(self) -> str:
        """The address for Ray's client: ``ray://127.0.0.1:PORT``."""
        return f"ray://127.0.0.1:{self._client_port}"

    def start_node(self) -> int:
        """Start the head, or one more node; returns its number."""
        where = f"--address=127.0.0.1:{self._port}"
        if not self._nodes:
            where = f"--head --port={self._port} --ray-client-server-port={self._client_port} --include-dashboard=false"
        options = (
            f"start {where} --num-cpus=1 --node-ip-address=127.0.0.1 --dashboard-agent-listen-port={free_port()} "
            "--object-store-memory=100000000 --disable-usage-stats --block"
        )
        command = [str(Path(sys.executable).with_name("ray")), *options.split()]
        with (self.folder / f"node-{len(self._nodes)}.log").open("ab") as log:
            self._nodes.append(
                SupervisedProcess(command, stdout=log, stderr=log, env=self.environment, cwd=self.folder)
            )
        return len(self._nodes) - 1

    def kill_node(self, number: int) -> None:
        """Kill a node's processes (SIGKILL), its workers too, as a power cut would."""
        _kill(self._processes(number))
        self._nodes[number].wait()

    def workers(self, number: int) -> list[psutil.Process]:
        """Return a node's processes that are carrying out a task."""
        return [one for one in self._processes(number) if " ".join(_command(one)).startswith(_TASKS)]

    def head_bytes(self) -> int:
        """Return the resident memory of the head's processes, without workers."""
        total = 0
        for process in self._processes(0):
            with contextlib.suppress(psutil.Error):
                if not " ".join(process.cmdline()).startswith("ray::"):
                    total += process.memory_info().rss
        return total

    def __enter__(self) -> RayCluster:
        self.start_node()
        until(lambda: not is_free(self._client_port), self._nodes[0], 300)
        return self

    def __exit__(self, *_: object) -> None:
        for number in range(len(self._nodes)):
            _kill(self._processes(number))
        shutil.rmtree(self.folder, ignore_errors=True)

    def _processes(self, number: int) -> list[psutil.Process]:
        try:
            parent = psutil.Process(self._nodes[number].pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)
    psutil.wait_procs(processes, timeout=120)
