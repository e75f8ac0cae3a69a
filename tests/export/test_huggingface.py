import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from quit.common.ids import passage_id
from quit.export import export, huggingface, lines, parquet_shards
from quit.text.answers import answer_key
from tests.answers import with_texts
from tests.export import conftest
from tests.export.conftest import SPLITS, as_dictionaries, make_tables, truth_of
from tests.rows import table_of

FORMAT = "huggingface"

datasets = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def loaded(folder):
    cache = str(folder.parent / "cache")
    return {config: datasets.load_dataset(str(folder), config, cache_dir=cache) for config in huggingface.CONFIGS}


def rows_of(loaded, config):
    return [row for split in loaded[config].values() for row in split]


def card_of(folder):
    return (folder / "README.md").read_text(encoding="utf-8")


def test_every_config_and_split_loads_as_the_card_says(folder, loaded, tmp_path, caplog):
    header = yaml.safe_load(card_of(folder).split("---\n")[1])
    features = {one["config_name"]: one["features"] for one in header["dataset_info"]}
    for config, schema in huggingface.CONFIGS.items():
        assert list(loaded[config]) == list(SPLITS) and all(len(split) for split in loaded[config].values())
        for split in loaded[config].values():
            assert split.column_names == schema.names
            assert split.features.arrow_schema.remove_metadata() == schema
            assert split.features == datasets.Features._from_yaml_list(features[config])
        info = datasets.load_dataset_builder(str(folder), config, cache_dir=str(tmp_path)).info
        parts = {path.name.split("-")[0]: pq.read_table(path) for path in (folder / config).glob("*.parquet")}
        assert info.splits.keys() == parts.keys()
        for name, split in info.splits.items():  # Arrow adds padding and validity bits here and there
            assert split.num_examples == len(parts[name])
            assert split.num_bytes == pytest.approx(parts[name].nbytes, rel=0.05)
        assert info.dataset_size == sum(split.num_bytes for split in info.splits.values())
    assert "Ignoring" not in caplog.text


