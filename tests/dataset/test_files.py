"""Passages with text and label, from a release and from a workspace."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from quit.dataset.dataset import SPLITS
from quit.dataset.files import PASSAGES, TableFiles, current_files
from quit.engine.workspace import Workspace
from quit.errors import InputError
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


def test_passages_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    files = small.write(tmp_path, small.rows())
    with pytest.raises(InputError, match="Unknown split 'valid': expected train, dev or test"):
        files.passages("valid")
    with pytest.raises(InputError, match="no labelled passages: the table 'labels' is not there"):
        TableFiles({name: paths for name, paths in files.parts.items() if name != "labels"}).passages()
    tables = small.rows()
    tables["ranked_hints"] = [row for row in tables["ranked_hints"] if row["rank"] == 0]
    with pytest.raises(InputError, match="more hints than its question has"):
        small.write(tmp_path, tables).passages().read_all()
    assert replace(files, ids=pa.array([], pa.string())).passages().read_all().num_rows == 0
