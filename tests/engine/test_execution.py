"""What a build does after a fault, while shards are still at work."""

import signal
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from quit.common.progress import Listener, listening
from quit.common.ranges import WHOLE
from quit.engine import execution as module
from quit.engine.execution import Threads, execution
from quit.engine.pipeline import Pipeline
from quit.engine.usage import entries, origins, record, totals
from quit.errors import InputError, Stopped
from quit.models.generation.meter import Meter, Usage
from quit.settings import load
from tests.building import plan_build
from tests.paths import starter_file
from tests.running import until


class _Interrupted(Listener):
    """Somebody presses Ctrl-C as a build begins."""

    def build_begins(self, pipeline: Pipeline) -> None:
        raise KeyboardInterrupt


def _one_question(folder: Path) -> Pipeline:
    return plan_build(folder / "W", source=starter_file(folder / "few.jsonl", 1), profile="embedded")


def test_an_interrupt_of_the_wait_after_a_fault_stops_requests_too(tmp_path: Path) -> None:
    pipeline = _one_question(tmp_path)
    at_work = {Future(): (pipeline.stage_run("collect"), WHOLE)}
    press = threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    with execution(pipeline) as run_stage, pytest.raises(KeyboardInterrupt):
        press.start()
        run_stage._drain(at_work, InputError("the first fault"))
    with pytest.raises(Stopped):
        pipeline.models.ledger.check_not_stopped()


def test_blas_has_one_thread_in_each_thread_of_builds_and_its_own_number_after_the_last(tmp_path: Path) -> None:
    def threads_of_blas() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, "blas"):
        places = Threads(2), Threads(1)
        assert threads_of_blas() == {1}
        places[0].close()
        assert threads_of_blas() == {1}
        places[1].close()
        assert threads_of_blas() == {2}
        with pytest.raises(KeyboardInterrupt), listening(_Interrupted()), execution(_one_question(tmp_path)):
            pytest.fail("No stage begins.")
        assert threads_of_blas() == {2}


def test_the_use_of_language_models_is_logged_while_a_shard_is_at_work(tmp_path: Path, monkeypatch) -> None:
    """... so that a kill forgets little of what was paid."""
    monkeypatch.setattr(module, "USAGE_SECONDS", 0.0)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    pipeline = _one_question(tmp_path)
    pipeline.models.meter.add("m", requests=5)  # before this build
    run, path = pipeline.stage_run("collect"), pipeline.workspace.path

    def ask(*_: object) -> None:
        for count in (1, 2):
            pipeline.models.meter.add("m", requests=1, prompt_tokens=10)
            until(lambda count=count: totals(path).get("m", Usage()).requests == count, seconds=20, every=0.01)

    monkeypatch.setattr(pipeline, "run_shard", ask)
    with execution(pipeline) as run_stage:
        run_stage._work_on(deque([(run, WHOLE)]))
        run_stage._record_usage()
    assert (totals(path)["m"].requests, totals(path)["m"].prompt_tokens) == (2, 20)


def test_a_record_amid_a_request_loses_neither_its_seconds_nor_the_origins_that_come_after_the_replies(
    tmp_path: Path,
) -> None:
    meter = Meter()
    snapshots = [meter.snapshot()]
    with meter.busy("m"):
        time.sleep(0.05)
        snapshots.append(meter.snapshot())
        meter.add("m", requests=1)
    snapshots.append(meter.snapshot())
    meter.add("m", origins=Counter({"server": 1}))
    snapshots.append(meter.snapshot())
    for before, after in pairwise([*snapshots, snapshots[-1]]):
        record(tmp_path, "judge", before, after, load().settings)
    assert totals(tmp_path)["m"].requests == 1 and totals(tmp_path)["m"].seconds >= 0.05
    assert origins(tmp_path) == {"m": {"server": 1}} and len(entries(tmp_path)) == 3
