"""The time that is left of a build, on a clock that is set by hand."""

import pytest

from quit.stages import STAGES
from quit.status.forecast import TIMES, Forecast

ALIKE = {"filter": "filter", "rank": "rank", "read:a": "read", "read:b": "read", "read:c": "read", "label": "label"}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_every_stage_has_a_time() -> None:
    assert set(TIMES) == {stage.name for stage in STAGES}


def test_what_is_left_is_learnt_from_what_was_seen() -> None:
    clock = Clock()
    forecast = Forecast(ALIKE, clock=clock)
    assert forecast.left() is None and forecast.share() == 0.0
    forecast.see("filter", 0, 1)
    assert forecast.left() is None  # nothing was measured yet
    clock.now += 24  # twice as slow as the times of TIMES
    forecast.see("filter", 1, 1)
    expected = 2 * (TIMES["rank"] + 3 * TIMES["read"] + TIMES["label"])
    assert forecast.left() == pytest.approx(expected) and forecast.share() == pytest.approx(24 / (24 + expected))
    forecast.see("rank", 0, 1)
    clock.now += 1
    forecast.see("rank", 1, 1)
    forecast.see("read:a", 0, 4)
    clock.now += 100
    forecast.see("read:a", 1, 4)
    label = 25 * TIMES["label"] / (TIMES["filter"] + TIMES["rank"])
    # three parts of a are left; b and c are not known to be like a before it has finished
    read = 25 * TIMES["read"] / (TIMES["filter"] + TIMES["rank"])
    assert forecast.left() == pytest.approx(300 + 2 * read + label)
    clock.now += 60
    assert forecast.left() == pytest.approx(240 + 2 * read + label)
    clock.now += 240
    forecast.see("read:a", 4, 4)
    known = TIMES["filter"] + TIMES["rank"] + TIMES["read"]
    assert forecast.left() == pytest.approx(2 * 400 + (25 + 400) * TIMES["label"] / known)


def test_a_language_model_is_unknown_until_one_like_it_has_answered() -> None:
    clock = Clock()
    forecast = Forecast(ALIKE, frozenset({"read"}), clock)
    for run in ("filter", "rank"):
        forecast.see(run, 0, 1)
        clock.now += 10
        forecast.see(run, 1, 1)
    assert forecast.left() is None and forecast.share() == pytest.approx(2 / 6)
    forecast.see("read:a", 1, 4)  # an interrupted build: one part is there already
    assert forecast.left() is None
    clock.now += 30
    forecast.see("read:a", 2, 4)
    assert forecast.left() is None  # b and c are not known yet
    clock.now += 60
    forecast.see("read:a", 4, 4)
    # 90 seconds for three of four parts; models say nothing about the embedded stages
    label = 20 * TIMES["label"] / (TIMES["filter"] + TIMES["rank"])
    assert forecast.left() == pytest.approx(2 * 120 + label)


def test_runs_side_by_side_take_as_long_as_the_longest() -> None:
    clock = Clock()
    forecast = Forecast({"read:a": "read", "read:b": "read"}, clock=clock)
    for run in ("read:a", "read:b"):
        forecast.see(run, 0, 2)
    clock.now += 10
    forecast.see("read:a", 1, 2)
    clock.now += 10
    forecast.see("read:b", 1, 2)
    assert forecast.left() == pytest.approx(20)
    clock.now += 20
    for run in ("read:a", "read:b"):
        forecast.see(run, 2, 2)
    assert forecast.left() == 0.0 and forecast.share() == 1.0


def test_a_run_may_begin_while_somebody_asks() -> None:
    """Two threads, made certain: comparing the first run's shards has another run begin."""

    class Busy(int):
        def __eq__(self, other: object) -> bool:
            forecast.see(f"read:{next(numbers)}", 0, 2)
            return int(self) == other

        __hash__ = int.__hash__

    numbers = iter(range(1000))
    forecast = Forecast(ALIKE)
    forecast.see("filter", 0, 1)
    forecast.see("filter", Busy(1), 1)
    assert forecast.finished == 1
    assert forecast.left() is not None or forecast.share() <= 1


def test_nothing_to_do_is_done() -> None:
    assert Forecast({}).share() in (0.0, 1.0) and Forecast({}).left() == 0.0
