"""beir, trec and pyserini, read by the tools they are for."""

import csv
import json
import math
import re
from pathlib import Path
from urllib.parse import unquote

import duckdb
import numpy as np
import pytest

from quit.common.ids import passage_id
from quit.errors import WorkspaceError
from quit.export import export, lines, verify

bm25s = pytest.importorskip("bm25s")
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
    manifests = {one.format: one for one in export(given, FORMATS, out)}
    hints: dict[str, list[str]] = {}
    for row in sorted(given.ranked_hints.to_pylist(), key=lambda row: row["rank"]):
        if row["selected"]:
            hints.setdefault(row["question_id"], []).append(row["hint"])
    texts, labels = {}, {}
    for row in given.labels.to_pylist():
        name = passage_id(row["question_id"], row["permutation"])
        texts[name] = " ".join(hints[row["question_id"]][int(one)] for one in row["permutation"])
        labels.setdefault(row["question_id"], {})[name] = row["label"]
    questions = {row["question_id"]: row["question"] for row in given.questions.to_pylist()}
    return {"out": out, "split": split, "texts": texts, "labels": labels, "questions": questions, "facts": manifests}


def jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def flat(text: str) -> str:
    return text.replace("\t", " ").replace("\u2028", " ")


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


def test_beir_qrels_as_duckdb_sniffs_them(made):
    for split in SPLITS:
        path = made["out"] / "beir" / "qrels" / f"{split}.tsv"
        found = duckdb.sql(f"select score, count(*) from read_csv('{path}') group by 1").fetchall()
        labels = [label for one in of_split(made, split) for label in made["labels"][one].values()]
        assert dict(found) == {label: labels.count(label) for label in set(labels)}


def test_trec_qrels_by_ir_measures(made):
    for split in SPLITS:
        found = list(ir_measures.read_trec_qrels(str(made["out"] / "trec" / f"qrels.{split}.txt")))
        ours = {(one, name): label for one in of_split(made, split) for name, label in made["labels"][one].items()}
        assert {(unquote(row.query_id), unquote(row.doc_id)): row.relevance for row in found} == ours
        assert len(found) == len(ours)
        assert (made["out"] / "pyserini" / f"qrels.{split}.txt").read_bytes() == (
            made["out"] / "trec" / f"qrels.{split}.txt"
        ).read_bytes()


def test_a_metric_by_hand(made):
    """A run of four: fully, unknown, partially, fully relevant."""
    one = of_split(made, "test")[0]
    full = [name for name, label in made["labels"][one].items() if label == 2]
    part = [name for name, label in made["labels"][one].items() if label == 1]
    quoted = {name: line.split()[2] for name, line in zip(
        [name for other in of_split(made, "test") for name in made["labels"][other]],
        (made["out"] / "trec" / "qrels.test.txt").read_text(encoding="utf-8").split("\n"), strict=False)}  # fmt: skip
    qid = (made["out"] / "trec" / "qrels.test.txt").read_text(encoding="utf-8").split()[0]
    ranking = [quoted[full[0]], "elsewhere_0_0", quoted[part[0]], quoted[full[1]]]
    run = [ir_measures.ScoredDoc(qid, name, float(-rank)) for rank, name in enumerate(ranking)]
    qrels = [row for row in ir_measures.read_trec_qrels(str(made["out"] / "trec" / "qrels.test.txt"))
             if row.query_id == qid]  # fmt: skip
    measures = [ir_measures.parse_measure(name) for name in ("P(rel=2)@4", "RR(rel=2)", "AP(rel=2)", "nDCG@4")]
    found = {str(name): value for name, value in ir_measures.calc_aggregate(measures, qrels, run).items()}
    assert len(full) >= 4
    gain = 2 / math.log2(2) + 1 / math.log2(4) + 2 / math.log2(5)
    ideal = sum(2 / math.log2(rank + 1) for rank in range(1, 5))
    assert found["P(rel=2)@4"] == pytest.approx(2 / 4)
    assert found["RR(rel=2)"] == pytest.approx(1.0)
    assert found["AP(rel=2)"] == pytest.approx((1 / 1 + 2 / 4) / len(full))
    assert found["nDCG@4"] == pytest.approx(gain / ideal)


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


