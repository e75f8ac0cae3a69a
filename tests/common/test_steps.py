"""Jobs that resume at their first missing step."""

from __future__ import annotations

from pathlib import Path

import pytest

from quit.common.steps import Steps
from quit.errors import SettingsError

PLAN = {"corpus": "a", "block": (1, 2)}


def _add(steps: Steps, number: int, text: str) -> None:
    with steps.adding(number) as folder:
        (folder / "text").write_text(text)


def test_a_job_resumes_before_the_first_missing_step(tmp_path: Path) -> None:
    steps = Steps(tmp_path / "job", PLAN)
    for number in (0, 1, 3):
        _add(steps, number, f"step {number}")
    steps = Steps(tmp_path / "job", PLAN)
    assert steps.finished() == 2
    assert (steps[1] / "text").read_text() == "step 1"


def test_a_step_killed_while_its_files_are_written_is_missing_and_can_be_made(tmp_path: Path) -> None:
    steps = Steps(tmp_path, PLAN)
    with pytest.raises(KeyboardInterrupt), steps.adding(0) as folder:
        (folder / "stale").write_text("")
        raise KeyboardInterrupt
    assert steps.finished() == 0
    _add(steps, 0, "whole")
    assert {path.name for path in steps[0].iterdir()} == {"text", "files.json"}


@pytest.mark.parametrize("name", ["text", "files.json"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("st"), lambda path: path.write_text("")])
def test_a_damaged_step_is_told_and_done_again(tmp_path: Path, name: str, damage, notes: list[str]) -> None:
    steps = Steps(tmp_path, PLAN)
    for number in range(3):
        _add(steps, number, f"step {number}")
    damage(steps[1] / name)
    assert steps.finished() == 1 and str(steps[1] / name) in notes[-1]
    _add(steps, 1, "again")
    assert steps.finished() == 3 and (steps[1] / "text").read_text() == "again"


def test_another_plan_throws_the_steps_away(tmp_path: Path) -> None:
    _add(Steps(tmp_path, PLAN), 0, "")
    assert Steps(tmp_path, {**PLAN, "corpus": "b"}).finished() == 0


@pytest.mark.parametrize("name", ["thesis.txt", "0001", "plan.txt"])
def test_a_folder_with_anything_else_is_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(SettingsError, match=f"it holds {name}"):
        Steps(tmp_path, PLAN)
    assert (tmp_path / name).read_text() == "mine"


def test_of_steps_that_were_half_thrown_away_none_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(tmp_path, PLAN)
    _add(steps, 0, "whole")

    def killed(folder: Path, **_: object) -> None:
        (folder / "00000" / "text").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("quit.common.steps.shutil.rmtree", killed)
        Steps(tmp_path, {**PLAN, "corpus": "b"})
    assert Steps(tmp_path, PLAN).finished() == 0
