"""The file for HintEval: our reader gets the dataset back, and HintEval's own classes load and write the same."""

import json
from pathlib import Path

import pytest

from quit.export import export
from quit.sources import hinteval
from tests.export.conftest import SPLIT, make_tables
from tests.sources.records import dataset, good


@pytest.fixture
def written(tmp_path: Path) -> Path:
    export(make_tables(), ["hinteval"], tmp_path)
    return tmp_path / "hinteval" / "hinteval.json"


def test_our_reader_gets_the_dataset_back(written):
    tables = make_tables()
    records = list(hinteval.read(written))
    assert not any(record.rejects for record in records)
    questions = {record.question.record_id: record.question for record in records}
    files = {one: question.file for one, question in questions.items()}
    assert files == {one: f"hinteval.json#{split}" for one, split in SPLIT.items()}
    ranked = [row for row in sorted(tables.ranked_hints.to_pylist(), key=lambda row: row["rank"]) if row["selected"]]
    for row in tables.questions.to_pylist():
        question = questions[row["question_id"]]
        assert question.question.split() == row["question"].replace("“", '"').replace("”", '"').split()
        assert list(question.answers) == row["answers"] and (question.coarse, question.fine) == (row["coarse"], "x:y")
        hints = [one for one in ranked if one["question_id"] == row["question_id"]]
        assert [hint.convergence for hint in question.hints] == [one["convergence"] for one in hints]
        assert [hint.text.split() for hint in question.hints] == [one["hint"].split() for one in hints]
    assert {question.difficulty for question in questions.values()} == {"easy", "hard"}


def test_hinteval_itself_reads_and_writes_the_same(written, tmp_path):
    module = pytest.importorskip("hinteval.cores.dataset.dataset", reason="HintEval is not installed")
    loaded = module.Dataset.load_json(str(written))
    loaded.store_json(str(tmp_path / "again.json"))
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(written.read_text())
    assert sorted(loaded.get_subsets_name()) == ["dev", "test", "train"]


def test_every_part_has_the_keys_of_hintevals_classes(written):
    """Those of a record that HintEval wrote."""

    def keys(value):
        """Return the keys of the dataset, a subset, an instance, a question, an answer, a hint and a metric."""
        [*_, subset] = value["subsets"].values()
        [*_, instance] = subset["instances"].values()
        parts = instance["question"], instance["answers"][0], instance["hints"][0]
        [*_, metric] = instance["hints"][0]["metrics"].values()
        return [{*part} for part in (value, subset, instance, *parts, metric)]

    assert keys(json.loads(written.read_bytes().decode("ascii"))) == keys(dataset(test={"q1": good("hinteval")}))