def test_the_card_says_what_share_of_a_readers_replies_was_cut(folder, tables, tmp_path):
    first = tables.readers[0].name
    export(replace(tables, cut={first: len(tables.answers[first].rows) // 4}), ["huggingface"], tmp_path)
    text = card_of(tmp_path / "huggingface")
    [row] = [line for line in text.splitlines() if line.startswith(f"| `{first}` | ")]
    assert "| reader | role | kind | correct answers | replies cut |" in text and "| 25.0% |" in row
    assert "replies cut" not in card_of(folder)


def test_passages_and_their_hints(loaded, tables):
    texts = truth_of(tables).texts
    hints = {passage_id(row["question_id"], str(row["index"])): row["hint"] for row in rows_of(loaded, "hints")}
    assert hints == {name: text for name, text in texts.items() if len(name.rpartition("_")[2]) == 1}
    for row in rows_of(loaded, "passages"):
        permutation = row["permutation"]
        assert row["id"] == passage_id(row["question_id"], permutation)
        assert row["subset"] == "".join(sorted(permutation)) and row["n_hints"] == len(permutation)


def test_answers_in_passage_order_with_verdicts(loaded, tables):
    verdicts = {(row["question_id"], row["answer_key"]): row["correct"] for row in tables.verdicts.to_pylist()}
    answers = {
        (passage_id(row["question_id"], row["permutation"]), row["reader"]): row["answer"]
        for one in tables.answers.values()
        for row in with_texts(one)
    }
    rows, roles = rows_of(loaded, "answers"), {info.name: info.role for info in tables.readers}
    assert len(rows) == len(answers)
    assert [row["passage_id"] for row in rows[::6]] == [row["id"] for row in rows_of(loaded, "passages")]
    for row in rows:
        assert row["answer"] == answers[row["passage_id"], row["reader"]]
        assert row["correct"] is verdicts[row["question_id"], answer_key(row["answer"])]
        assert row["role"] == roles[row["reader"]]


def test_an_unjudged_answer_is_null_but_no_answer_is_wrong(tables, tmp_path):
    judged = pc.invert(pc.is_in(tables.verdicts["answer"], pa.array(["back\\slash", "NO ANSWER"])))
    export(replace(tables, verdicts=tables.verdicts.filter(judged)), ["huggingface"], tmp_path)
    rows = pq.read_table(tmp_path / "huggingface" / "answers").to_pylist()
    wrong = [row["correct"] for row in rows if row["answer"] == "NO ANSWER"]
    unjudged = [row["correct"] for row in rows if row["answer"] == "back\\slash"]
    assert ({*wrong}, {*unjudged}) == ({False}, {None})
    assert f"{len(unjudged):,} answers have no verdict" in card_of(tmp_path / "huggingface")


def test_questions_carry_what_is_known(loaded, tables):
    rows = {row["id"]: row for row in rows_of(loaded, "questions")}
    labels, truth = tables.labels.to_pylist(), truth_of(tables)
    assert len(rows) == len(tables.questions)
    for source, described in zip(tables.questions.to_pylist(), tables.descriptions.to_pylist(), strict=True):
        name = source["question_id"]
        fully = sum((label["question_id"], label["label"]) == (name, 2) for label in labels)
        counts = {"passages": 325, "fully_relevant_passages": fully}
        texts = {"question": source["question"], "answers": source["answers"], "valid_answers": truth.valid[name]}
        expected = {**texts, **counts, "difficulty": described["difficulty"]}
        assert rows[name].items() >= expected.items()


def test_questions_carry_their_roles_and_null_where_there_are_none(tables, tmp_path):
    ids = tables.questions["question_id"].to_pylist()
    sizes = {"fewest_in_every_order": 3, "order_dependent_sets": 2, "without_hints": 0.5}
    roles = table_of("question_roles", [{"question_id": one, **sizes} for one in ids[:0:-1]])
    export(replace(tables, question_roles=roles), ["huggingface"], tmp_path)
    rows = {row["id"]: row for row in pq.read_table(tmp_path / "huggingface" / "questions").to_pylist()}
    assert {one for one in ids if rows[one].items() >= sizes.items()} == {*ids[1:]}
    assert rows[ids[0]].items() >= dict.fromkeys(sizes).items()


def test_several_shards_load_as_one(folder, tables, loaded, tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "QUESTIONS_A_SHARD", 2)
    monkeypatch.setattr(parquet_shards, "QUESTIONS_A_GROUP", 1)
    (manifest,) = export(as_dictionaries(tables), ["huggingface"], tmp_path)
    sharded = tmp_path / "huggingface"
    parts = [f"train-0000{number}-of-00002.parquet" for number in range(2)]
    assert sorted(path.name for path in (sharded / "passages").glob("train-*")) == parts
    for config in huggingface.CONFIGS:
        again = datasets.load_dataset(str(sharded), config, cache_dir=str(tmp_path / "cache"))
        ours, whole = ({name: rows.to_list() for name, rows in each.items()} for each in (again, loaded[config]))
        assert ours == whole
    assert {entry.path: entry.rows for entry in manifest.files}[f"passages/{parts[1]}"] == 325


def test_label_2_alone_is_a_config(loaded):
    fully = {name: [row for row in rows if row["score"] == 2] for name, rows in loaded["qrels"].items()}
    assert {name: list(rows) for name, rows in loaded["qrels_fully"].items()} == fully
    assert 0 < len(fully["test"]) < len(loaded["qrels"]["test"])


@pytest.mark.parametrize("right", [0, 1])
def test_splits_without_label_2_are_not_in_its_config_and_all_loads(right, tmp_path, monkeypatch):
    """Of two questions the first one's readers are right, or none's."""
    answer_of = conftest.answer_of
    monkeypatch.setattr(conftest, "answer_of", lambda one, *at: answer_of(one, *at) if one < right else "no")
    formats = {"huggingface": "qrels_fully", "mteb": "fully-qrels"}
    export(make_tables({"q1": "train", "q2": "test"}), list(formats), tmp_path)
    for name, fully in formats.items():
        folder = str(tmp_path / name)
        configs = datasets.get_dataset_config_names(folder)
        of_subset = {"fully-corpus", "fully-queries", "fully-qrels"} if name == "mteb" else {fully}
        assert {one for one in configs if "fully" in one} == (of_subset if right else set())
        loaded = {one: datasets.load_dataset(folder, one, cache_dir=str(tmp_path / "cache")) for one in configs}
        assert {one: list(splits) for one, splits in loaded.items() if one == fully} == (
            {fully: ["train"]} if right else {}
        )


def test_datasets_caches_no_export_under_the_name_of_another(tmp_path, monkeypatch):
    answer_of = conftest.answer_of
    for order in (1, -1):  # of the passages that get an answer: the same sizes
        rows = range(325)[::order]
        in_order = lambda one, row, reader, rows=rows: answer_of(one, rows[row], reader)  # noqa: E731
        monkeypatch.setattr(conftest, "answer_of", in_order)
        tables = make_tables({"q1": "train"})
        export(tables, ["huggingface", "mteb"], tmp_path, overwrite=True)
        for name, config in (("huggingface", "qrels"), ("mteb", "default")):
            loaded = datasets.load_dataset(
                str(tmp_path / name), config, split="train", cache_dir=str(tmp_path / "cache")
            )
            assert loaded["score"][:] == tables.labels["label"].to_pylist()


def test_parquet_has_a_page_index_and_row_groups_that_a_new_question_does_not_move(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_shards, "QUESTIONS_A_GROUP", 4)
    ids = [f"q{number:03d}" for number in range(200)]
    groups = {}
    for left_out in (None, "q100"):
        some = SimpleNamespace(ids=[one for one in ids if one != left_out], rows=ids)
        positions = np.arange(len(some.ids))
        row_groups = parquet_shards.row_groups(some, positions)
        groups[left_out] = [tuple(some.ids[place] for place in one) for one in row_groups]
        assert sum(groups[left_out], ()) == tuple(some.ids) and max(map(len, groups[left_out])) <= 8
    changed = {*groups[None]} - {*groups["q100"]}
    assert len(changed) <= 2 and len(groups[None]) > 30 and any("q100" in one for one in changed)
    export(tables, ["huggingface"], tmp_path)
    for path in (tmp_path / "huggingface").rglob("*.parquet"):
        group = pq.ParquetFile(path).metadata.row_group(0)
        assert all(group.column(place).has_offset_index for place in range(group.num_columns)), path


def test_a_split_without_questions_is_left_out_and_named(tmp_path):
    export(make_tables({"q1": "train", "q2": "test"}), ["huggingface"], tmp_path)
    folder = tmp_path / "huggingface"
    assert not list(folder.rglob("dev-*")) and "no questions in `dev`: no files are there" in card_of(folder)
    for config in huggingface.CONFIGS:
        assert list(datasets.load_dataset(str(folder), config, cache_dir=str(tmp_path / "cache"))) == ["train", "test"]
    assert json.loads((folder / "manifest.json").read_text())["facts"]["empty_splits"] == ["dev"]