def test_the_collection_as_duckdb_reads_it(made):
    path = made["out"] / "trec" / "collection.tsv"
    [(found,)] = duckdb.sql(
        f"select count(distinct column0) from read_csv('{path}', delim='\t', header=false, quote='', escape='')"
    ).fetchall()
    assert found == len(made["texts"])


def test_pyserini_collection_indexed_and_searched_by_bm25s(made):
    rows = [row for path in sorted((made["out"] / "pyserini" / "corpus").iterdir()) for row in jsonl(path)]
    assert all(list(row) == ["id", "contents"] for row in rows)
    assert {unquote(row["id"]): row["contents"] for row in rows} == made["texts"]
    how = {"token_pattern": r"\S+", "stopwords": None, "show_progress": False}
    retriever = bm25s.BM25(corpus=rows)
    retriever.index(bm25s.tokenize([row["contents"] for row in rows], **how), show_progress=False)
    for wanted in (row for row in rows if len(row["id"].rpartition("_")[2]) == 1):
        # The third word names question and hint; of the passages with it, the hint alone is the shortest.
        asked = bm25s.tokenize([wanted["contents"].split()[2]], **how)
        found, _ = retriever.retrieve(asked, k=1, show_progress=False)
        assert found[0][0] == wanted


def test_beir_in_sentence_transformers_evaluator(made):
    """The evaluator takes the loaded files as they are; a perfect and a blind ranking score as they must."""
    evaluation = pytest.importorskip("sentence_transformers.sentence_transformer.evaluation")
    folder = made["out"] / "beir"
    corpus = {row["_id"]: row["text"] for row in jsonl(folder / "corpus.jsonl")}
    queries = {row["_id"]: row["text"] for row in jsonl(folder / "queries.jsonl")}
    relevant: dict[str, set[str]] = {}
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["score"] == "2":
                relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    asked = {name: queries[name] for name in relevant}
    scorer = evaluation.InformationRetrievalEvaluator(
        asked, corpus, relevant, mrr_at_k=[10], ndcg_at_k=[10], accuracy_at_k=[1], precision_recall_at_k=[1],
        map_at_k=[10], show_progress_bar=False,
    )  # fmt: skip
    ranked = [
        [{"corpus_id": name, "score": 1.0 / rank} for rank, name in enumerate(
            sorted(corpus, key=lambda one: (one not in relevant[query], one)), start=1)]
        for query in scorer.queries_ids
    ]  # fmt: skip
    assert scorer.compute_metrics(ranked)["ndcg@k"][10] == pytest.approx(1.0)
    blind = [[hit for hit in hits if hit["corpus_id"] not in relevant[query]]
             for query, hits in zip(scorer.queries_ids, ranked, strict=True)]  # fmt: skip
    assert scorer.compute_metrics(blind)["mrr@k"][10] == 0.0


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


def test_a_split_without_questions_has_empty_files(release, tmp_path):
    export(release.make({"q1": "train"}), FORMATS, tmp_path)
    assert (tmp_path / "beir" / "qrels" / "dev.tsv").read_text() == "query-id\tcorpus-id\tscore\n"
    assert (tmp_path / "trec" / "qrels.test.txt").read_bytes() == b""
    assert np.all([len(jsonl(path)) == 325 for path in (tmp_path / "pyserini" / "corpus").iterdir()])


@pytest.mark.parametrize("name", ["beir", "trec", "pyserini", "mteb", "tevatron", "colbert", "monot5"])
def test_an_export_that_breaks_off_leaves_nothing(tables, tmp_path, monkeypatch, name):
    """The disk is full."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lines, "buffer_of", full)
    monkeypatch.setattr("quit.export.mteb._Writer.write", full)
    with pytest.raises(WorkspaceError, match="No space left"):
        export(tables, [name], tmp_path)
    assert list(tmp_path.iterdir()) == [], "neither a target nor a temporary folder"
