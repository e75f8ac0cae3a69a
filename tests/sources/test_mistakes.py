"""The tutorial's data with a mistake in each field: every message names file, line and field, and says what to do."""

import json
import os
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.errors import InputError
from quit.library.checking import examine
from quit.settings import load
from quit.sources import files, items, jsonl, parse_source
from tests.paths import ROOT
from tests.running import call_quit

TUTORIAL = ROOT / "docs" / "tutorial" / "hints.jsonl"
LINES = [line for line in TUTORIAL.read_text(encoding="utf-8").splitlines() if "everest" not in line]  # it leaks
PLACE = 4  # the line that gets the mistake, from 0


def checked(path: Path) -> tuple[int, dict]:
    """Run ``quit check --json`` without models, and return its exit code and what it said."""
    result = call_quit("check", path, "--json", "--no-models", code=None)
    return result.code, result.json()


def changed(**fields) -> str:
    """Return the line with some fields replaced; ``...`` takes a field away."""
    record = json.loads(LINES[PLACE])
    record.update(fields)
    return json.dumps({key: value for key, value in record.items() if value is not ...}, ensure_ascii=False)


def written(folder: Path, line: str | bytes) -> Path:
    path = folder / "hints.jsonl"
    lines = [text.encode() for text in LINES]
    lines[PLACE] = line.encode() if isinstance(line, str) else line
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


