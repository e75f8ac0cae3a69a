"""A person decides against the leakage filter: rows in, rows out, and what a build does with them."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quit.engine.logs import Log, contents, in_force
from quit.engine.pipeline import Pipeline
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.review.overrides import Decision, add, listed, read_decisions, withdraw
from quit.status.story import story
from tests.building import carry_out, plan_build
from tests.rows import write_lines
from tests.running import Result, call_quit

LEAKY, CLEAN = "jsonl-leaky-h01", "jsonl-clean-h00"


def _planned(folder: Path, source: Path) -> Pipeline:
    return plan_build(folder, "leakage.mode=question", source=source, profile="embedded")


def _run(folder: Path, source: Path) -> Pipeline:
    """Carry out the first stages as a build does, skipping what is done."""
    pipeline = _planned(folder, source)
    carry_out(pipeline, "collect", "filter")
    return pipeline


@pytest.fixture
def source() -> Path:
    """Two questions: a hint of ``leaky`` names the answer."""
    return Path(__file__).with_name("two.jsonl")


@pytest.fixture
def workspace(tmp_path: Path, source: Path) -> Workspace:
    return _run(tmp_path / "W", source).workspace


def _usable(workspace: Workspace) -> set[str]:
    return set(workspace.read("usable_hints").column("question_id").to_pylist())


def test_no_leak_keeps_the_finding_and_the_question_and_withdrawn_gives_the_old_tables(workspace, source: Path) -> None:
    assert _usable(workspace) == {"jsonl-clean"}
    before = workspace.state["filter"]
    [row] = add(workspace, [Decision(LEAKY, "no_leak", "ada", "The blanket is meant.")])
    assert (row["question_id"], row["decision"], row["by"]) == ("jsonl-leaky", "no_leak", "ada")
    pipeline = _run(workspace.path, source)
    assert _usable(workspace) == {"jsonl-clean", "jsonl-leaky"} and pipeline.fingerprints["filter"] != before
    findings = workspace.read("leak_findings").to_pylist()
    assert findings and all(row["overridden"] for row in findings if row["hint_id"] == LEAKY)
    life = story(workspace, "jsonl-leaky")
    assert life["overrides"] == [{**row, "in_force": True, "hint_gone": False}]
    assert life["leak_findings"][0]["overridden"]

    withdraw(workspace, row["override_id"], "ben", "It does leak.")
    pipeline = _planned(workspace.path, source)
    assert pipeline.fingerprints["filter"] == before
    assert pipeline.pending(pipeline.stage_run("filter")) == []  # the old tables are still there: nothing runs
    _run(workspace.path, source)
    assert workspace.state["filter"] == before and _usable(workspace) == {"jsonl-clean"}
    rows = [(row["decision"], row["in_force"]) for row in listed(workspace)]
    assert rows == [("no_leak", False), ("withdrawn", False)]


def test_leak_adds_a_finding_that_discards(workspace: Workspace, source: Path) -> None:
    add(workspace, [Decision(CLEAN, "leak", "ada", "Everybody knows what Herschel saw.")])
    _run(workspace.path, source)
    assert _usable(workspace) == set()
    [finding] = [row for row in workspace.read("leak_findings").to_pylist() if row["hint_id"] == CLEAN]
    columns = ("span", "answer", "method", "probability", "overridden")
    assert [finding[name] for name in columns] == [
        "William Herschel saw it from his garden in Bath.",
        "Uranus",
        "person",
        1.0,
        False,
    ]
    reasons = {row["question_id"]: row["detail"] for row in workspace.read("rejects").to_pylist()}
    assert "person" in reasons["jsonl-clean"]


def test_an_override_follows_its_hint_to_another_place_in_the_source(workspace, source: Path, tmp_path: Path) -> None:
    add(workspace, [Decision(LEAKY, "no_leak", "ada", "Fine."), Decision(CLEAN, "leak", "ada", "It is known.")])
    records = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    for record in records:
        record["hints"].append(record["hints"].pop(0))
    _run(workspace.path, write_lines(tmp_path / "two.jsonl", records))
    assert _usable(workspace) == {"jsonl-leaky"}
    [finding] = [row for row in workspace.read("leak_findings").to_pylist() if row["method"] == "person"]
    assert finding["span"] == "William Herschel saw it from his garden in Bath."


def test_a_list_says_which_override_has_no_hint_any_more(workspace, source: Path, tmp_path: Path) -> None:
    add(workspace, [Decision(LEAKY, "no_leak", "ada", "Fine."), Decision(CLEAN, "leak", "ada", "It is known.")])
    text = source.read_text(encoding="utf-8").replace("Lesotho blankets are", "The blankets of Lesotho are")
    edited = tmp_path / "two.jsonl"
    edited.write_text(text, encoding="utf-8")
    _run(workspace.path, edited)
    assert [(row["hint_id"], row["in_force"], row["hint_gone"]) for row in listed(workspace)] == [
        (LEAKY, True, True),
        (CLEAN, True, False),
    ]
    for command in (("override", "list"), ("show", "jsonl-leaky")):
        words = " ".join(call_quit(*command, "-w", workspace.path).out.split())
        assert words.count("No hint of the question has that text now") == 1


def test_an_override_is_for_the_next_build_and_reruns_the_filter_and_what_follows(workspace, source: Path) -> None:
    running = _planned(workspace.path, source)
    before, run = running.fingerprints, running.stage_run("filter")
    add(workspace, [Decision(LEAKY, "no_leak", "ada", "Fine.")])
    assert not len(running.overrides_of(run.stage))
    after = _planned(workspace.path, source).fingerprints
    assert {name for name in before if before[name] == after[name]} == {"collect"}
    add(workspace, [Decision(LEAKY, "no_leak", "ben", "I agree.")])
    assert len(listed(workspace)) == 2
    assert _planned(workspace.path, source).fingerprints == after  # who and when are no part of it


def test_the_last_row_of_a_key_counts(workspace: Workspace) -> None:
    for decision in ("no_leak", "leak", "no_leak"):
        add(workspace, [Decision(LEAKY, decision, "ada", "Changed my mind.")])
    rows = in_force(Log(workspace, "overrides").read(), "leak")
    assert [row[3:] for row in contents(rows)] == [["no_leak"]]
    assert len(in_force(Log(workspace, "overrides").read(), "label")) == 0
    first = listed(workspace)[0]["override_id"]
    with pytest.raises(InputError, match="not in force: ov-[0-9a-f]{10} has taken its place"):
        withdraw(workspace, first, "ada", "Sorry.")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Decision("jsonl-leaky-h1", "leak", "ada", "x"), "The nearest: jsonl-leaky-h01"),
        (Decision(LEAKY, "noleak", "ada", "x"), "Did you mean 'no_leak'"),
        (Decision(LEAKY, "leak", "ada", "x", kind="leek"), "Did you mean 'leak'"),
        (Decision(LEAKY, "leak", " ", "x"), "who decided"),
        (Decision(LEAKY, "leak", "ada", ""), "why, in words"),
    ],
)
def test_bad_decisions_name_the_nearest_right_one_and_write_nothing(workspace, wanted, message) -> None:
    with pytest.raises(InputError, match=message):
        add(workspace, [Decision(LEAKY, "leak", "ada", "good"), wanted])
    assert listed(workspace) == []


def test_a_list_of_overrides_can_be_put_into_another_workspace(workspace, tmp_path: Path) -> None:
    add(workspace, [Decision(LEAKY, "no_leak", "ada", "Fine."), Decision(CLEAN, "leak", "ada", "It is known.")])
    add(workspace, [Decision(CLEAN, "no_leak", "ben", "It is not.")])
    rows = [{name: str(value) if name == "at" else value for name, value in row.items()} for row in listed(workspace)]
    path = write_lines(
        tmp_path / "list.jsonl", [*rows, {"hint_id": "x", "decision": "leak", "by": "a", "reason": "b", "kind": None}]
    )
    of_list = [(decision.hint_id, decision.decision, decision.by) for decision in read_decisions(path)]
    assert of_list == [(LEAKY, "no_leak", "ada"), (CLEAN, "no_leak", "ben"), ("x", "leak", "a")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"hint": "x"}', "'hint' is not a key of an override. Did you mean 'hint_id'"),
        ('{"hint_id": "x", "decision": "leak", "by": "a"}', "'reason' is missing"),
        ('{"hint_id": 3}', "'hint_id' must be a text"),
        ("[]", "line 2 is a list of 0"),
    ],
)
def test_bad_lines_of_a_file_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({"hint_id": "x", "decision": "leak", "by": "a", "reason": "b"}) + f"\n{line}\n")
    with pytest.raises(InputError, match=message):
        read_decisions(path)


@pytest.mark.parametrize("before", [[], ["leak"], ["no_leak"], ["leak", "no_leak"]])
@pytest.mark.parametrize("decisions", [["leak"], ["leak", "no_leak"], ["no_leak", "leak", "no_leak"], ["leak", "leak"]])
def test_the_last_of_several_decisions_is_in_force_whatever_was_before(
    workspace: Workspace, before: list[str], decisions: list[str]
) -> None:
    def decide(decisions: list[str]) -> int:
        return len(add(workspace, [Decision(LEAKY, decision, "ada", "x") for decision in decisions]))

    decide(before)
    written = decide(decisions)
    [row] = in_force(Log(workspace, "overrides").read()).to_pylist()
    assert row["decision"] == decisions[-1] and (written == 0) == (before[-1:] == decisions[-1:])
    assert decide(decisions) == 0, "again, nothing is new"


def test_an_unknown_id_cannot_be_withdrawn(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="The workspace has none"):
        withdraw(workspace, "ov-1", "ada", "x")
    [row] = add(workspace, [Decision(LEAKY, "leak", "ada", "x")])
    with pytest.raises(InputError, match=f"Did you mean '{row['override_id']}'"):
        withdraw(workspace, row["override_id"][:-1], "ada", "x")


def test_many_people_at_once_lose_no_row(workspace: Workspace) -> None:
    def decide(number: int) -> None:
        add(Workspace.open(workspace.path), [Decision(LEAKY, "leak", f"person {number}", "x")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(decide, range(24)))
    rows = listed(workspace)
    assert {row["by"] for row in rows} == {f"person {number}" for number in range(24)}
    assert len({row["override_id"] for row in rows}) == 24
    assert [row["in_force"] for row in rows] == [False] * 23 + [True]


def test_on_the_command_line(workspace: Workspace, tmp_path: Path) -> None:
    def run(*arguments: object, code: int = 0) -> Result:
        return call_quit("override", *arguments, "-w", workspace.path, code=code)

    decision = ("leak", "--hint", LEAKY, "--decision", "no_leak", "--by", "ada", "--reason", "Fine.", "--json")
    [row] = run(*decision).json()
    assert row["hint_id"] == LEAKY
    assert run("list", "--json").json() == [{**row, "in_force": True, "hint_gone": False}]
    refusal = run("withdraw", "ov-0", "--by", "ada", code=3).err
    assert refusal.count("\n") == 1 and row["override_id"] in refusal
    run("withdraw", row["override_id"], "--by", "ada")
    assert "withdrawn" in run("list").out
    more = {"decision": "leak", "by": "ben", "reason": "It is the answer."}
    path = write_lines(tmp_path / "more.jsonl", [{"hint_id": hint, **more} for hint in (LEAKY, CLEAN)])
    assert [row["hint_id"] for row in run("import", path, "--json").json()] == [LEAKY, CLEAN]
    assert "in force already: nothing was written" in run("import", path).out
