"""``quit evaluate``: figures that can be counted by hand."""

from pathlib import Path

import pytest

from tests.release import small
from tests.report import tiny
from tests.running import call_quit

pytestmark = pytest.mark.usefixtures("own_folder")


def _all_answers(output: dict, counts: tuple[str, ...]) -> dict[tuple[str, str], tuple]:
    rows = (row for row in output["agreements"] if not row["by"])
    return {(row["first"], row["second"]): tuple(row[name] for name in counts) for row in rows}


def test_judges(tmp_path: Path) -> None:
    """Of three verdicts by the model the second judge shares one, contradicts one, and could read one that the first
    could not."""
    rows = tiny.rows()
    by_model = [row for row in rows["verdicts"] if row["basis"] == "model"]
    assert [row["correct"] for row in by_model] == [False, False, False]
    by_model[2]["correct"] = None
    rows["second_verdicts"] = [
        {**row, "correct": correct, "judge": "second", "producer": "second@1"}
        for row, correct in zip(by_model, (False, True, False), strict=True)
    ]
    workspace = tiny.workspace(tmp_path / "W", rows).path
    output = call_quit("evaluate", "judges", "-w", workspace, "--json").json()
    counts = ("both", "only_first", "only_second", "neither", "unread", "kappa")
    of_people = {("people", "rules"): (0, 1, 0, 0, 1, None), ("people", "second"): (1, 0, 0, 1, 0, 1.0)}
    assert _all_answers(output, counts) == {**of_people, ("rules", "second"): (0, 0, 1, 1, 1, None)}
    assert [(row["question_id"], row["correct"]) for row in output["disagreements"]] == [("q2", False), ("q3", None)]
    shown = call_quit("evaluate", "judges", "-w", workspace, "--limit", 1)
    assert "Wrong" in shown.out
    rows["second_verdicts"] += [{**row, "judge": "third", "correct": True} for row in rows["second_verdicts"]]
    workspace = tiny.workspace(tmp_path / "V", rows).path
    output = call_quit("evaluate", "judges", "-w", workspace, "--json").json()
    pairs = _all_answers(output, counts)
    assert pairs["rules", "third"] == (0, 0, 2, 0, 1, None) and pairs["second", "third"] == (1, 0, 2, 0, 0, None)
    [verdict] = [row for row in call_quit("show", "q2", "-w", workspace, "--json").json()["verdicts"] if row["votes"]]
    assert [(vote["judge"], vote["correct"]) for vote in verdict["votes"]] == [("second", True), ("third", True)]
    assert "second: correct, third: correct" in " ".join(call_quit("show", "q2", "-w", workspace).out.split())


def test_run(tmp_path: Path) -> None:
    small.freeze(tmp_path / "R", small.rows())
    run = tmp_path / "mine.run"
    # Of q3, the one question of test: label 1 first, then label 2. Then a passage of nobody.
    run.write_text("q3 Q0 q3_1_1 1 3 mine\nq3 Q0 q3_0_0 2 2 mine\nx Q0 y 1 1 mine\nq3 Q0 z 3 1 mine\n")
    shown = call_quit("evaluate", "run", run, "-w", "R", "--set", "benchmark.resamples=100")
    text = " ".join(shown.out.split())
    assert "mine: 1 question" in text
    assert "MRR@100 100.00" in text and "MRR(rel=2)@100 50.00" in text
    assert "- 1 question of the run not in the split test, such as x: not scored" in text
    assert "- 1 line with a passage that the release does not have, such as q3 z: not relevant" in text
    rows = call_quit("evaluate", "run", run, "-w", "R", "--json").json()["metrics"]
    values = {row["metric"]: row for row in rows}
    assert (values["Hit(rel=2)@1"]["value"], values["Hit(rel=2)@10"]["value"]) == (0, 1)
    run.write_text("q3 Q0 q3_1_1 1 3 mine\nhello\n")
    failed = call_quit("evaluate", "run", run, "-w", "R", code=3)
    assert "line 2 has 1 column" in failed.err and failed.err.count("\n") == 1
