"""Questions in CSV, as spreadsheets write it: each variant holds the same, and each fault names row and column."""

import codecs
import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quit.errors import InputError
from quit.sources import csv as table
from quit.sources import jsonl
from tests.paths import ROOT

TUTORIAL = ROOT / "docs" / "tutorial"
HEAD = "id,question,answer,hint,candidates\n"
FIRST = "1,Which city?,Rome|Roma,It has seven hills.,Athens|Paris\n"


def read(folder: Path, content: str | bytes, name: str = "q.csv") -> list:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(table.read(path))


def faults(records: list) -> list[tuple[str, str]]:
    return [(reject.reason, reject.detail) for record in records for reject in record.rejects]


def contents(records: list) -> list[tuple]:
    questions = [record.question for record in records if record.question]
    hints = [[hint.text for hint in one.hints] for one in questions]
    return [(one.record_id, one.question, one.answers, *more, one.candidates) for one, *more in zip(questions, hints)]


def test_the_tutorials_table_holds_what_its_json_lines_hold():
    ours = [record.question for record in table.read(TUTORIAL / "hints.csv")]
    theirs = [record.question for record in jsonl.read(TUTORIAL / "hints.jsonl")]
    same = {"source": "", "file": "", "position": 0}
    assert len(ours) == 11 and [replace(one, **same) for one in ours] == [replace(one, **same) for one in theirs]


WIDE = [
    ["id", "Question", "answers", "Hint 1", "hint_2", "hint3", "candidate 1", "candidate2", "author"],
    ["a", "Which one, then?", "Rome|Roma", "It is; old.", 'They call it "eternal".', "", "Athens", "Paris", "me"],
    ["b", "Which\nother?", "Lima", "A capital.\tYes.", "Near the sea, they say.", "Café there.", "", "Quito", ""],
]
EXPECTED = [
    ("a", "Which one, then?", ("Rome", "Roma"), ["It is; old.", 'They call it "eternal".'], ("Athens", "Paris")),
    ("b", "Which other?", ("Lima",), ["A capital. Yes.", "Near the sea, they say.", "Café there."], ("Quito",)),
]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_what_spreadsheets_write_is_read(tmp_path, mark, encoding, quoting):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=mark, quoting=quoting).writerows(WIDE)
    records = read(tmp_path, text.getvalue().encode(encoding))
    assert contents(records) == EXPECTED and not faults(records)
    assert [record.question.position for record in records] == [1, 2]


def test_one_hint_a_row_is_the_same_as_one_question_a_row(tmp_path):
    rows = ["id;question;answer;hint;candidates", "a;Which one, then?;Rome|Roma;It is, old.;Athens|Paris"]
    rows += [';;;"They; call"', "b;Which other?;Lima;A capital.;Quito", "a;;;Third.;", "", "b;Which  other?;LIMA;Sea.;"]
    assert contents(read(tmp_path, "\r\n".join(rows))) == [
        ("a", "Which one, then?", ("Rome", "Roma"), ["It is, old.", "They; call", "Third."], ("Athens", "Paris")),
        ("b", "Which other?", ("Lima",), ["A capital.", "Sea."], ("Quito",)),
    ]
    cell = "id,question,answer,hints\n1,Which?,Rome,One hint.| Two hints. ||\n"
    assert contents(read(tmp_path, cell))[0][3] == ["One hint.", "Two hints."]


def test_a_column_that_is_not_read_may_hold_any_text(tmp_path: Path) -> None:
    text = f"id,question,answer,hint,page\n1,Which?,Rome,Old.,{'x' * 100_001}\n"
    assert contents(read(tmp_path, text))[0][0] == "1"


@pytest.mark.parametrize(
    ("rows", "reason", "words"),
    [
        ("1,,,It is big, and old.,Paris\n", "lengths_differ", ["row 3: The row has 6 cells", "5 columns", "a comma"]),
        (",Which town?,Rome,Old.,\n", "missing_field", ["row 3: The column 'id' is blank"]),
        ("1,Which town?,Rome,Old.,\n", "duplicate_id", ["row 3", "'question' is 'Which town?'", "row 2", "'1'"]),
        ("2,,Lima,Old walls.,\n", "no_question", ["row 3: The question is blank"]),
        ("2,Which?,,Old walls.,\n", "no_answer", ["row 3", "no answer"]),
        (f"1,,,{'x' * 1_000_000},\n", "too_long", ["The hint in row 3, column 'hint', has 1,000,000 characters"]),
        (f"2,Which?,{'x' * 100_001},Old walls.,\n", "too_long", ["row 3", "'answer' has 100,001 characters"]),
        (f"{'9' * 201},Which?,Lima,Old walls.,\n", "bad_value", ["row 3", "'id' is longer than 200"]),
        ("1,,,Here are ten hints:,\n", "boilerplate_hint", ["The hint in row 3, column 'hint', says nothing"]),
    ],
)
def test_a_fault_names_row_and_column_and_costs_itself_alone(tmp_path, rows, reason, words):
    records = read(tmp_path, HEAD + FIRST + rows + "3,Which river?,Nile,It is long.,\n")
    assert [(one[0], len(one[3])) for one in contents(records)] == [("1", 1), ("3", 1)]
    [(named, detail)] = faults(records)
    assert named == reason and all(word in detail for word in words), detail


