"""Corpora: merging, ids, relevance, going on after a kill, and clear words about bad input."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.common.progress import listening
from quit.errors import InputError, SettingsError
from quit.qa.corpora import build as building
from quit.qa.corpora import release
from quit.qa.corpora.build import build
from quit.qa.corpora.merge import Additions
from quit.qa.corpora.sources import parse_corpus_source
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.settings import Corpora
from quit.retrieval.protocols import Documents
from quit.retrieval.records import CorpusRecord
from tests.conftest import Notes
from tests.qa.corpora.worlds import built, musique_record, relevant_titles
from tests.release import small
from tests.rows import write_lines

NILE, CAIRO, LIMA = ("Nile", "A river."), ("Cairo", "A city on the Nile."), ("Lima", "A capital.")


@pytest.fixture
def two(tmp_path: Path) -> Path:
    records = [musique_record("2hop__1", [NILE, CAIRO, LIMA], [1, 0]), musique_record("2hop__2", [LIMA, NILE], [0, 1])]
    return write_lines(tmp_path / "two.jsonl", records)


def test_documents_questions_and_relevance_by_hand(two: Path, tmp_path: Path) -> None:
    """Of duplicates the first wins."""
    corpus = built(tmp_path / "C", f"musique:{two}")
    assert isinstance(corpus, Documents)
    assert corpus.titles([0, 1, 2]) == ["Nile", "Cairo", "Lima"] and len(corpus) == 3
    assert corpus.texts([1, 0]) == ["Cairo A city on the Nile.", "Nile A river."]
    assert corpus.origins.num_rows == 5  # every occurrence, merged ones too
    assert corpus.manifest["counts"]["paragraphs"] == 5
    assert corpus.rows_of(corpus.ids([2, 0])).tolist() == [2, 0]
    rows = {row["query_id"]: row for row in corpus.queries.to_pylist()}
    assert list(rows) == [f"musique-2hop_{n}{tail}" for n in (1, 2) for tail in ("", "-s1", "-s2")]
    whole, second = rows["musique-2hop_1"], rows["musique-2hop_1-s2"]
    assert (whole["answers"], whole["parent_id"], whole["hop"], whole["kind"]) == (["a1", "alias"], None, None, "2hop")
    assert (second["text"], second["answers"]) == ("step 1 of 2hop__1 after a0", ["a1"])
    assert (second["parent_id"], second["hop"]) == ("musique-2hop_1", 2)
    assert relevant_titles(corpus) == {
        "musique-2hop_1": {"Nile": 1, "Cairo": 1}, "musique-2hop_1-s1": {"Cairo": 1}, "musique-2hop_1-s2": {"Nile": 1},
        "musique-2hop_2": {"Lima": 1, "Nile": 1}, "musique-2hop_2-s1": {"Lima": 1}, "musique-2hop_2-s2": {"Nile": 1},
    }  # fmt: skip


def test_ids_follow_from_content_whatever_else_is_there(two: Path, tmp_path: Path) -> None:
    alone = built(tmp_path / "A", f"musique:{two}")
    other = write_lines(tmp_path / "other.jsonl", [{"id": "x", "title": "Oslo", "text": "A fjord."}])
    more = built(tmp_path / "B", f"jsonl:{other}", f"musique:{two}")
    assert more.ids([1, 2, 3]) == alone.ids([0, 1, 2]) and more.titles([0]) == ["Oslo"]
    assert more.identity != alone.identity
    assert more.qrels.equals(alone.qrels) and more.queries.equals(alone.queries)
    sources = [(row["kind"], row["licence"]) for row in more.manifest["sources"]]
    assert sources == [("jsonl", None), ("musique", "CC BY 4.0")]


@pytest.mark.parametrize("block", [1, 3, 100])
def test_steps_of_any_size_give_the_same_bytes(block: int, tmp_path: Path, monkeypatch) -> None:
    records = [musique_record(f"2hop__{n}", [(f"t{n % 5}", "same"), (f"t{n}", "x")], [0, 1]) for n in range(10)]
    path = write_lines(tmp_path / "many.jsonl", records)
    whole = built(tmp_path / "A", f"musique:{path}")
    monkeypatch.setattr(building, "BLOCK", block)
    parts = built(tmp_path / "B", f"musique:{path}")
    assert parts.manifest == whole.manifest  # with the checksums of all files


def test_what_is_there_is_not_built_again_and_settings_matter(two: Path, tmp_path: Path) -> None:
    refs = [parse_corpus_source(f"musique:{two}")]
    first, new = build(refs, tmp_path / "C", Corpora())
    assert new and first.qrels.num_rows == 8
    changed = (tmp_path / "C" / "manifest.json").stat().st_mtime_ns
    assert not build(refs, tmp_path / "C", Corpora())[1]
    assert (tmp_path / "C" / "manifest.json").stat().st_mtime_ns == changed
    again, new = build(refs, tmp_path / "C", Corpora(all_context=True, sub_questions=False))
    assert new and again.identity == first.identity
    sizes = {query: len(rows) for query, rows in again.relevant_rows().items()}
    assert sizes == {"musique-2hop_1": 3, "musique-2hop_2": 2}


def test_a_question_again_with_other_relevant_documents_is_named(tmp_path: Path, monkeypatch) -> None:
    """Also where the first one is on disk since an earlier run."""
    records = [musique_record("q", [NILE, CAIRO, LIMA], support) for support in ([0, 1], [1, 0], [0, 2])]
    records[1] = {**records[0], "paragraphs": records[0]["paragraphs"][::-1]}  # in another order: the same question
    path = write_lines(tmp_path / "many.jsonl", records)
    monkeypatch.setattr(building, "BLOCK", 1)
    add = Additions.add

    def killed(additions: Additions, record: CorpusRecord) -> None:
        if record.position == 1:
            raise KeyboardInterrupt
        add(additions, record)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Additions, "add", killed)
        built(tmp_path / "C", f"musique:{path}")
    corpus = built(tmp_path / "C", f"musique:{path}")
    [reject] = corpus.rejects.to_pylist()
    assert (reject["position"], reject["reason"]) == (2, "duplicate_id") and "record 3: an earlier" in reject["detail"]
    assert corpus.manifest["counts"]["repeated_queries"] == 3
    assert relevant_titles(corpus)["musique-q"] == {"Nile": 1, "Cairo": 1}


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    records = [
        musique_record("a", [("", "  "), NILE, LIMA], [1, 2]),
        musique_record("b", [(" ", ""), NILE], [0, 1]),
        musique_record("c", [NILE, LIMA], [0, 1], answerable=False),
        musique_record("a", [NILE, LIMA], [0, 1], question="Another question?"),
        {"id": "d", "question": "Q?", "answer": "A", "paragraph": []},
        musique_record("e", [NILE, LIMA], [0, 7]),
    ]
    path = write_lines(tmp_path / "bad.jsonl", records)
    path.write_text(path.read_text() + "{broken\n")
    corpus = built(tmp_path / "C", f"musique:{path}")
    rejects = corpus.rejects.to_pylist()
    assert [(row["position"], row["kind"], row["reason"]) for row in rejects] == [
        (0, "document", "no_text"), (1, "record", "no_support"), (1, "document", "no_text"),
        (2, "record", "unanswerable"), (3, "record", "duplicate_id"), (4, "record", "missing_field"),
        (5, "record", "no_support"), (6, "record", "not_json"),
    ]  # fmt: skip
    assert "did you mean 'paragraphs'" in rejects[5]["detail"] and "line 7" in rejects[7]["detail"]
    assert corpus.queries.filter(corpus.queries["parent_id"].is_null())["query_id"].to_pylist() == ["musique-a"]
    assert corpus.manifest["sources"][0]["counts"]["rejected"]["no_text"] == 2


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [("musique", SettingsError, "KIND:PATH"), ("musik:x", SettingsError, "Did you mean 'musique'"),
     ("musique:nowhere.jsonl", InputError, "does not exist"), ("quit:nowhere", InputError, "does not exist")],
)  # fmt: skip
def test_a_source_that_is_none(source: str, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        parse_corpus_source(source)


def test_files_whose_names_are_no_unicode(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    documents = [{"id": "1", "text": "One."}, {"id": "1", "text": "Two."}]
    file = write_lines(tmp_path / f"{odd}.jsonl", documents)
    folder = write_lines(tmp_path / odd / "corpus.jsonl", documents).parent
    write_lines(folder / "queries.jsonl", [{"_id": "p", "text": "Which?"}])
    write_lines(folder / "qrels" / f"{odd}.tsv", []).write_text("q\t1\t1\n")
    corpus = built(tmp_path / "C", f"beir:{folder}", f"jsonl:{file}")
    assert [source["file"] for source in corpus.manifest["sources"]] == ["caf?", "caf?.jsonl"]
    assert set(corpus.rejects["file"].to_pylist()) == {"corpus.jsonl", "caf?.tsv", "caf?.jsonl"}


def test_a_folder_with_something_else_is_left_alone(two: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "home" / "letter.txt", ["dear"])
    with pytest.raises(SettingsError, match="holds no corpus"):
        built(tmp_path / "home", f"musique:{two}")
    with pytest.raises(InputError, match="holds no corpus"):
        BuiltCorpus.open(tmp_path / "home")


def test_a_corpus_grows_in_its_folder_and_is_not_replaced_by_another(two: Path, tmp_path: Path) -> None:
    other = write_lines(tmp_path / "other.jsonl", [{"id": "x", "text": "A fjord."}])
    first = built(tmp_path / "C", f"musique:{two}")
    with pytest.raises(SettingsError, match=r"C holds a corpus of musique:two\.jsonl, which this one would replace"):
        built(tmp_path / "C", f"jsonl:{other}")
    assert BuiltCorpus.open(tmp_path / "C").manifest == first.manifest
    assert len(built(tmp_path / "C", f"jsonl:{other}", f"musique:{two}")) == len(first) + 1
    manifest = tmp_path / "C" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "sources": [{}]}))
    with pytest.raises(SettingsError, match="which this one would replace"):
        built(tmp_path / "C", f"jsonl:{other}", f"musique:{two}")


def test_progress_counts_each_record_once_also_after_it_goes_on(tmp_path: Path, monkeypatch, notes: list[str]) -> None:
    monkeypatch.setattr(building, "BLOCK", 2)
    path = write_lines(tmp_path / "many.jsonl", [musique_record(f"2hop__{n}", [NILE, LIMA], [0, 1]) for n in range(7)])
    refs = [parse_corpus_source(f"musique:{path}")]

    def until_the_second(_: str) -> None:
        if len(notes) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(Notes(until_the_second)):
        build(refs, tmp_path / "C", Corpora())
    assert notes == ["musique: 2 records", "musique: 4 records"]
    notes.clear()
    resumed, _ = build(refs, tmp_path / "C", Corpora())
    assert notes == ["musique: resuming after 4 records", "musique: 6 records", "musique: 7 records"]
    assert resumed.manifest == built(tmp_path / "D", f"musique:{path}").manifest


def test_the_real_files(data: Path, tmp_path: Path) -> None:
    musique, wiki = data / "musique" / "musique_ans.jsonl", data / "2wikimultihopqa" / "train500.json"
    corpus = built(tmp_path / "C", f"musique:{musique}", f"2wiki:{wiki}")
    # Counted apart from the code under test.
    rows = [json.loads(line) for line in musique.open()]
    pairs = [(one["title"], one["paragraph_text"]) for row in rows for one in row["paragraphs"]]
    pairs += [(title, " ".join(text)) for row in json.loads(wiki.read_text()) for title, text in row["context"]]
    assert len(corpus) == len({tuple(" ".join(part.split()) for part in pair) for pair in pairs}) == 5453
    assert corpus.manifest["datasets"] == {
        "musique": {"queries": 150, "qrels": 341},
        "musique/sub-questions": {"queries": 341, "qrels": 341},
        "2wiki": {"queries": 500, "qrels": 1184},
        "2wiki/sub-questions": {"queries": 1184, "qrels": 1184},
    }
    assert corpus.rejects.num_rows == 0
    assert not [text for text in corpus.queries["text"].to_pylist() if "#1" in text]


def test_a_release_brings_its_licences(tmp_path: Path) -> None:
    published = [{"name": name, "licence": licence, "citation": citation} for name, licence, citation in (
        ("wikihint", "CC BY 4.0", "Mozafari 2025."), ("jsonl", None, None), ("triviahg", "MIT", "Mozafari 2024."),
        ("wikihint", "CC BY 4.0", "Mozafari 2025."),
    )]  # fmt: skip
    own = published[1:2]
    card = {"licence": "CC0-1.0", "citation": "Me."}
    for name, sources, beside, licence, citation in (
        ("v1", published, {}, "CC BY 4.0; not stated; MIT", "Mozafari 2025. Mozafari 2024."),
        ("v2", own, {}, None, None),
        ("v3", published, {"card": card}, "CC0-1.0", "Me."),
    ):
        small.freeze(tmp_path / name, small.rows(), name, beside, sources=sources)
        [source] = built(tmp_path / f"C-{name}", f"quit:{tmp_path / name}").manifest["sources"]
        assert (source["licence"], source["citation"]) == (licence, citation)


@pytest.mark.parametrize(
    ("granularity", "texts", "relevant"),
    [
        ("permutation", [["a b", "b a", "c"], ["e d"]], [{0: 1, 1: 2, 2: 1}, {0: 1}]),
        ("subset", [["c", "a b"], ["d e"]], [{0: 1, 1: 2}, {0: 1}]),
        ("hint", [["a", "b", "c"], ["d", "e"]], [{2: 1}, {}]),
    ],
)
def test_questions_of_a_release_may_have_any_passages(
    monkeypatch, granularity: str, texts: list, relevant: list
) -> None:
    dataset = SimpleNamespace(
        ids=["q1", "q2"],
        rows=SimpleNamespace(
            table=SimpleNamespace(permutation=pa.array(["01", "10", "2"])),
            codes=np.array([0, 1, 2, 1]),
            starts=np.array([0, 3, 4]),
        ),
        labels_of=lambda _: np.array([1, 2, 1, 1]),
        selected_hints=[[{"hint": hint} for hint in hints] for hints in ("abc", "de")],
        gold_answers_of=[["x"], ["y"]],
        valid_answers_of=[["x"], ["y"]],
        question_of=["?", "!"],
        split_names=["train", "test"],
        provenance={"release": "v1"},
    )
    monkeypatch.setattr(release.Dataset, "of_release", lambda _: dataset)
    records = list(release.read(Path(), granularity=granularity))
    assert [[document.text for document in record.documents] for record in records] == texts
    assert [dict(query.relevant) for record in records for query in record.queries] == relevant


def test_a_release_as_a_corpus(tmp_path: Path) -> None:
    """Three questions of two hints each: as hints, as sets of hints, and as every order of them."""
    small.freeze(tmp_path / "v1", small.rows())
    labels = pq.read_table(tmp_path / "v1" / "tables" / "labels.parquet").to_pylist()
    questions = len({row["question_id"] for row in labels})
    for granularity, each in (("hint", 2), ("subset", 3), ("permutation", 4)):
        corpus = built(tmp_path / granularity, f"quit:{tmp_path / 'v1'}", granularity=granularity)
        assert corpus.manifest["counts"]["paragraphs"] == questions * each
        best: dict[tuple[str, str], int] = {}
        for row in labels:
            place = row["permutation"] if granularity == "permutation" else "".join(sorted(row["permutation"]))
            if granularity != "hint" or len(place) == 1:
                key = (row["question_id"], place)
                best[key] = max(best.get(key, 0), row["label"])
        places = {row["doc_id"]: (row["record_id"], row["place"]) for row in corpus.origins.to_pylist()}
        relevances = {(row["query_id"], places[row["doc_id"]][1]): row["relevance"] for row in corpus.qrels.to_pylist()}
        assert relevances == best
        groups = corpus.groups()
        assert groups is not None and len(groups) == questions
