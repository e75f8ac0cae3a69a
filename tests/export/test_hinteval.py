"""The file for HintEval: our reader gets the dataset back, and HintEval's own classes load and write the same."""

import json
from pathlib import Path

import pytest

from quit.export import export
from quit.sources import hinteval
from tests.export.conftest import SPLIT, make_tables


@pytest.fixture
def written(tmp_path: Path) -> Path:
    export(make_tables(), ["hinteval"], tmp_path)
    return tmp_path / "hinteval" / "hinteval.json"


def test_our_reader_gets_the_dataset_back(written):
    tables = make_tables()
    records = list(hinteval.read(written))
    assert not any(record.rejects for record in records)
    asked = {record.question.record_id: record.question for record in records}
    assert {one: question.file for one, question in asked.items()} == {
        one: f"hinteval.json#{split}" for one, split in SPLIT.items()
    }
    ranked = sorted(tables.ranked_hints.to_pylist(), key=lambda row: row["rank"])
    for row in tables.questions.to_pylist():
        question = asked[row["question_id"]]
        assert question.question.split() == row["question"].replace("“", '"').replace("”", '"').split()
        assert list(question.answers) == row["answers"] and (question.coarse, question.fine) == (row["coarse"], "x:y")
        assert [(hint.convergence, hint.text.split()) for hint in question.hints] == [
            (one["convergence"], one["hint"].split())
            for one in ranked
            if one["selected"] and one["question_id"] == row["question_id"]
        ]
    assert {question.difficulty for question in asked.values()} == {"easy", "hard"}


def test_hinteval_itself_reads_and_writes_the_same(written, tmp_path):
    dataset = pytest.importorskip("hinteval.cores.dataset.dataset", reason="HintEval is not installed").Dataset
    loaded = dataset.load_json(str(written))
    loaded.store_json(str(tmp_path / "again.json"))
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(written.read_text())
    assert sorted(loaded.get_subsets_name()) == ["dev", "test", "train"]


def test_every_part_has_the_keys_of_hintevals_classes(written):
    dataset = json.loads(written.read_bytes().decode("ascii"))
    assert dataset.keys() == {"name", "version", "description", "url", "metadata", "subsets"}
    part = {"entities", "metrics", "metadata"}
    for subset in dataset["subsets"].values():
        assert subset.keys() == {"name", "metadata", "instances"}
        for instance in subset["instances"].values():
            assert instance.keys() == {"question", "answers", "hints", "metadata"}
            assert instance["question"].keys() == {"question", "question_type", *part}
            assert all(answer.keys() == {"answer", *part} for answer in instance["answers"])
            for hint in instance["hints"]:
                assert hint.keys() == {"hint", "source", *part}
                assert all(metric.keys() == {"name", "value", "metadata"} for metric in hint["metrics"].values())
