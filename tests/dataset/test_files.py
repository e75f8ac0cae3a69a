"""Passages with text and label, from a release and from a workspace."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.dataset.files import PASSAGES, TableFiles, current_files, questions_at_once
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.evaluate.labels import SPLITS
from tests.release import small

TEXTS = {
    "0": "It flows north.",
    "01": "It flows north. It is very long.",
    "1": "It is very long.",
    "10": "It is very long. It flows north.",
}


def test_passages_join_text_label_answers_and_split(tmp_path: Path) -> None:
    tables = small.rows()
    tables["valid_answers"].insert(1, {**tables["valid_answers"][0], "answer": "the Nile", "answer_key": "the nile"})
    tables["ranked_hints"].reverse()  # ranks decide, not the order of rows
    tables["splits"].reverse()
    files = small.write(tmp_path, tables)
    rows = files.passages("train").read_all().to_pylist()
    of_all = {"question_id": "q1", "question": "Which river runs through Cairo?", "answers": ["Nile", "the Nile"]}
    assert rows == [
        {**of_all, "permutation": permutation, "text": text, "label": 2 if permutation.startswith("0") else 1,
         "split": "train"}
        for permutation, text in TEXTS.items()
    ]  # fmt: skip
    everything = files.passages().read_all()
    assert everything.schema == PASSAGES and Counter(everything["split"].to_pylist()) == dict.fromkeys(SPLITS, 4)


@pytest.mark.slow
def test_passages_of_a_workspace_come_in_batches(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = current_files(Workspace.open(built))
    whole = files.passages().read_all()
    assert len(whole) == files.rows("labels") and whole["text"].null_count == 0
    monkeypatch.setattr("quit.dataset.files.ROWS_A_GROUP", 100)  # not a multiple of a question's passages
    batches = list(files.passages())
    assert max(map(len, batches)) == 100
    assert pa.Table.from_batches(batches).equals(whole.combine_chunks())


def test_pages_and_chunks_are_the_rows_of_a_table_with_small_row_groups(tmp_path: Path) -> None:
    """Ten questions of nine labels in groups of seven rows, read back by Arrow as a whole."""
    rows = [(f"q{number}", str(order), 1 + order % 2) for number in range(10) for order in range(9)]
    labels = pa.table([pa.array(column) for column in zip(*rows)], ["question_id", "permutation", "label"])
    splits = pa.table({"question_id": [f"q{number}" for number in range(10)]})
    for name, table in (("labels", labels), ("splits", splits)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=7)
    files = TableFiles({name: [tmp_path / f"{name}.parquet"] for name in ("labels", "splits")})
    pages = files.paged("labels", labels.column_names)
    assert len(pages) == 90 and pages["label"].to_pylist() == labels["label"].to_pylist()
    for start in range(90):
        length = min(90 - start, 1 + start * 3 % 11)
        assert pages.slice(start, length).to_pylist() == labels.slice(start, length).to_pylist()
    chunks = [chunk.read("labels", labels.column_names) for chunk in files.chunks(3)]
    assert [*map(len, chunks)] == [27, 27, 27, 9] and pa.concat_tables(chunks).to_pylist() == labels.to_pylist()
    last = [*files.chunks(3)][-1].paged("labels", ["question_id"])
    assert 9 <= len(last) < 9 + 7  # only the row groups with the last question


def test_passages_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    files = small.write(tmp_path, small.rows())
    with pytest.raises(InputError, match="Unknown split 'valid': expected train, dev or test"):
        files.passages("valid")
    with pytest.raises(InputError, match="no labelled passages: the table 'labels' is not there"):
        TableFiles({name: paths for name, paths in files.parts.items() if name != "labels"}).passages()
    tables = small.rows()
    tables["ranked_hints"] = [row for row in tables["ranked_hints"] if row["rank"] == 0]
    with pytest.raises(InputError, match="has 1 hints; a passage of it needs more"):
        small.write(tmp_path, tables).passages().read_all()
    assert replace(files, ids=pa.array([], pa.string())).passages().read_all().num_rows == 0


@pytest.mark.parametrize(("passages", "questions"), [(325, 2048), (15, 2048), (650, 1024), (32_767, 20), (10**9, 1)])
def test_fewer_questions_are_taken_at_a_time_where_they_have_more_passages(passages: int, questions: int) -> None:
    assert questions_at_once(2048, 7401, 7401 * passages) == questions
    assert questions_at_once(2048, 0, 0) == 1
