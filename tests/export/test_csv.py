import csv
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from quit.common.cells import safe_cells
from quit.export import export
from quit.sources.csv import read as read_csv

datasets = pytest.importorskip("datasets")
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "'quoted", "\t=1", "\r=1", "\n=1", "＝1+1", "＋1", "－1", "＠x"]
HARMLESS = ["a=1", "", " =1", "1-1", '"=1"', "Ελλάδα"]


@pytest.fixture(scope="module")
def folder(tables, tmp_path_factory):
    """The release with questions, hints and an answer that a spreadsheet would run."""
    questions = tables.questions.to_pylist()
    for row, text in zip(questions, FORMULAS, strict=False):
        row["question"] = text
    ranked = tables.ranked_hints.to_pylist()
    for row in ranked:
        if row["rank"] == 0:
            row["hint"] = '=HYPERLINK("http://example.org","look")'
    out = tmp_path_factory.mktemp("csv")
    changed = replace(
        tables,
        questions=pa.Table.from_pylist(questions, tables.questions.schema),
        ranked_hints=pa.Table.from_pylist(ranked, tables.ranked_hints.schema),
    )
    export(changed, ["csv"], out)
    export(changed, ["huggingface"], out)
    return out


def rows(folder, name):
    with (folder / "csv" / name).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def original(text):
    return text.removeprefix("'")


def test_no_cell_begins_as_a_formula_and_every_text_comes_back(folder):
    for split in ("train", "dev", "test"):
        for config in ("questions", "passages"):
            given = datasets.Dataset.from_parquet(
                [str(path) for path in (folder / "huggingface" / config).glob(f"{split}-*")],
                cache_dir=str(folder / "cache"),
            ).to_list()
            found = rows(folder, f"{config}.{split}.csv")
            assert len(found) == len(given)
            for cells, row in zip(found, given, strict=True):
                assert not [cell for cell in cells.values() if cell[:1] and cell[0] in "=+-@\t\r\n＝＋－＠"]
                assert original(cells["id"]) == row["id"]
                if config == "passages":
                    assert original(cells["text"]) == row["text"]
                    assert (int(cells["label"]), int(cells["n_hints"])) == (row["label"], row["n_hints"])
                else:
                    assert original(cells["question"]) == row["question"]
                    assert json.loads(cells["answers"]) == row["answers"]
                    assert json.loads(cells["valid_answers"]) == row["valid_answers"]
                    assert int(cells["fully_relevant_passages"]) == row["fully_relevant_passages"]


def test_datasets_loads_it(folder, tmp_path):
    files = {split: str(folder / "csv" / f"passages.{split}.csv") for split in ("train", "dev", "test")}
    loaded = datasets.load_dataset("csv", data_files=files, cache_dir=str(tmp_path))
    assert {split: len(loaded[split]) for split in loaded} == {"train": 975, "dev": 650, "test": 650}
    assert loaded["train"].column_names == ["id", "question_id", "question", "text", "label", "n_hints"]
    assert set(loaded["dev"]["label"]) == {1, 2}


def test_a_text_is_changed_only_where_it_begins_as_a_formula():
    changed = safe_cells(pa.array([*FORMULAS, *HARMLESS, None])).to_pylist()
    assert changed == [*(f"'{text}" for text in FORMULAS), *HARMLESS, None]


def test_the_manifest_counts_changed_cells(folder, tables):
    facts = json.loads((folder / "csv" / "manifest.json").read_text())["facts"]
    cells = [
        cell for name in (folder / "csv").glob("*.csv") for row in rows(folder, name.name) for cell in row.values()
    ]
    assert facts["changed_cells"] == sum(cell.startswith("'") for cell in cells) > 0


def test_the_export_is_a_source_with_the_same_gold_answers_and_hints(folder, tables):
    answers = dict(zip(*(tables.questions[name].to_pylist() for name in ("question_id", "answers")), strict=True))
    for split in ("train", "dev", "test"):
        for record in read_csv(folder / "csv" / f"questions.{split}.csv"):
            assert list(record.question.answers) == answers[record.question.record_id]
            assert record.question.hints[0].text == '=HYPERLINK("http://example.org","look")'