@pytest.mark.parametrize(
    "content",
    [
        "id,question,answer,hint\n1,Q?,Rome|Roma,One.,\n1,,,Two.,,\n",  # separators at the end of rows
        'id, "question", "answer", "hint"\n1, "Q?", "Rome|Roma", "One."\n1, "", "", "Two."\n',
        "sep=;\r\nid;question;answer;hint\r\n1;Q?;Rome|Roma;One.\r\n1;;;Two.\r\n",
        'id,question,answer,hint\n1,Q?,"[""Rome"", ""Roma""]",One.|Two.\n',
    ],
    ids=["trailing separators", "spaces before quotes", "Excel's mark", "JSON list"],
)
def test_what_other_programs_write_is_read(tmp_path, content):
    records = read(tmp_path, content)
    assert contents(records) == [("1", "Q?", ("Rome", "Roma"), ["One.", "Two."], ())] and not faults(records)


def test_a_row_below_a_bad_one_is_given_to_no_other_question(tmp_path):
    bad = "1,,,It is big, and old.,x,y\n,,,Third hint.,\n,Which town?,Lima,A hint.,\n,,,Whose hint?,\n"
    records = read(tmp_path, HEAD + FIRST + bad)
    assert contents(records)[0][3] == ["It has seven hills.", "Third hint."]
    assert [reason for reason, _ in faults(records)] == ["lengths_differ", "missing_field", "missing_field"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("id,question,anwser,hint\n1,Q?,A,H\n", ["row 1 has no column 'answer'", "Is 'anwser' meant?"]),
        ("\n1,Which city?,Rome,Old.\n", ["row 2 has no column 'id'", "'Which city?'"]),
        ("id,id,question,answer,hint\n1,1,Q?,A,H\n", ["column 'id' twice"]),
        (HEAD + FIRST + '2,Q?,A,"It is\n3,Q?,A,H,\n', ["row 3", "line 4", "quote"]),
        (HEAD + FIRST + '2,Q?,A,"It is" big,\n', ["row 3", "quote"]),
        (HEAD, ["no record"]),
        (",,\n\n", ["no column 'id'", "no names"]),
        (HEAD.encode() + FIRST.encode() + "2,Which café?,Rome,x,\n".encode("cp1252"),
         ["line 3 is no UTF-8", "2,Which café?", "CSV UTF-8"]),
        (codecs.BOM_UTF8 + (HEAD + FIRST).encode() + "2,Which café?,Rome,x,\n".encode("cp1252"),
         ["line 3 is no UTF-8", "2,Which café?"]),
        (HEAD.encode("utf-16")[:-1], ["Excel's Unicode text, and cut off"]),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_trusted_is_refused_whole(tmp_path, content, words):
    with pytest.raises(InputError) as error:
        read(tmp_path, content)
    assert all(word in str(error.value) for word in words), error.value


def test_rows_of_a_question_whose_first_row_is_at_fault_name_that_row(tmp_path):
    records = read(tmp_path, HEAD + '7,Which town?,Rome,"Old, big",,surplus\n,,,Its walls are old.,\n' + FIRST)
    assert [detail for reason, detail in faults(records) if reason == "lengths_differ"][1:] == [
        "row 3: The first row of its question, 2, is at fault."
    ] and len(contents(records)) == 1


def test_columns_that_nearly_have_a_name_that_is_read_are_noted(tmp_path):
    (tmp_path / "q.csv").write_text("id,question,answer,hint,candidats,notes\n1,Q?,A,H,B,x\n")
    [note] = table.column_notes(tmp_path / "q.csv")
    assert note == "row 1: The column 'candidats' is not read: did you mean 'candidate'?"


@settings(deadline=None)  # a busy machine is slow, not wrong
@given(st.binary(max_size=200) | st.text('id,question;answer\thint"\n1|x', max_size=200).map(str.encode))
def test_no_bytes_give_a_traceback(tmp_path_factory, content):
    folder = tmp_path_factory.getbasetemp()
    try:
        records = read(folder, HEAD.encode() + content)
    except InputError:
        return
    json.dumps([str(record) for record in records])
