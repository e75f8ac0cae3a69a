"""Formats that hold every passage, read by the tools they are for: the same passages, questions and labels each."""

import csv
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
import yaml

from quit.export import export, lines, mteb, verify
from tests.export.conftest import SPLITS, flat, jsonl, make_tables, tsv

datasets = pytest.importorskip("datasets")
ir_measures = pytest.importorskip("ir_measures")
Pairs = list[tuple]


def _loaded(folder: Path, config: str) -> dict:
    cache = str(folder.parent / "cache" / folder.name)
    return datasets.load_dataset(str(folder), config, cache_dir=cache)


def _trec_qrels(folder: Path, split: str) -> Pairs:
    entries = ir_measures.read_trec_qrels(str(folder / f"qrels.{split}.txt"))
    return [((unquote(row.query_id), unquote(row.doc_id)), row.relevance) for row in entries]


def beir(folder: Path) -> tuple[Pairs, Pairs, dict[str, Pairs]]:
    corpus = jsonl(folder / "corpus.jsonl")
    assert {row["title"] for row in corpus} == {""}, "a title that names the question would give labels away"
    texts = [(unquote(row["_id"]), row["text"]) for row in corpus]
    questions = [(unquote(row["_id"]), row["text"]) for row in jsonl(folder / "queries.jsonl")]
    labels = {}
    for split in SPLITS:
        with (folder / "qrels" / f"{split}.tsv").open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL)
        assert head == ["query-id", "corpus-id", "score"]
        labels[split] = [((unquote(query), unquote(document)), int(score)) for query, document, score in rows]
    return texts, questions, labels


def trec(folder: Path) -> tuple[Pairs, Pairs, dict[str, Pairs]]:
    questions = []
    for split in SPLITS:
        questions += [(unquote(name), text) for name, text in tsv(folder / f"topics.{split}.tsv")]
    texts = [(unquote(name), text) for name, text in tsv(folder / "collection.tsv")]
    return texts, questions, {split: _trec_qrels(folder, split) for split in SPLITS}


def pyserini(folder: Path) -> tuple[Pairs, None, dict[str, Pairs]]:
    rows = [row for path in sorted((folder / "corpus").iterdir()) for row in jsonl(path)]
    assert all(list(row) == ["id", "contents"] for row in rows)
    texts = [(unquote(row["id"]), row["contents"]) for row in rows]
    return texts, None, {split: _trec_qrels(folder, split) for split in SPLITS}


def colbert(folder: Path) -> tuple[Pairs, Pairs, dict[str, Pairs]]:
    """Passages and questions are numbers: a passage's is its line."""
    collection, names = tsv(folder / "collection.tsv"), tsv(folder / "passage_ids.tsv")
    assert [row[0] for row in collection] == [row[0] for row in names] == list(map(str, range(len(names))))
    passages, queries = (dict(tsv(folder / f"{kind}_ids.tsv")) for kind in ("passage", "query"))
    texts = [(unquote(name), row[1]) for (_, name), row in zip(names, collection, strict=True)]
    questions, labels = [], {}
    for split in SPLITS:
        questions += [(unquote(queries[query]), text) for query, text in tsv(folder / f"queries.{split}.tsv")]
        qrels = tsv(folder / f"qrels.{split}.tsv")
        rows = [(queries[query], passages[passage], label) for query, _, passage, label in qrels]
        labels[split] = [((unquote(query), unquote(passage)), int(label)) for query, passage, label in rows]
    return texts, questions, labels


def mteb_layout(folder: Path) -> tuple[Pairs, Pairs, dict[str, Pairs]]:
    loaded = {config: _loaded(folder, config) for config in mteb.CONFIGS}
    for config, entries in loaded.items():
        assert list(entries) == (list(SPLITS) if config in QRELS else [config.removeprefix("fully-")])
        assert all(split.features.arrow_schema.remove_metadata() == mteb.CONFIGS[config] for split in entries.values())
    corpus = loaded["corpus"]["corpus"].to_list()
    assert {row["title"] for row in corpus} == {""}
    texts = [(row["_id"], row["text"]) for row in corpus]
    questions = [(row["_id"], row["text"]) for row in loaded["queries"]["queries"]]
    labels, fully = (
        {
            split: [((row["query-id"], row["corpus-id"]), row["score"]) for row in rows]
            for split, rows in loaded[config].items()
        }
        for config in QRELS
    )
    assert fully == {split: [row for row in rows if row[1] == 2] for split, rows in labels.items()}
    return texts, questions, labels


