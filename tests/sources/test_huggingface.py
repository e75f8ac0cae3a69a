"""Hugging Face dataset folders: saved ones, folders of files, and folders that must not be read."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.errors import InputError
from quit.sources import huggingface, jsonl
from tests.rows import cases, write_lines

datasets = pytest.importorskip("datasets")

HINT = {"hint": "It has two moons.", "rank": 1, "scores": [{"candidate": "Mars", "score": 1}]}


@pytest.fixture(autouse=True)
def no_cache(monkeypatch, tmp_path):
    # A reader that writes into the user's cache, or needs one, would show here.
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "nowhere" / "cache")
    datasets.disable_progress_bars()
    yield
    assert not (tmp_path / "nowhere").exists()


def rows(count):
    row = {"question": "Which planet is red?", "answers": ["Mars"], "hints": [HINT], "difficulty": None}
    return [{"id": f"q{i}", **row} for i in range(count)]


def read(path):
    return [record.question for record in huggingface.read(path)]


def test_a_saved_dataset_and_a_saved_dict_of_splits(tmp_path):
    data = datasets.Dataset.from_list(rows(3))
    data.save_to_disk(tmp_path / "one")
    datasets.DatasetDict(train=data, test=data.select([0])).save_to_disk(tmp_path / "two")
    one, two = read(tmp_path / "one"), read(tmp_path / "two")
    assert [(question.file, question.position) for question in one] == [("one", 0), ("one", 1), ("one", 2)]
    assert [question.file for question in two] == ["two#train"] * 3 + ["two#test"]
    assert one[0].hints[0].scores == {"Mars": 1} and one[0].hints[0].rank == 1 and one[0].source == "huggingface"


def test_a_folder_of_parquet_and_a_folder_of_json_lines(tmp_path):
    for name in ("parquet", "lines"):
        (tmp_path / name).mkdir()
    datasets.Dataset.from_list(rows(2)).to_parquet(tmp_path / "parquet" / "train-00000-of-00001.parquet")
    datasets.Dataset.from_list(rows(1)).to_parquet(tmp_path / "parquet" / "test-00000-of-00001.parquet")
    write_lines(tmp_path / "lines" / "data.jsonl", rows(2))
    assert sorted(question.file for question in read(tmp_path / "parquet")) == ["parquet#test"] + ["parquet#train"] * 2
    assert [question.record_id for question in read(tmp_path / "lines")] == ["q0", "q1"]


def test_rows_without_a_question_are_refused_unread(tmp_path):
    rest = {"id": ["x", "y"], "answers": ["x", "y"], "hints": [["x"], ["y"]]}
    for name, questions in (("none", [None, None]), ("one", [None, "Who?"])):
        (tmp_path / name).mkdir()
        table = pa.table({**rest, "question": pa.array(questions, pa.string())})
        pq.write_table(table, tmp_path / name / "train.parquet", row_group_size=1)
    for source in (huggingface.read(tmp_path / "none"), jsonl.read(tmp_path / "none" / "train.parquet")):
        with pytest.raises(InputError, match="the question is null in all 2 rows"):
            list(source)
    assert [question is not None for question in read(tmp_path / "one")] == [False, True]


def test_a_date_that_python_does_not_have_is_an_error_in_words(tmp_path):
    table = pa.Table.from_pylist(rows(1)).append_column("day", pa.array([10**7], pa.date32()))
    pq.write_table(table, tmp_path / "train.parquet")
    with pytest.raises(InputError, match="could not be read as a dataset .date value out of range"):
        read(tmp_path)


def test_a_sequence_of_objects_which_datasets_turns_into_an_object_of_lists(tmp_path):
    hint = {"hint": datasets.Value("string"), "rank": datasets.Value("string")}
    texts = dict.fromkeys(("id", "question", "answers"), datasets.Value("string"))
    columns = {"id": ["a"], "question": ["Who?"], "answers": ["x"]}
    columns["hints"] = [{"hint": ["He ran.", "He sat."], "rank": ["2", "1"]}]
    features = datasets.Features({**texts, "hints": datasets.Sequence(hint)})
    datasets.Dataset.from_dict(columns, features=features).save_to_disk(tmp_path / "d")
    (question,) = read(tmp_path / "d")
    assert [(hint.text, hint.rank) for hint in question.hints] == [("He ran.", 2), ("He sat.", 1)]


def test_a_row_that_is_no_question_is_rejected(tmp_path):
    good, bad = rows(2)
    datasets.Dataset.from_list([good, bad | {"answers": None}]).save_to_disk(tmp_path / "d")
    first, second = huggingface.read(tmp_path / "d")
    assert first.question and second.rejects[0].reason == "missing_field" and "row 2" in second.rejects[0].detail


@pytest.mark.parametrize(("files", "words"), cases(__file__, "folders.jsonl"))
def test_a_folder_that_cannot_be_used_is_an_error(tmp_path, files, words):
    folder = tmp_path / "d"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    with pytest.raises(InputError) as error:
        read(folder)
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("absolute", [False, True])
def test_a_saved_dataset_that_names_a_file_outside_its_folder_is_refused(tmp_path, absolute):
    datasets.Dataset.from_list(rows(1)).save_to_disk(tmp_path / "d")
    state = json.loads((tmp_path / "d" / "state.json").read_text())
    name = state["_data_files"][0]["filename"]
    shutil.move(tmp_path / "d" / name, tmp_path / "ext.arrow")
    state["_data_files"][0]["filename"] = str(tmp_path / "ext.arrow") if absolute else "../ext.arrow"
    (tmp_path / "d" / "state.json").write_text(json.dumps(state))
    with pytest.raises(InputError, match="names a data file outside the folder"):
        read(tmp_path / "d")


def test_a_saved_dataset_whose_split_lies_elsewhere_is_refused(tmp_path):
    datasets.Dataset.from_list(rows(1)).save_to_disk(tmp_path / "other")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "dataset_dict.json").write_text('{"splits": ["../other"]}')
    with pytest.raises(InputError, match="names a data file outside the folder"):
        read(tmp_path / "d")


def test_a_folder_with_a_loading_script_is_refused(tmp_path):
    (tmp_path / "d").mkdir()
    datasets.Dataset.from_list(rows(1)).to_parquet(tmp_path / "d" / "train.parquet")
    (tmp_path / "d" / "d.py").write_text("raise SystemExit('code was run')")
    with pytest.raises(InputError, match="scripts are no longer supported"):
        read(tmp_path / "d")
