"""What a build does after a fault, while shards are still at work."""

import signal
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from quit.common.ranges import WHOLE
from quit.engine.execution import Execution, Threads
from quit.errors import InputError, Stopped
from tests.building import plan_build
from tests.paths import starter_file


def test_an_interrupt_of_the_wait_after_a_fault_stops_requests_too(tmp_path: Path) -> None:
    pipeline = plan_build(tmp_path / "W", source=starter_file(tmp_path / "few.jsonl", 1), profile="embedded")
    at_work = {Future(): (pipeline.stage_run("collect"), WHOLE)}
    press = threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    with Execution(pipeline) as execution, pytest.raises(KeyboardInterrupt):
        press.start()
        execution._drain(at_work, InputError("the first fault"))
    with pytest.raises(Stopped):
        pipeline.models.ledger.check_not_stopped()


def test_blas_has_one_thread_in_each_thread_of_builds_and_its_own_number_after_the_last() -> None:
    def threads_of_blas() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, "blas"):
        places = Threads(2), Threads(1)
        assert threads_of_blas() == {1}
        places[0].close()
        assert threads_of_blas() == {1}
        places[1].close()
        assert threads_of_blas() == {2}
