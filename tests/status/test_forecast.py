"""The time that is left of a build, on a clock that is set by hand."""

import pytest

from quit.status.forecast import Forecast

TIMES = {"filter": 12.0, "rank": 5.0, "read": 1.4, "label": 0.1}
ALIKE = {
    run: (run.partition(":")[0], TIMES[run.partition(":")[0]])
    for run in ("filter", "rank", "read:a", "read:b", "read:c", "label")
}
LANGUAGE_MODELS = {run: (what, None if what == "read" else seconds) for run, (what, seconds) in ALIKE.items()}


class Seen:
    """A forecast, and the clock that it looks at."""

    def __init__(self, runs: dict[str, tuple[str, float | None]] = ALIKE) -> None:
        self.now = 100.0
        self.forecast = Forecast(runs, lambda: self.now)

    def see(self, *events: tuple[float, str, int, int]) -> float | None:
        """See how far runs are: seconds since the event before, the run, its finished shards, all of them. Return what
        is left."""
        for seconds, run, done, shards in events:
            self.now += seconds
            self.forecast.see(run, done, shards)
        return self.forecast.left()


def test_what_is_left_is_learnt_from_what_was_seen() -> None:
    seen = Seen()
    assert seen.see() is None and seen.forecast.share() == 0.0
    assert seen.see((0, "filter", 0, 1)) is None  # nothing was measured yet
    left = seen.see((24, "filter", 1, 1))  # twice as slow as usual
    expected = 2 * (TIMES["rank"] + 3 * TIMES["read"] + TIMES["label"])
    assert left == pytest.approx(expected) and seen.forecast.share() == pytest.approx(24 / (24 + expected))
    left = seen.see((0, "rank", 0, 1), (1, "rank", 1, 1), (0, "read:a", 0, 4), (100, "read:a", 1, 4))
    # Three parts of a are left; b and c are not known to be like a before it has finished.
    read, label = (25 * TIMES[stage] / (TIMES["filter"] + TIMES["rank"]) for stage in ("read", "label"))
    assert left == pytest.approx(300 + 2 * read + label)
    seen.now += 60
    assert seen.see() == pytest.approx(240 + 2 * read + label)
    seconds = TIMES["filter"] + TIMES["rank"] + TIMES["read"]
    assert seen.see((240, "read:a", 4, 4)) == pytest.approx(2 * 400 + (25 + 400) * TIMES["label"] / seconds)


def test_a_language_model_is_unknown_until_one_like_it_has_answered() -> None:
    seen = Seen(LANGUAGE_MODELS)
    left = seen.see((0, "filter", 0, 1), (10, "filter", 1, 1), (0, "rank", 0, 1), (10, "rank", 1, 1))
    assert left is None and seen.forecast.share() == pytest.approx(2 / 6)
    assert seen.see((0, "read:a", 1, 4)) is None  # an interrupted build: one part is there already
    assert seen.see((30, "read:a", 2, 4)) is None  # b and c are not known yet
    # 90 seconds for three of four parts; models say nothing about the embedded stages
    label = 20 * TIMES["label"] / (TIMES["filter"] + TIMES["rank"])
    assert seen.see((60, "read:a", 4, 4)) == pytest.approx(2 * 120 + label)


def test_runs_side_by_side_take_as_long_as_the_longest() -> None:
    seen = Seen({run: ALIKE[run] for run in ("read:a", "read:b")})
    left = seen.see((0, "read:a", 0, 2), (0, "read:b", 0, 2), (10, "read:a", 1, 2), (10, "read:b", 1, 2))
    assert left == pytest.approx(20)
    assert seen.see((20, "read:a", 2, 2), (0, "read:b", 2, 2)) == 0.0 and seen.forecast.share() == 1.0


def test_nothing_to_do_is_done() -> None:
    assert Forecast({}).share() in (0.0, 1.0) and Forecast({}).left() == 0.0
