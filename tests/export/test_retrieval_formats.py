"""beir, trec and pyserini, read by the tools they are for."""

import csv
import re
from urllib.parse import unquote

import pytest

from quit.export import export, lines, verify
from tests.export.conftest import flat, jsonl, truth_of

ir_measures = pytest.importorskip("ir_measures")

AWKWARD = {"a b\t1": "train", 'q"2%': "dev", "c-3": "test", "d\u20284": "train", "e-5": "test"}
SPLITS = ("train", "dev", "test")
FORMATS = ("beir", "trec", "pyserini")


@pytest.fixture(scope="module", params=["plain", "awkward"])
def made(request, tables, release, tmp_path_factory):
    """Return the folder of the three formats and the truth: texts, labels and questions by id."""
    out = tmp_path_factory.mktemp(request.param)
    split = release.split if request.param == "plain" else AWKWARD
    given = tables if request.param == "plain" else release.make(AWKWARD)
    export(given, FORMATS, out)
    truth = truth_of(given)
    labels = {one: {name: truth.labels[name] for name in truth.names if truth.owner[name] == one} for one in split}
    return {"out": out, "split": split, "texts": truth.texts, "labels": labels, "questions": truth.questions}


def of_split(made, split) -> list[str]:
    return [one for one, given in made["split"].items() if given == split]


def test_beir_as_its_loader_reads_it(made):
    folder = made["out"] / "beir"
    corpus = jsonl(folder / "corpus.jsonl")
    assert {unquote(row["_id"]): row["text"] for row in corpus} == made["texts"]
    assert len(corpus) == len(made["texts"])
    assert {row["title"] for row in corpus} == {""}, "a title that names the question would give labels away"
    assert {unquote(row["_id"]): row["text"] for row in jsonl(folder / "queries.jsonl")} == made["questions"]
    for split in SPLITS:
        with (folder / "qrels" / f"{split}.tsv").open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL)
            assert next(reader) == ["query-id", "corpus-id", "score"]
            found: dict[str, dict[str, int]] = {}
            for query, document, score in reader:
                found.setdefault(unquote(query), {})[unquote(document)] = int(score)
        assert found == {one: made["labels"][one] for one in of_split(made, split)}


def test_trec_qrels_by_ir_measures(made):
    for split in SPLITS:
        found = list(ir_measures.read_trec_qrels(str(made["out"] / "trec" / f"qrels.{split}.txt")))
        ours = {(one, name): label for one in of_split(made, split) for name, label in made["labels"][one].items()}
        assert {(unquote(row.query_id), unquote(row.doc_id)): row.relevance for row in found} == ours
        assert len(found) == len(ours)
        assert (made["out"] / "pyserini" / f"qrels.{split}.txt").read_bytes() == (
            made["out"] / "trec" / f"qrels.{split}.txt"
        ).read_bytes()


def test_trec_topics_and_collection(made):
    folder = made["out"] / "trec"
    for split in SPLITS:
        rows = [line.split("\t") for line in (folder / f"topics.{split}.tsv").read_text(encoding="utf-8").splitlines()]
        expected = {one: flat(made["questions"][one]) for one in of_split(made, split)}
        assert {unquote(name): text for name, text in rows} == expected
        classic = (folder / f"topics.{split}.txt").read_text(encoding="utf-8")
        found = re.findall(r"<top>\s*<num> Number: (\S+)\n<title> (.*)\n\n<desc> Description:\n(.*)\n\n</top>", classic)
        assert {unquote(name): title for name, title, _ in found} == expected
        assert all(title == text for _, title, text in found)
    rows = [line.split("\t") for line in (folder / "collection.tsv").read_text(encoding="utf-8").splitlines()]
    assert {unquote(name): text for name, text in rows} == {name: flat(text) for name, text in made["texts"].items()}


def test_pyserinis_collection(made):
    rows = [row for path in sorted((made["out"] / "pyserini" / "corpus").iterdir()) for row in jsonl(path)]
    assert len(rows) == len(made["texts"]) > 0 and all(list(row) == ["id", "contents"] for row in rows)
    assert {unquote(row["id"]): row["contents"] for row in rows} == made["texts"]


def test_rows_and_escapes_are_in_the_manifest(made):
    awkward = made["split"] is AWKWARD
    for name in FORMATS:
        facts = verify(made["out"] / name).facts
        assert facts["passages"] == len(made["texts"])
        assert facts["qrels"] == {split: 325 * len(of_split(made, split)) for split in SPLITS}
        assert facts["escaped"]["ids"] == (3 if awkward else 0)
        if awkward:
            assert facts["escaped"]["id_examples"]["a b\t1"] == "a%20b%091"
        # Each hint holds a tab; questions do not.
        assert facts["escaped"]["texts"] == (0 if name == "beir" else 5 * len(made["split"]))


def test_ranges_and_shards_do_not_change_what_is_written(made, tables, tmp_path, monkeypatch, release):
    if made["split"] is AWKWARD:
        pytest.skip("once is enough")
    monkeypatch.setattr(lines, "ROWS_A_RANGE", 400)
    monkeypatch.setattr(lines, "QUESTIONS_A_SHARD", 3)
    export(tables, FORMATS, tmp_path)
    for name in ("beir/corpus.jsonl", "trec/collection.tsv", "beir/qrels/train.tsv"):
        assert (tmp_path / name).read_bytes() == (made["out"] / name).read_bytes()
    shards = sorted((tmp_path / "pyserini" / "corpus").iterdir())
    assert [path.name for path in shards] == [f"docs-0000{number}.jsonl" for number in range(3)]
    whole = (made["out"] / "pyserini" / "corpus" / "docs-00000.jsonl").read_bytes()
    assert b"".join(path.read_bytes() for path in shards) == whole
