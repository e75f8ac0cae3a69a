"""What spreadsheets and data frames leave in texts: lists are read, the rest is named."""

import json
from datetime import date
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from quit.library.arguments import source_texts
from quit.library.checking import examine
from quit.settings import load
from quit.sources import csv, parse_source
from quit.sources.leftovers import left_over, listed
from quit.status.notes import leftovers_of_spreadsheets

CITIES = ["Cairo", "O'Brien's, the city", "Łódź"]


@pytest.mark.parametrize("texts", [CITIES, CITIES[:1], [f"{CITIES[1]} 'x'"], []])
def test_a_list_that_python_or_json_wrote_is_read_as_it_was(texts: list[str]) -> None:
    for form in (str(texts), json.dumps(texts), json.dumps(texts, ensure_ascii=False), repr(np.array(texts, object))):
        assert listed(form) == texts, form


def test_a_missing_entry_of_a_list_is_left_out() -> None:
    assert listed("['Cairo', None]") == listed('["Cairo", null]') == ["Cairo"] and listed("[None]") == []


@pytest.mark.parametrize("cell", ["[]", "[None]"])
def test_an_empty_list_in_a_cell_is_no_answer_and_no_candidate(tmp_path, cell: str) -> None:
    path = tmp_path / "q.csv"
    columns = [f"hint{number}" for number in range(1, 6)]
    row = {"question": "Which?", **{name: f"Hint {name} is a sentence." for name in columns}}
    rows = [row | {"id": 1, "answers": "['Cairo']", "candidates": cell}, row | {"id": 2, "answers": cell}]
    pd.DataFrame(rows).to_csv(path, index=False)
    first, second = csv.read(path)
    assert first.question.answers == ("Cairo",) and first.question.candidates == ()
    assert second.question is None and second.rejects[0].reason == "no_answer"


def test_escapes_of_json_and_of_python_are_read_without_a_warning() -> None:
    assert listed(r'["1\/2", "\u0141"]') == ["1/2", "Ł"] and listed(r"['\d', 'it\'s']") == [r"\d", "it's"]


def test_a_list_that_numpy_printed_is_read() -> None:
    assert listed(str(np.array(["Cairo", "Al-Qahira"]))) == ["Cairo", "Al-Qahira"]
    assert listed(str(np.array(["Cairo", "Łódź city"] * 20))) == ["Cairo", "Łódź city"] * 20


@pytest.mark.parametrize(
    "text",
    [
        "Cairo",
        "[sic]",
        "[1, 2]",
        "['Cairo', 3]",
        "[Cairo, Giza]",
        "['Cairo'",
        "",
        "1",
        "[{[1]: 2}]",
        "['Ca' 'iro', 'Giza']",
    ],
)
def test_other_texts_are_no_list(text: str) -> None:
    assert listed(text) is None


@pytest.mark.parametrize(
    ("text", "part"),
    [
        *((text, "error cell") for text in ("#REF!", "#NAME?", "#N/A", "#DIV/0!", "#VALUE!", "#NUM!", "########")),
        *((text, "error cell") for text in ("#ERROR!", "#BEZUG!", "#NOM?", "#BLOCKED!", "#GETTING_DATA", "Err:502")),
        *((text, "missing") for text in ("nan", "NaN", "<NA>", "NaT", "N/A")),
        *((text, "knows none") for text in ("NO ANSWER", "No answer", "unanswerable")),
        ("1.23457E+14", "last digits"),
        *((text, "became a date") for text in ("Mar-01", "1-Sep")),
        *((text, "_x000D_") for text in ("_x000D_Zan", "Zan_x000D_")),
        ("'007", "take as a text"),
        *((text, "decimal") for text in ("1969.0", "-40.0")),
        *((text, "midnight") for text in ("1969-07-20 00:00:00", "1969-07-20T00:00:00.000Z", "1969-07-20 00:00")),
        *((text, "U+FFFD") for text in ("Gen\ufffdve", "\ufffd")),
        *((text, "list") for text in ("[Cairo, Giza]", "array([1, 2])")),
    ],
)
def test_leftovers_are_named(text: str, part: str) -> None:
    assert part in (left_over(text) or "")


@pytest.mark.parametrize(
    "text",
    [
        "1969",
        "3.14",
        "9.05",
        "C#",
        "#1",
        "Nan Goldin",
        "1969-07-20",
        "[sic] transit",
        "#MeToo",
        "1-2",
        "NA",
        "Answer",
        "May",
        "Sep-tember",
        "'97 election",
        "6.022E+23 mol",
    ],
)
def test_answers_that_are_meant_are_no_leftovers(text: str) -> None:
    assert left_over(text) is None


@pytest.mark.parametrize(
    ("hint", "is_read"),
    [("[{'hint': 'a', 'rank': 1}, {'hint': 'b'}]", False), ('{"text": "a"}', False), ("{a} or [b]: which?", True)],
)
def test_an_object_written_as_a_text_is_no_hint(tmp_path, hint: str, is_read: bool) -> None:
    path = tmp_path / "q.csv"
    rows = [{"id": 1, "question": "Which?", "answer": "Cairo", "hint1": hint, "hint2": "It lies on a river."}]
    pd.DataFrame(rows).to_csv(path, index=False)
    [record] = csv.read(path)
    assert len(record.question.hints) == 1 + is_read
    assert [reject.reason for reject in record.rejects] == ["wrong_type"] * (not is_read)


ROW = {"question": "Which?", "hints": [f"Hint number {n} is a sentence." for n in range(5)]}


def test_check_and_build_name_record_and_field(tmp_path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [{**ROW, "id": "a", "question": "Which city?", "answers": "['Genf', 'Geneva']"},
            {**ROW, "id": "b", "question": "Which year?", "answers": ["1969.0"]},
            {**ROW, "id": "c", "question": "Which Gen\ufffdve?", "answers": ["Rhone"]}]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = examine([parse_source(f"jsonl:{path}")], load().settings, None)
    notes = [note["detail"] for note in found["notes"]]
    assert any(note.startswith("line 2 (b): The answer '1969.0' looks like") for note in notes)
    assert any(note.startswith("line 3 (c): The question has a character") for note in notes)
    assert not any("(a)" in note for note in notes) and found["answers"] == 4
    questions = [
        ("jsonl-b", "Which year?", ["1969.0"]),
        ("jsonl-c", "Which Gen\ufffdve?", ["Rhone"]),
        ("jsonl-d", "?", ["X"]),
    ]
    told = leftovers_of_spreadsheets(SimpleNamespace(rows=lambda *_: questions)) or ""
    assert "jsonl-b: The answer '1969.0' looks like" in told and "jsonl-c" in told and "jsonl-d" not in told
    assert leftovers_of_spreadsheets(SimpleNamespace(rows=lambda *_: questions[2:])) is None


def test_a_day_of_a_data_frame_is_a_date() -> None:
    frame = pd.DataFrame(
        {"id": ["a"], "answers": pd.to_datetime(["1969-07-20"]), "at": pd.to_datetime(["1969-07-20 20:17"])}
    )
    written: list[bytes] = []
    source_texts(frame, lambda name, data: written.append(data) or name)
    row = json.loads(written[0])
    assert row["answers"] == str(date(1969, 7, 20)) and row["at"].startswith("1969-07-20 20:17")
