"""``quit check``: what a build would leave out, before anything is built."""

import json
from pathlib import Path

import pytest

from tests.rows import write_lines
from tests.running import call_quit

pytestmark = pytest.mark.usefixtures("own_folder")

HINTS = [f"Hint number {number}." for number in range(5)]
GOOD = {"id": "1", "question": "Who wrote it?", "answers": ["Ada Lovelace"], "hints": HINTS, "candidates": ["Bob"]}


def test_faults_are_named_by_their_line_and_make_it_fail(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    few = {**GOOD, "id": "2", "question": "Who else?", "hints": HINTS[:2]}
    path.write_text("\n".join([json.dumps(GOOD), json.dumps(few), '{"id": "3"']) + "\n")
    shown = call_quit("check", path, code=1)
    lines = shown.out.splitlines()
    assert lines[0].startswith("mine.jsonl, line 2 (2)") and "too_few_hints" in lines[0]
    assert lines[1].startswith("mine.jsonl, line 3") and "not_json" in lines[1]
    assert lines[-1] == "3 records: 1 usable question with 5 hints; 2 faults"
    output = call_quit("check", path, "--json", code=1).json()
    assert (output["records"], output["questions"], output["hints"]) == (3, 1, 5)
    assert [fault["reason"] for fault in output["faults"]] == ["too_few_hints", "not_json"]
    assert "1 more (--limit 0 shows all)" in call_quit("check", path, "--limit", 1, code=1).out


def test_a_sound_file_passes_and_nothing_is_written(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "source" / "mine.jsonl", [GOOD])
    shown = call_quit("check", f"jsonl:{path}")
    pool, counts = shown.out.splitlines()
    assert counts == "1 record: 1 usable question with 5 hints; no faults"
    assert pool.startswith("Note: The embedded readers choose from 2 answers")
    assert list(path.parent.iterdir()) == [path]
    write_lines(path, [{key: value for key, value in GOOD.items() if key != "candidates"}])
    assert "1 without candidates" in call_quit("check", path).out
    call_quit("check", tmp_path / "absent.jsonl", code=3)
    wrong = call_quit("check", f"triviahg:{path}", code=3)
    assert "Expected a TriviaHG file" in wrong.err and f"name it jsonl:{path}" in wrong.err


def test_a_source_with_an_option_is_told_that_it_needs_none() -> None:
    for option in (["--source", "mine.jsonl"], ["--source=mine.jsonl"], ["-s", "mine.jsonl"]):
        shown = call_quit("check", *option, code=4)
        assert "sources need no --source: quit check" in shown.err


def test_faults_of_csv_name_rows_as_a_spreadsheet_counts():
    rows = ["id,question,answer,hint", "1,Which city?,Rome,It has seven hills.", *(f"1,,,{hint}" for hint in HINTS)]
    Path("q.csv").write_text("\n".join([*rows, "2,Which?,Lima,Old walls.", ",Which?,,x", ""]))
    shown = call_quit("check", "q.csv", "--no-models", code=1)
    assert "q.csv, row 8 (2): The question has 1 distinct hint" in shown.out
    assert "q.csv, row 9: The column 'id' is blank" in shown.out
    assert shown.out.splitlines()[-1] == "3 records: 1 usable question with 6 hints; 2 faults"


def test_a_name_that_is_no_utf_8_is_refused_by_every_command() -> None:
    for command in (("check", "h\udcefnts.jsonl"), ("build", "-w", "w\udcef"), ("export", "--out", "e\udcef")):
        assert "udcef" in (refused := call_quit(*command, code=3).err) and "is not UTF-8: rename" in refused