HINTS = json.loads(LINES[PLACE])["hints"]
FAULTS = {
    "id of another line": (changed(id="venus"), "duplicate_id", "'venus'", "line 2", "a unique id"),
    "an id beyond counting": (changed(id=10**50), "bad_value", "'id' is a huge number", "up to 200 characters"),
    "a book as question": (changed(question="x" * 100_001), "too_long", "'question' has 100,001", "at most 100,000"),
    "a book as hint": (changed(hints=[*HINTS, "x" * 100_001]), "too_long", "Hint 7", "100,001 characters"),
    "a book as candidate": (changed(candidates=["x" * 100_001]), "too_long", "'candidates' has 100,001"),
    "a leaking hint": (changed(hints=[*HINTS, "An octopus."]), "answer_leak", "'octopus' gives away"),
    "four hints": (changed(hints=HINTS[:4]), "too_few_hints", "4 distinct hints", "at least 5"),
    "one hint five times": (changed(hints=HINTS[:1] * 5), "too_few_hints", "1 distinct hints", "5 from 1 record"),
    "a number among hints": (changed(hints=[*HINTS, 7]), "wrong_type", "Hint 7", "must be a text", "the number 7"),
    "a hint twice": (changed(hints=[*HINTS, HINTS[0]]), "duplicate_hint", HINTS[0]),
    "a broken line": (changed()[:-1], "not_json", "not JSON", "column"),
    "single quotes": (changed().replace('"', "'"), "not_json", "not JSON", "double quotes"),
    "another encoding": (changed(difficulty="schön").encode("latin-1"), "not_utf8", "not UTF-8", "save the file"),
}
GERMAN = [f"Hinweis Nummer {number} ist kurz." for number in range(5)]
NOTES = {
    "another language": (changed(question="Wer hat das geschrieben?", hints=GERMAN), ["not English", "no other"]),
    "an unknown key": (changed(candidates=..., canditates=["squid"]), ["'canditates'", "did you mean 'candidates'?"]),
    "an unknown key of the type": (changed(question_type={"corse": "ENTY"}), ["'corse'", "did you mean 'coarse'?"]),
    "a key twice": (changed()[:-1] + ', "answers": ["octopus"]}', ["'answers' is in an object twice", "only the last"]),
    "a list in one text": (changed(candidates="Monet, Cezanne"), ["'Monet, Cezanne'", "Write a list"]),
    "a stop word as answer": (changed(answers=["yours"]), ["'yours' is a common word", "full name"]),
    "punctuation as answer": (changed(answers=["!!!"]), ["'!!!'", "no letter or digit"]),
    "an address as answer": (changed(answers=["https://example.org/octopus"]), ["address", "Write the name"]),
    "markup in a hint": (changed(hints=[*HINTS, "It is <b>clever</b>."]), ["The hint 'It is", "'<b>'", "Take it out"]),
    "markup in the question": (changed(question="<p>Which animal is meant?</p>"), ["question holds markup", "'<p>'"]),
    "a huge hint": (changed(hints=[*HINTS, "It swims. " * 5000]), ["A hint has 49,999 characters"]),
    "a whole sentence as answer": (changed(answers=["It is the octopus. " * 20]), ["characters", "a few words"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_mistake_is_left_out_with_file_line_field_and_remedy(tmp_path, name):
    line, reason, *words = FAULTS[name]
    code, outcome = checked(written(tmp_path, line))
    assert code == 1 and outcome["records"] == len(LINES)
    faults = [row for row in outcome["faults"] if row["reason"] == reason]
    assert faults, outcome["faults"]
    for row in faults:
        assert row["file"] == "hints.jsonl" and row["detail"].startswith(f"line {PLACE + 1}")
    assert all(any(word in row["detail"] for row in faults) for word in words), faults
    # One bad line costs nobody else anything.
    assert outcome["questions"] >= len(LINES) - 1


def test_answers_among_the_candidates_do_no_harm_and_are_one_note(tmp_path):
    code, outcome = checked(written(tmp_path, changed(candidates=["squid", "Octopus"])))
    assert code == 0 and outcome["questions"] == len(LINES)
    [note] = [row["detail"] for row in outcome["notes"] if "gold answer" in row["detail"]]
    assert note == "1 with the gold answer among the candidates: it is not taken for a wrong answer."


@pytest.mark.parametrize("name", NOTES)
def test_what_can_be_used_but_looks_wrong_is_noted(tmp_path, name):
    line, words = NOTES[name]
    code, outcome = checked(written(tmp_path, line))
    assert code == 0 and outcome["questions"] == len(LINES)
    [note] = [row["detail"] for row in outcome["notes"] if row["detail"].startswith(f"line {PLACE + 1}")]
    assert all(word in note for word in words), note


def test_a_line_that_is_left_out_takes_no_notes_along(tmp_path):
    lines = [changed(hints=5), changed(candidates=..., canditates=["squid"])]
    _, outcome = checked(written(tmp_path, "\n".join(lines)))
    assert [row["detail"] for row in outcome["notes"] if "'canditates'" in row["detail"]]


def test_the_tutorials_data_has_one_leak(tmp_path):
    code, outcome = checked(TUTORIAL)
    assert (code, outcome["questions"], outcome["hints"], outcome["notes"]) == (1, 10, 60, [])
    [fault] = outcome["faults"]
    assert fault["reason"] == "answer_leak" and fault["detail"].startswith("line 10 (everest): 2 of 6 hints leak")
    assert "--no-models" in outcome["skipped"]
    code, outcome = checked(written(tmp_path, LINES[PLACE]))
    assert (code, outcome["faults"], outcome["notes"]) == (0, [], [])


def test_leaks_that_only_models_find_are_faults_unless_skipped(tmp_path):
    def probability(pairs):
        return np.array([float("ink" in pair.candidate) for pair in pairs])

    refs = [parse_source(str(written(tmp_path, changed(hints=[*HINTS, "Its ink is dark."]))))]
    settings = load("embedded", ["leakage.screen=-1"]).settings  # every word is asked about: no encoder
    models = SimpleNamespace(equivalence=SimpleNamespace(identity="ink", probability=probability), encoder=None)
    by_rules, by_models = examine(refs, settings, None), examine(refs, settings, models)
    assert by_rules["faults"] == [] and by_rules["skipped"] and not by_models["skipped"]
    [fault] = by_models["faults"]
    assert fault["detail"].startswith(f"line {PLACE + 1} (octopus)") and "'ink' gives away 'octopus'" in fault["detail"]
    assert by_models["questions"] == by_rules["questions"] - 1


@pytest.mark.parametrize("special", ["fifo", "/dev/zero"])
def test_what_may_never_end_is_refused_before_it_is_read(tmp_path, special):
    path = Path(special)
    if special == "fifo":
        os.mkfifo(path := tmp_path / "hints.jsonl")
    with pytest.raises(InputError, match=r"is a pipe, a socket or a device: write what it gives into a file"):
        parse_source(f"jsonl:{path}")


def test_a_line_without_end_costs_itself_alone_and_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(items, "MAX_LINE", 10_000)
    path = written(tmp_path, changed(difficulty="x" * 10_000_000))
    tracemalloc.start()
    faults = [(item.position, item.fault and item.fault.reason) for item in items.line_items(path, "JSON Lines")]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert faults == [(index, "too_long" if index == PLACE else None) for index in range(len(LINES))]
    assert most < 1_000_000


def test_a_json_file_beyond_memory_is_refused(tmp_path):
    path = tmp_path / "hints.jsonl"
    with path.open("wb") as file:
        file.write(b"{")
        file.truncate(files.MAX_WHOLE + 1)  # no byte of it is on the disk
    with pytest.raises(InputError, match="split the file"):
        list(items.json_items(path, "JSON", frozenset()))


def test_parquet_that_is_no_utf_8_is_one_line_with_the_files_name(tmp_path):
    path = tmp_path / "hints.parquet"
    good = pa.array(["x"], pa.string())
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    pq.write_table(pa.table({"id": good, "question": bad, "answers": good, "hints": pa.array([["a"]])}), path)
    with pytest.raises(InputError, match=r"hints\.parquet cannot be read: .*utf-8"):
        list(jsonl.read(path))
