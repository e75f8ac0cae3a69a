import csv
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from quit.common.safe import safe_cells
from quit.sources.csv import read as read_csv
from tests.export.conftest import SPLITS, truth_of
from tests.rows import table_of

FORMAT = "csv"
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "'quoted", "\t=1", "\r=1", "\n=1", "＝1+1", "＋1", "－1", "＠x"]
HARMLESS = ["a=1", "", " =1", "1-1", '"=1"', "Ελλάδα"]
LINK = '=HYPERLINK("http://example.org","look")'


@pytest.fixture(scope="module")
def tables(tables):
    """The release with questions and hints that a spreadsheet would run."""
    questions, ranked = tables.questions.to_pylist(), tables.ranked_hints.to_pylist()
    for row, text in zip(questions, FORMULAS, strict=False):
        row["question"] = text
    for row in ranked:
        row["hint"] = LINK if row["rank"] == 0 else row["hint"]
    rows = {"questions": questions, "ranked_hints": ranked}
    return replace(tables, **{name: table_of(name, some) for name, some in rows.items()})


def rows(folder, config):
    """Return the rows of all splits, each with its split."""
    read_rows = []
    for split in SPLITS:
        with (folder / f"{config}.{split}.csv").open(encoding="utf-8-sig", newline="") as file:
            read_rows += [{**row, "split": split} for row in csv.DictReader(file)]
    return read_rows


def original(text):
    return text.removeprefix("'")


def test_no_cell_begins_as_a_formula_and_every_text_comes_back(folder, tables):
    truth = truth_of(tables)
    passages, questions = rows(folder, "passages"), rows(folder, "questions")
    cells = [cell for row in (*passages, *questions) for cell in row.values()]
    assert not [cell for cell in cells if cell[:1] and cell[0] in "=+-@\t\r\n＝＋－＠"]
    facts = json.loads((folder / "manifest.json").read_text())["facts"]
    assert facts["changed_cells"] == sum(cell.startswith("'") for cell in cells) > 0
    assert len(passages) == len(truth.texts) and len(questions) == len(truth.questions)
    for row in passages:
        name, owner = row["id"], row["question_id"]
        assert (original(row["text"]), int(row["label"])) == (truth.texts[name], truth.labels[name])
        assert (truth.owner[name], truth.split[owner]) == (owner, row["split"])
        assert int(row["n_hints"]) == len(name.rpartition("_")[2])
    answers = {row["question_id"]: row["answers"] for row in tables.questions.to_pylist()}
    for row in questions:
        one = row["id"]
        assert original(row["question"]) == truth.questions[one] and json.loads(row["answers"]) == answers[one]
        assert json.loads(row["valid_answers"]) == truth.valid[one] and row["split"] == truth.split[one]
        fully = [name for name, owner in truth.owner.items() if owner == one and truth.labels[name] == 2]
        assert int(row["fully_relevant_passages"]) == len(fully)


def test_a_text_is_changed_only_where_it_begins_as_a_formula():
    texts = safe_cells(pa.array([*FORMULAS, *HARMLESS, None])).to_pylist()
    assert texts == [*(f"'{text}" for text in FORMULAS), *HARMLESS, None]


def test_the_export_is_a_source_with_the_same_gold_answers_and_hints(folder, tables):
    answers = dict(zip(*(tables.questions[name].to_pylist() for name in ("question_id", "answers")), strict=True))
    for split in SPLITS:
        for record in read_csv(folder / f"questions.{split}.csv"):
            assert list(record.question.answers) == answers[record.question.record_id]
            assert record.question.hints[0].text == LINK
