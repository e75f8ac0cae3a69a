"""What a build does after a fault, while shards are still at work."""

import signal
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

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


def test_blas_has_one_thread_in_each_thread_of_a_build_and_its_own_number_after_it() -> None:
    def threads_of_blas() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    before = threads_of_blas()
    place = Threads(2)
    assert threads_of_blas() == {1}
    place.close()
    assert threads_of_blas() == before
