"""Jobs of review, before they need a server."""

from pathlib import Path

import pytest

from quit.annotation.reports import PullReport, PushReport
from quit.errors import InputError, SettingsError
from quit.library import reviewing
from tests.building import plan_build


@pytest.mark.parametrize("refused", [("push",), ("push", "pull")])
def test_a_refused_push_keeps_nobodys_work_from_being_pulled(tmp_path: Path, monkeypatch, refused) -> None:
    plan_build(tmp_path / "W").begin()
    tried = []

    def step(name: str, *_: object) -> dict:
        tried.append(name)
        if name in refused:
            raise InputError(f"the {name} is refused")
        return {}

    with pytest.raises(InputError, match="the push is refused"):
        reviewing.review_sync(str(tmp_path / "W"), step=step)
    assert tried == ["push", "pull"]


@pytest.mark.parametrize(
    ("push", "pull", "is_new"),
    [
        (PushReport(unchanged=4, gone=1, problems=["one"]), PullReport(tasks=4, done=4, unclear=1), False),
        *((PushReport(**{name: 1}), PullReport(), True) for name in ("created", "new", "changed", "remade")),
        (PushReport(), PullReport(rows=1), True),
    ],
)
def test_a_sync_says_when_there_was_nothing_new(push, pull, is_new: bool, tmp_path: Path) -> None:
    plan_build(tmp_path / "W").begin()
    outcome = reviewing.review_sync(str(tmp_path / "W"), step=lambda name, *_: {"push": push, "pull": pull}[name])
    assert outcome.result == {"push": push, "pull": pull} and (outcome.nothing_new is None) is is_new


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        (["push"], "the project is up to date"),
        (["pull"], "every review was pulled"),
        (["pull", "push"], "the project is up to date, and every review was pulled"),
    ],
)
def test_nothing_new_is_said_of_the_steps_that_were_done(steps: list[str], sentence: str, tmp_path: Path) -> None:
    plan_build(tmp_path / "W").begin()
    reports = {"push": PushReport(), "pull": PullReport()}
    outcome = reviewing.review_sync(str(tmp_path / "W"), steps=steps, step=lambda name, *_: reports[name])
    assert (outcome.result, outcome.nothing_new) == (
        {name: reports[name] for name in steps},
        f"Nothing new: {sentence}.",
    )


@pytest.mark.parametrize("steps", [[], ["pusch"], ["push", "apply"]])
def test_no_step_and_an_unknown_one_are_refused(steps: list[str], tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no step"):
        reviewing.review_sync(str(tmp_path / "W"), steps=steps)
