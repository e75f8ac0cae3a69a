"""What makes the tests fast: what this process computes twice, where files lie, which worker runs what."""

import atexit
import gc
import os
from functools import cache
from typing import Any

import pytest
import typer.main

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: workers share the cores
typer.main.get_command = cache(typer.main.get_command)  # it reads the signatures of all commands, once a call
gc.set_threshold(20_000, 20, 50)  # else a tenth of the time is the search for garbage in what was imported

if os.path.isdir("/dev/shm"):  # in memory, if programs may lie there: on a disk, databases wait for each commit
    room = os.statvfs("/dev/shm")
    if room.f_bavail * room.f_frsize > 8e9 and not room.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

ALONE = ("test_processors", "flows/test_serve", "engine/test_cluster", "test_frozen", "docs/test_tutorial",
         "docs/test_fidelity_runs", "store/test_s3", "models/generation/test_in_process",
         "engine/test_build")  # fmt: skip
SLOWEST = (
    ("tests/annotation/", "tests/docs/test_notebook.py"),
    ("tests/engine/test_language_models.py", "tests/qa/test_real_model.py"),
    tuple(f"tests/flows/test_{name}.py" for name in ("build", "nothing_new", "on_server", "secrets")),
    *((f"tests/{name}.py",) for name in ALONE),
)
"""Files that share a server, and what takes longest: each group goes to one worker, in this order, before all other
files."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the workers whole files, the slowest first, and together what shares a server."""
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class SlowestFirst(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return next((group[0] for group in SLOWEST if file.startswith(group)), file)

    config.option.loadscopereorder = False
    return SlowestFirst(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def position(item: pytest.Item) -> int:
        return next((position for position, group in enumerate(SLOWEST) if item.nodeid.startswith(group)), len(SLOWEST))

    items.sort(key=position)


def pytest_sessionfinish() -> None:
    gc.freeze()  # else pytest looks at its end three times for garbage, half a second each
    atexit.register(gc.unfreeze)
