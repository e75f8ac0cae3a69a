"""Virtual environments of their own for the servers that cannot share ours (vLLM, Label Studio).

Their pins and ours exclude each other. An environment is made once, kept under the cache folder and used again by
everything that asks for the same requirements.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

from quit.common.cache import cache_folder, in_made_folder
from quit.common.children import SupervisedProcess
from quit.common.estimate import span
from quit.errors import MissingDependency

READY = ".ready"
"""Written last into an environment: one without it was left by a kill, and is made again."""

LOG_LINES = 15
"""Lines at the end of pip's log that an error quotes."""

LIFE_SECONDS = 10.0
"""Seconds between two lines that say how far pip is."""


def environments() -> Path:
    """Return the folder of all environments: ``$QUIT_ENVS``, else the cache's ``envs``."""
    envs = os.environ.get("QUIT_ENVS")
    return Path(envs).expanduser().absolute() if envs else cache_folder("envs")


def environment_folder(name: str, requirements: Path | Sequence[str]) -> Path:
    """Return where the environment of these requirements is or will be: ``<name>-<hash>`` in :func:`environments`.

    The hash covers the requirements without comments, and this Python's version and machine.
    """
    parts = [*_lines(requirements), "--", "--", sys.version, platform.machine()]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return environments() / f"{name}-{digest}"


def ensure_environment(
    name: str,
    requirements: Path | Sequence[str],
    *,
    options: Sequence[str] = (),
    log: Callable[[str], None] = print,
) -> Path:
    """Return the folder of programs (``bin``) of a virtual environment with these requirements, making it if need be.

    ``requirements``: a requirements file or its lines. ``options``: more options of pip install.

    ``log``: hears that it is made and, every ten seconds, how far.

    Two processes that ask at once make it once: the second waits for the lock. A kill leaves nothing that is used
    later. With QUIT_ENVIRONMENTS=existing nothing is installed. Raises MissingDependency: no environment and none may
    be made, or pip failed (with the end of its log, which stays beside the environment as ``<name>-<hash>.log``).
    """
    folder = environment_folder(name, requirements)
    if (folder / READY).is_file():
        return folder / "bin"
    if os.environ.get("QUIT_ENVIRONMENTS") == "existing":
        raise MissingDependency(
            f"the {name} environment {folder} is not there and QUIT_ENVIRONMENTS=existing forbids making it; unset "
            "the variable"
        )
    in_made_folder(folder)
    with FileLock(f"{folder}.lock"):
        if not (folder / READY).is_file():
            log(f"making the {name} environment (once; {folder})")
            # Scripts hold the environment's path in their first line, so it cannot be built elsewhere and moved here.
            shutil.rmtree(folder, ignore_errors=True)
            _build(name, folder, _lines(requirements), options, log)
            (folder / READY).touch()
    return folder / "bin"


def _build(name: str, folder: Path, lines: list[str], options: Sequence[str], log: Callable[[str], None]) -> None:
    begin, report = time.monotonic(), Path(f"{folder}.log")
    listed = Path(f"{folder}.txt")
    listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    steps = [[sys.executable, "-m", "venv", str(folder)], [*pip, "install", *options, "--requirement", str(listed)]]
    # A PYTHONPATH or an outer environment's variables would show pip packages that are not in this one.
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    with report.open("w", encoding="utf-8") as output:
        for step in steps:
            # A pip that outlived us would write into what the next process is making there.
            with SupervisedProcess(
                step, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=clean
            ) as running:
                try:
                    while (code := running.ended(LIFE_SECONDS)) is None:
                        log(f"  {span(time.monotonic() - begin)}: {_doing(report)}")
                except BaseException:
                    running.kill()
                    raise
            if code:
                quoted = "\n".join(f"  {line}" for line in _end(report, LOG_LINES))
                raise MissingDependency(
                    f"could not make the {name} environment: {' '.join(step[:4])} ... failed with {code}."
                    f" The end of {report}:\n{quoted}"
                )


def _doing(report: Path) -> str:
    log = report.read_text(encoding="utf-8", errors="replace")
    if "\nInstalling collected packages: " in log:
        return f"step 3 of 3, installing {log.rpartition('packages: ')[2].count(',') + 1} packages"
    packages = len(re.findall("(?m)^(?:Collecting|Processing) ", log))
    return f"step 2 of 3, fetching packages, {packages} so far" if packages else "step 1 of 3, making the folder"


def _end(report: Path, count: int) -> list[str]:
    return report.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]


def _lines(requirements: Path | Sequence[str]) -> list[str]:
    raw = requirements.read_text(encoding="utf-8").splitlines() if isinstance(requirements, Path) else requirements
    stripped = (line.partition(" #")[0].strip() for line in raw)
    return [line for line in stripped if line and not line.startswith("#")]
