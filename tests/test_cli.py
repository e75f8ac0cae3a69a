"""The command line over a finished workspace."""

import json
import sys
from pathlib import Path

import pytest

from quit.engine.workspace import Workspace
from quit.library.checking import examine
from quit.settings import load
from quit.sources import parse_source
from tests.rows import write_lines
from tests.running import call_quit, run_process

pytestmark = pytest.mark.slow


def test_show_tells_a_questions_whole_life_by_its_own_id_too(built: Path) -> None:
    identity = Workspace.open(built).read("labels").column("question_id")[0].as_py()
    life = call_quit("show", "-w", built, identity, "--json").json()
    assert (len(life["passages"]), len(life["probe"])) == (325, 18)
    assert identity in call_quit("show", "-w", built, life["origins"][0]["record_id"]).out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["show", "-w", "W", "no-answer"], 3, "'answers' is missing"),  # why a record was left out
        (["show", "-w", "W", "geo-01"], 3, "There is no question 'geo-01'. The nearest: jsonl-geo-001"),
        (["show", "-w", "W", "nope"], 3, "There is no question 'nope'.\n"),
        (["export", "-w", "W", "-f", "hugginface"], 4, "'huggingface'"),
        (["status", "-w", "/nowhere"], 7, "/nowhere is not a workspace. Name another folder, or build it: quit build"),
        (["status", "-w", "/etc/hosts"], 7, "/etc/hosts is a file, not a workspace. Name another folder"),
        (["-w", "a b", "build", "-q"], 4, "Options come after the command: quit build -w 'a b' -q"),
        (["-w", "build", "status"], 4, "Options come after the command: quit status -w build"),
    ],
)
def test_mistakes_are_answered_with_one_line(built: Path, arguments: list[str], code: int, message: str) -> None:
    result = call_quit(*(str(built) if word == "W" else word for word in arguments), code=code)
    assert message in result.err, result.err


def test_check_leaves_out_what_a_build_leaves_out(built: Path, small_source: Path) -> None:
    checked = examine([parse_source(str(small_source))], load().settings)  # rules find all the leaks there are in it
    workspace = Workspace.open(built)
    ids = {row["question_id"]: row["record_id"] for row in workspace.read("origins").to_pylist()}
    rejects = [row for row in workspace.read("rejects").to_pylist() if row["stage"] in ("collect", "filter")]
    assert sorted(row["reason"] for row in checked["faults"]) == sorted(row["reason"] for row in rejects)
    leaking = [ids[row["question_id"]] for row in rejects if row["stage"] == "filter"]
    life = [row["detail"] for row in checked["faults"] if row["reason"] == "answer_leak"]
    assert leaking and all(any(f"({one})" in detail for detail in life) for one in leaking)
    assert checked["questions"] == len(workspace.read("questions")) - len(leaking)


def test_the_doctor_finds_a_healthy_installation_and_a_damaged_workspace(workspace: Workspace) -> None:
    healthy = call_quit("doctor", "-w", workspace.path, "--json")
    assert all(check["ok"] for check in healthy.json()), healthy.out
    part = next((workspace.path / "tables").rglob("part-*.parquet"))
    part.write_bytes(part.read_bytes() + b"x")
    damaged = call_quit("doctor", "-w", workspace.path, "--json", code=1)
    assert [check["what"] for check in damaged.json() if not check["ok"]] == ["workspace"]


def test_telemetry_is_off() -> None:
    code = "import quit.flows.build; from prefect.settings import get_current_settings as s; print(s().server)"
    assert "analytics_enabled=False" in run_process(sys.executable, "-c", code).out


def test_fine_tuning_choices_reach_the_export(built: Path, tmp_path: Path) -> None:
    choices = ("--positives", "2", "--negatives", "3", "--negative-kind", "any", "--seed", "mine")
    call_quit("export", "-w", built, "-f", "tevatron", "--out", tmp_path / "o", *choices)
    facts = json.loads((tmp_path / "o" / "tevatron" / "manifest.json").read_text(encoding="utf-8"))["facts"]
    expected = {"positives": 2, "negatives": 3, "kind": "any", "seed": "mine"}
    assert {name: facts["fine_tuning"][name] for name in expected} == expected


def test_a_build_of_which_the_filter_leaves_nothing_says_so(tmp_path: Path) -> None:
    hints = ["The octopus has three hearts.", *(f"It has {n} bones." for n in range(4))]
    row = {"id": "1", "question": "Which animal is meant?", "answers": ["octopus"], "hints": hints}
    write_lines(tmp_path / "leak.jsonl", [row])
    workspace = str(tmp_path / "W")
    for command in (["build", "--source", str(tmp_path / "leak.jsonl")], ["build"], ["export", "--out", str(tmp_path)]):
        result = call_quit(*command, "-w", workspace, code=3)
        assert "pool" not in result.err
        assert "Nothing is left after the filter: the hints of 1 question give the answer away." in result.err
    assert "1 question: answer leak" in call_quit("status", "-w", workspace).out


def test_a_build_of_which_the_split_leaves_nothing_says_so(tmp_path: Path) -> None:
    """The reader knows the answer, and train takes no question."""
    hints = [f"It has {n} bones." for n in range(5)]
    row = {"id": "1", "question": "Which sea animal has arms?", "answers": ["octopus"]}
    write_lines(tmp_path / "q.jsonl", [row | {"hints": hints, "candidates": ["1887"]}])
    workspace = str(tmp_path / "W")
    options = ("--source", str(tmp_path / "q.jsonl"), "--set", "split.method=size", "--set", "split.train_size=0")
    for command in (["build", *options], ["build"], ["release", "create", "--name", "v1"]):
        assert "Nothing is left after the split" in call_quit(*command, "-w", workspace, code=3).err
