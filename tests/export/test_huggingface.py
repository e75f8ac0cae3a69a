import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from quit.common.ids import passage_id
from quit.export import export, huggingface
from quit.export.card_facts import hub_licence
from quit.text.normalize import normalize_answer
from tests.answers import with_texts
from tests.export.conftest import truth_of

datasets = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def folder(tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("hf")
    export(tables, ["huggingface"], out)
    return out / "huggingface"


@pytest.fixture(scope="module")
def loaded(folder, tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("cache"))
    return {config: datasets.load_dataset(str(folder), config, cache_dir=cache) for config in huggingface.CONFIGS}


def rows_of(loaded, config):
    return [row for split in loaded[config].values() for row in split]


def test_every_config_and_split_loads_with_the_features_of_the_card(folder, loaded):
    header = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    info = {one["config_name"]: one for one in header["dataset_info"]}
    for config, schema in huggingface.CONFIGS.items():
        assert list(loaded[config]) == ["train", "dev", "test"] and all(len(split) for split in loaded[config].values())
        for split in loaded[config].values():
            assert split.column_names == schema.names
            assert split.features.arrow_schema.remove_metadata() == schema
            assert split.features == datasets.Features._from_yaml_list(info[config]["features"])


def test_datasets_accepts_all_of_the_card(folder, tmp_path, caplog):
    for config in huggingface.CONFIGS:
        info = datasets.load_dataset_builder(str(folder), config, cache_dir=str(tmp_path)).info
        files = (folder / config).glob("*.parquet")
        tables = {path.name.split("-")[0]: pq.read_table(path) for path in files}
        assert len(tables) == 3
        assert {name: split.num_examples for name, split in info.splits.items()} == {
            name: len(table) for name, table in tables.items()
        }
        # Arrow adds padding and validity bits here and there.
        for name, split in info.splits.items():
            assert split.num_bytes == pytest.approx(tables[name].nbytes, rel=0.05)
        assert info.dataset_size == sum(split.num_bytes for split in info.splits.values())
    assert "Ignoring" not in caplog.text


def test_the_card_says_what_share_of_a_readers_replies_was_cut(folder, tables, tmp_path):
    first = tables.readers[0].name
    quarter = len(tables.answers[first].rows) // 4
    export(replace(tables, cut={first: quarter}), ["huggingface"], tmp_path)
    text = (tmp_path / "huggingface" / "README.md").read_text(encoding="utf-8")
    [row] = [line for line in text.splitlines() if line.startswith(f"| `{first}` | ")]
    assert "| reader | role | kind | correct answers | replies cut |" in text and "| 25.0% |" in row
    assert "replies cut" not in (folder / "README.md").read_text(encoding="utf-8")


def test_rows_by_split(loaded, release):
    questions = {split: [one for one, of in release.split.items() if of == split] for split in ("train", "dev", "test")}
    for split, ids in questions.items():
        assert loaded["questions"][split]["id"][:] == ids
        counts = {config: len(loaded[config][split]) // len(ids) for config in huggingface.CONFIGS}
        assert counts == {"questions": 1, "hints": 5, "passages": 325, "qrels": 325, "answers": 1_950}


def test_passages_are_the_joined_hints_with_their_labels(loaded, tables):
    truth = truth_of(tables)
    hints = rows_of(loaded, "hints")
    assert len(hints) == 5 * len(truth.questions)
    for row in hints:
        assert row["hint"] == truth.texts[passage_id(row["question_id"], str(row["index"]))]
    rows = rows_of(loaded, "passages")
    assert {row["id"]: (row["text"], row["label"]) for row in rows} == {
        name: (truth.texts[name], truth.labels[name]) for name in truth.names
    }
    for row in rows:
        permutation = row["permutation"]
        assert row["id"] == passage_id(row["question_id"], permutation)
        assert row["subset"] == "".join(sorted(permutation)) and row["n_hints"] == len(permutation)


def test_qrels_are_the_labels(loaded):
    expected = [(row["question_id"], row["id"], row["label"]) for row in rows_of(loaded, "passages")]
    assert [tuple(row.values()) for row in rows_of(loaded, "qrels")] == expected


def test_answers_in_passage_order_with_verdicts(loaded, tables):
    verdicts = {(row["question_id"], row["answer_key"]): row["correct"] for row in tables.verdicts.to_pylist()}
    given = {
        (passage_id(row["question_id"], row["permutation"]), row["reader"]): row["answer"]
        for one in tables.answers.values()
        for row in with_texts(one)
    }
    rows = rows_of(loaded, "answers")
    assert len(rows) == len(given)
    passages = [row["id"] for row in rows_of(loaded, "passages")]
    assert [row["passage_id"] for row in rows[::6]] == passages
    roles = {info.name: info.role for info in tables.readers}
    for row in rows:
        assert row["answer"] == given[row["passage_id"], row["reader"]]
        assert row["correct"] is verdicts[row["question_id"], normalize_answer(row["answer"])]
        assert row["role"] == roles[row["reader"]]


def test_an_unjudged_answer_is_null_but_no_answer_is_wrong(tables, tmp_path):
    kept = [row for row in tables.verdicts.to_pylist() if row["answer"] not in ("back\\slash", "NO ANSWER")]
    export(replace(tables, verdicts=pa.Table.from_pylist(kept, tables.verdicts.schema)), ["huggingface"], tmp_path)
    found = pq.read_table(tmp_path / "huggingface" / "answers").to_pylist()
    unjudged = sum(row["answer"] == "back\\slash" for row in found)
    assert f"{unjudged:,} answers have no verdict" in (tmp_path / "huggingface" / "README.md").read_text()
    assert {row["correct"] for row in found if row["answer"] == "back\\slash"} == {None}
    assert {row["correct"] for row in found if row["answer"] == "NO ANSWER"} == {False}


def test_questions_carry_what_is_known(loaded, tables, release):
    valid = {}
    for row in tables.valid_answers.to_pylist():
        valid.setdefault(row["question_id"], []).append(row["answer"])
    described = {row["question_id"]: row for row in tables.descriptions.to_pylist()}
    fully = {}
    for row in tables.labels.to_pylist():
        fully[row["question_id"]] = fully.get(row["question_id"], 0) + (row["label"] == 2)
    for row, given in zip(sorted(rows_of(loaded, "questions"), key=lambda row: list(release.split).index(row["id"])),
                          tables.questions.to_pylist(), strict=True):  # fmt: skip
        assert (row["question"], row["answers"]) == (given["question"], given["answers"])
        assert row["valid_answers"] == valid[row["id"]]
        assert row["difficulty"] == described[row["id"]]["difficulty"]
        assert (row["passages"], row["fully_relevant_passages"]) == (325, fully[row["id"]])


def test_the_card_says_what_must_be_said(folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    header = yaml.safe_load(text.split("---\n")[1])
    assert header["license"] == ["cc-by-4.0", "mit"]
    assert header["size_categories"] == ["1K<n<10K"]
    assert [one["config_name"] for one in header["configs"]] == list(huggingface.CONFIGS)
    for needed in ("Warning: embedded readers", "10.1145/3774904.3792653", "@x{triviahg}", "CC BY 4.0", "`labeler-x`",
                   "How it was made", "No human verification", "2,275"):  # fmt: skip
        assert needed in text, needed


def test_several_shards_load_as_one(folder, tables, loaded, tmp_path, monkeypatch, release):
    monkeypatch.setattr(huggingface, "QUESTIONS_A_SHARD", 2)
    monkeypatch.setattr(huggingface, "QUESTIONS_A_GROUP", 1)
    (manifest,) = export(release.as_dictionaries(tables), ["huggingface"], tmp_path)
    found = tmp_path / "huggingface"
    assert sorted(path.name for path in (found / "passages").glob("train-*")) == [
        "train-00000-of-00002.parquet", "train-00001-of-00002.parquet"
    ]  # fmt: skip
    for config in huggingface.CONFIGS:
        again = datasets.load_dataset(str(found), config, cache_dir=str(tmp_path / "cache"))
        for split in again:
            assert again[split].to_list() == loaded[config][split].to_list()
    rows = {entry.path: entry.rows for entry in manifest.files}
    assert rows["passages/train-00001-of-00002.parquet"] == 325


def test_a_split_without_questions_is_left_out_and_named(tmp_path, release):
    export(release.make({"q1": "train", "q2": "test"}), ["huggingface"], tmp_path)
    folder = tmp_path / "huggingface"
    assert not list(folder.rglob("dev-*"))
    assert "no questions in `dev`" in (folder / "README.md").read_text()
    for config in huggingface.CONFIGS:
        assert list(datasets.load_dataset(str(folder), config, cache_dir=str(tmp_path / "cache"))) == ["train", "test"]
    assert json.loads((folder / "manifest.json").read_text())["facts"]["empty_splits"] == ["dev"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [("MIT", "mit"), ("MIT License", "mit"), ("CC BY 4.0", "cc-by-4.0"), ("CC-BY-4.0", "cc-by-4.0"),
     ("Apache-2.0", "apache-2.0"), ("our own", "other"), ("", "unknown"), ("CC0", "cc0-1.0")],
)  # fmt: skip
def test_hub_licence(given, expected):
    assert hub_licence(given) == expected