def huggingface(folder: Path) -> tuple[Pairs, Pairs, dict[str, Pairs]]:
    passages = [row for split in _loaded(folder, "passages").values() for row in split]
    questions = [row for split in _loaded(folder, "questions").values() for row in split]
    qrels = {split: [tuple(row.values()) for row in rows] for split, rows in _loaded(folder, "qrels").items()}
    assert {(row["id"], row["label"]) for row in passages} == {row[1:] for rows in qrels.values() for row in rows}
    texts = [(row["id"], row["text"]) for row in passages]
    labels = {split: [((query, document), label) for query, document, label in rows] for split, rows in qrels.items()}
    return texts, [(row["id"], row["question"]) for row in questions], labels


READ = {"beir": beir, "trec": trec, "pyserini": pyserini, "colbert": colbert, "mteb": mteb_layout,
        "huggingface": huggingface}  # fmt: skip
QRELS = ("default", "fully-qrels")
ONE_LINE = ("trec", "colbert")
"""Formats of one line a text."""


@pytest.fixture(scope="module")
def out(awkward, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all formats."""
    folder = tmp_path_factory.mktemp("formats")
    export(awkward, list(READ), folder)
    return folder


@pytest.mark.parametrize("name", READ)
def test_each_passage_question_and_label_is_there_once(out: Path, truth: SimpleNamespace, name: str) -> None:
    texts, questions, labels = READ[name](out / name)
    shown = flat if name in ONE_LINE else str
    assert sorted(texts) == sorted((one, shown(text)) for one, text in truth.texts.items())
    if questions is not None:
        assert sorted(questions) == sorted((one, shown(text)) for one, text in truth.questions.items())
    assert list(labels) == list(SPLITS)
    for split, entries in labels.items():
        expected = [((truth.owner[one], one), label) for one, label in truth.labels.items()]
        assert entries == [row for row in expected if truth.split[row[0][0]] == split]


def test_rows_and_escapes_are_in_the_manifest(out: Path) -> None:
    rows = {"train": 3 * 325, "dev": 2 * 325, "test": 325}
    for name in ("beir", "trec", "pyserini"):
        facts = verify(out / name).facts
        assert (facts["passages"], facts["qrels"]) == (6 * 325, rows)
        assert facts["escaped"]["ids"] == 4 and facts["escaped"]["id_examples"]["a b\t1"] == "a%20b%091"
        # Each hint holds a tab; questions do not.
        assert facts["escaped"]["texts"] == (0 if name == "beir" else 5 * 6)
    assert verify(out / "mteb").facts["rows"]["default"] == rows


def test_ranges_and_shards_do_not_change_what_is_written(awkward, out: Path, tmp_path: Path, monkeypatch) -> None:
    formats = ["beir", "trec", "pyserini", "mteb"]
    monkeypatch.setattr(lines, "QUESTIONS_A_SHARD", 3)
    monkeypatch.setattr(lines, "ROWS_A_RANGE", 400)
    export(awkward, formats, tmp_path)
    for name in ("beir/corpus.jsonl", "trec/collection.tsv", "beir/qrels/train.tsv"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()
    shards = {"pyserini": "docs-0000{}.jsonl", "mteb": "corpus-0000{}-of-00002.parquet"}
    for name, shard in shards.items():
        assert {path.name for path in (tmp_path / name / "corpus").iterdir()} == {shard.format(0), shard.format(1)}
    assert pyserini(tmp_path / "pyserini") == pyserini(out / "pyserini")
    assert mteb_layout(tmp_path / "mteb") == mteb_layout(out / "mteb")


def test_the_card_of_mteb(out: Path, tmp_path: Path) -> None:
    text = (out / "mteb" / "README.md").read_text(encoding="utf-8")
    header = yaml.safe_load(text.split("---\n")[1])
    assert header["license"] == ["cc-by-4.0", "mit"] and "mteb" in header["tags"]
    assert "Warning: embedded readers" in text and "mozafari2026inferential" in text
    export(make_tables({"q1": "train"}), ["mteb"], tmp_path)
    assert verify(tmp_path / "mteb").facts["empty_splits"] == ["dev", "test"]
    assert list(_loaded(tmp_path / "mteb", "default")) == ["train"]


def test_an_empty_split_has_no_file_of_beirs_qrels(tmp_path: Path) -> None:
    """Its loader ends at one that holds a heading alone."""
    export(make_tables({"q1": "train"}), ["beir"], tmp_path)
    assert [path.name for path in (tmp_path / "beir" / "qrels").iterdir()] == ["train.tsv"]
    assert verify(tmp_path / "beir").facts["qrels"] == {"train": 325, "dev": 0, "test": 0}
