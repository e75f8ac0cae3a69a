"""Graphs: opened by the package they are made for, resumable, incremental, and clear about bad input."""

import json
import os
import shutil
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow.parquet as pq
import pytest

from quit.common.steps import Steps
from quit.errors import InputError, MissingDependency, SettingsError
from quit.qa.corpora import graph
from quit.qa.corpora.graph import NeighbourhoodGraph, build_graph, import_graph
from quit.qa.indexes import vectors
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.first_stage import build_first_stage
from quit.qa.settings import FirstStages, Graph
from quit.retrieval.protocols import NeighbourGraph
from tests.comparing import files_of
from tests.qa.corpora.worlds import Given, built, corpus_of, entries, unit, use
from tests.rows import write_lines

WORDS = "river city king song film lake war duke ship tree"


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "BLOCK", 16)


def _world(folder: Path, monkeypatch, count: int = 40) -> tuple[BuiltCorpus, Given, np.ndarray]:
    """Return a corpus, the encoder that every name now means, and its vectors."""
    texts = [f"document {row}" for row in range(count)]
    matrix = unit(count, 8, 1)
    encoder = Given(dict(zip(texts, matrix, strict=True)))
    use(monkeypatch, encoder)
    return corpus_of(texts, folder), encoder, matrix


def _graph(corpus: BuiltCorpus, out: Path, k: int = 5, encoder: str = "given", stages=None, **settings):
    return build_graph(corpus, encoder, k, out, Graph(**settings), stages or FirstStages())


def test_only_what_writes_a_graph_needs_the_extra_and_says_so_before_it_encodes(tmp_path: Path, monkeypatch) -> None:
    corpus, encoder, _ = _world(tmp_path, monkeypatch)
    ours, _ = _graph(corpus, tmp_path / "G")
    monkeypatch.setitem(sys.modules, "npids", None)
    encoder.seen = []
    with pytest.raises(MissingDependency, match=r"npids.*\[retrieval\]"):
        _graph(corpus, tmp_path / "H")
    assert encoder.seen == []
    assert NeighbourhoodGraph.open(tmp_path / "G", corpus).neighbours(3, 5).tolist() == ours.neighbours(3, 5).tolist()


def test_pyterrier_adaptive_opens_it_and_names_the_same_neighbours(tmp_path: Path, monkeypatch) -> None:
    adaptive = pytest.importorskip("pyterrier_adaptive", reason="pyterrier-adaptive is not installed")
    corpus, _, matrix = _world(tmp_path, monkeypatch)
    ours, new = _graph(corpus, tmp_path / "G")
    theirs = adaptive.NpTopKCorpusGraph.load(str(tmp_path / "G"))
    assert new and isinstance(ours, NeighbourGraph) and isinstance(theirs, adaptive.NpTopKCorpusGraph)
    scores = matrix @ matrix.T
    np.fill_diagonal(scores, -9)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    for row in range(40):
        assert ours.neighbours(row, 5).tolist() == expected[row].tolist() == theirs.neighbours(row).tolist()
        name = corpus.ids([row])[0]
        near, weights = theirs.neighbours(name, weights=True)
        assert list(near) == corpus.ids(expected[row])
        assert np.allclose(weights, scores[row, expected[row]], atol=1e-3)
        assert theirs.to_limit_k(2).neighbours(row).tolist() == ours.neighbours(row, 2).tolist()
    edges = pq.read_table(tmp_path / "G" / "edges.parquet").to_pylist()
    [first], nearest = corpus.ids([0]), enumerate(corpus.ids(expected[0]), start=1)
    assert [tuple(one.values())[:3] for one in edges[:5]] == [(first, name, rank) for rank, name in nearest]
    assert len(edges) == 200
    facts = {"type": "corpus_graph", "format": "np_topk", "package_hint": "pyterrier-adaptive", "doc_count": 40, "k": 5}
    assert json.loads((tmp_path / "G" / "pt_meta.json").read_text()) == facts


def test_short_rows_end_with_the_row_itself_and_weight_0(tmp_path: Path, monkeypatch) -> None:
    """Documents 0..29 belong to one question, the rest to none: with k = 15 the former have only ten neighbours."""
    corpus, _, _ = _world(tmp_path, monkeypatch)
    monkeypatch.setattr(BuiltCorpus, "groups", lambda self: [list(range(30))])
    graph, _ = _graph(corpus, tmp_path / "G", k=15, cross_question_only=True)
    edges = np.fromfile(tmp_path / "G" / "edges.u32.np", dtype="<u4").reshape(40, 15)
    weights = np.fromfile(tmp_path / "G" / "weights.f16.np", dtype="<f2").reshape(40, 15)
    assert edges[3, 10:].tolist() == [3] * 5 and weights[3, 10:].tolist() == [0] * 5
    assert set(graph.neighbours(3, 15).tolist()) == set(range(30, 40))
    assert len(graph.neighbours(35, 15)) == 15
    assert graph.facts["edges"] == 30 * 10 + 10 * 15 == pq.read_metadata(tmp_path / "G" / "edges.parquet").num_rows
    assert graph.facts["statistics"]["rows_with_k_neighbours"] == 10


def test_new_documents_alone_are_encoded(tmp_path: Path, monkeypatch) -> None:
    large, encoder, _ = _world(tmp_path, monkeypatch)
    _graph(corpus_of([f"document {row}" for row in range(10, 30)], tmp_path / "small"), tmp_path / "G")
    with pytest.raises(InputError, match="is not the one that the graph .*quit graph build --corpus .* --k .* --out"):
        NeighbourhoodGraph.open(tmp_path / "G", large)
    grown, _ = _graph(large, tmp_path / "G")
    assert sorted(encoder.seen) == sorted(f"document {row}" for row in range(40)), "each once"
    fresh, _ = _graph(large, tmp_path / "fresh")
    assert np.array_equal(grown.edges, fresh.edges) and np.array_equal(grown.weights, fresh.weights)
    encoder.seen.clear()
    assert not _graph(large, tmp_path / "G")[1] and not encoder.seen


def test_an_imported_graph_has_the_files_edges(tmp_path: Path) -> None:
    corpus = corpus_of([f"document {row}" for row in range(5)], tmp_path)  # ids "0" to "4"
    lists = {"0": {"0": 9, "3": 1, "1": 2, "gone": 3}, "3": {"4": -1.5}, "left": {"0": 1}}
    (tmp_path / "gar_graph.json").write_text(json.dumps(lists))
    graph, new = import_graph(corpus, tmp_path / "gar_graph.json", "late:x", tmp_path / "G")
    assert new and [graph.neighbours(row, 2).tolist() for row in range(5)] == [[1, 3], [], [], [4], []]
    assert np.asarray(graph.weights)[[0, 3]].tolist() == [[2, 1], [-1.5, 0]]
    plan = graph.facts["plan"]
    assert (plan["encoder"], plan["file_documents"], plan["unknown_documents"]) == ("late:x", 6, 2)
    assert graph.facts["recall"]["value"] is None and graph.facts["edges"] == 3
    assert not import_graph(corpus, tmp_path / "gar_graph.json", "late:x", tmp_path / "G")[1]
    with (tmp_path / "G" / "edges.u32.np").open("r+b") as file:
        file.write(b"\xff")
    again = f"quit graph import FOLDER/gar_graph.json --corpus {corpus.path} --encoder late:x --out"
    with pytest.raises(InputError, match=f"was altered.*{again}"):
        NeighbourhoodGraph.open(tmp_path / "G", corpus)
    with pytest.raises(InputError, match="--corpus CORPUS --encoder late:x"):
        NeighbourhoodGraph.open(tmp_path / "G")
    (tmp_path / "self.json").write_text('{"0": ["0"]}')
    with pytest.raises(InputError, match="lists no neighbour"):
        import_graph(corpus, tmp_path / "self.json", "late:x", tmp_path / "H")


def test_weights_beyond_float16_are_divided_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = corpus_of([f"document {row}" for row in range(4)], tmp_path)
    (tmp_path / "g.json").write_text(json.dumps({"0": {"1": 190000, "2": 80000, "3": 1.5}, "1": {"0": -3e9}}))
    graph, _ = import_graph(corpus, tmp_path / "g.json", "late:x", tmp_path / "G")
    divisor = graph.facts["plan"]["weights_divided_by"]
    assert divisor == 2**16 and f"all weights are divided by {divisor:g}" in capsys.readouterr().err
    weights = np.asarray(graph.weights, dtype=np.float64)[0] * divisor
    assert weights == pytest.approx([190000, 80000, 1.5], rel=1e-2)


@pytest.mark.parametrize(
    ("scores", "weights", "said"),
    [
        ({"1": 4e-9, "2": 1e-9}, [4e-9, 1e-9], "all weights are divided by"),
        ({"1": 2, "2": 1e-9}, [2, 0], "1 score too"),
    ],
)
def test_weights_below_float16_are_scaled_or_named(tmp_path: Path, scores, weights, said, capsys) -> None:
    corpus = corpus_of([f"document {row}" for row in range(3)], tmp_path)
    (tmp_path / "g.json").write_text(json.dumps({"0": scores}))
    graph, _ = import_graph(corpus, tmp_path / "g.json", "late:x", tmp_path / "G")
    divisor = graph.facts["plan"].get("weights_divided_by", 1)
    assert np.asarray(graph.weights, dtype=np.float64)[0] * divisor == pytest.approx(weights, rel=1e-3)
    assert said in capsys.readouterr().err


def test_what_a_graph_is_not(tmp_path: Path, monkeypatch) -> None:
    corpus, encoder, _ = _world(tmp_path, monkeypatch)
    write_lines(tmp_path / "home" / "letter.txt", ["dear"])
    build_first_stage(corpus, "bm25", tmp_path / "I", FirstStages())
    for out, message, changes in (
        ("home", "holds no graph", {}),
        (corpus.path, "holds no graph", {}),
        ("I", "holds no graph", {}),
        ("G", "no documents of a QUIT release", {"cross_question_only": True}),
        *(("G", "below the number of documents .*, which is 40", {"k": k}) for k in (0, 40)),
    ):
        with pytest.raises(SettingsError, match=message):
            _graph(corpus, tmp_path / out, **changes)
    for folder in ("nowhere", "home", "I"):
        with pytest.raises(InputError, match=r"holds no graph\. Make one"):
            NeighbourhoodGraph.open(tmp_path / folder)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingDependency, match="needs the package faiss"):
        _graph(corpus, tmp_path / "G", method="faiss")
    assert not encoder.seen
    graph, _ = _graph(corpus, tmp_path / "G")
    with pytest.raises(SettingsError, match="stores 5 neighbours per document, not 6"):
        graph.neighbours(0, 6)


def test_an_unfinished_corpus_is_no_place_for_a_graph_nor_the_reverse(tmp_path: Path, monkeypatch) -> None:
    corpus, *_ = _world(tmp_path, monkeypatch)
    Steps(tmp_path / "H" / "partial", {"version": 1, "sources": []})
    with pytest.raises(SettingsError, match="holds no graph"):
        _graph(corpus, tmp_path / "H")
    monkeypatch.setattr(graph, "_finish", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        _graph(corpus, tmp_path / "G")
    before = files_of(tmp_path / "G")
    with pytest.raises(InputError, match="an unfinished build is there"):
        NeighbourhoodGraph.open(tmp_path / "G")
    with pytest.raises(SettingsError, match="holds no corpus"):
        built(tmp_path / "G", f"jsonl:{tmp_path / 'texts.jsonl'}")
    assert files_of(tmp_path / "G") == before


def test_faiss_is_measured_against_exact_search(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("faiss", reason="faiss is not installed")
    corpus, _, _ = _world(tmp_path, monkeypatch, 400)
    exact, _ = _graph(corpus, tmp_path / "E", k=10)
    near, _ = _graph(corpus, tmp_path / "F", k=10, method="faiss")
    assert exact.facts["plan"]["method"] == "exact" and near.facts["plan"]["method"] == "faiss"
    same = np.mean([len(set(exact.edges[row]) & set(near.edges[row])) / 10 for row in range(400)])
    assert near.facts["recall"]["value"] == pytest.approx(same, abs=0.01)
    assert near.facts["recall"]["sample"] == 400 and same > 0.9
    assert not (np.asarray(near.edges) == np.arange(400)[:, None]).any()


def test_a_graph_from_bm25_for_dense_first_stages(tmp_path: Path) -> None:
    texts = [f"{WORDS.split()[row % 10]} {WORDS.split()[row // 10]} number{row}" for row in range(100)]
    corpus = corpus_of(texts, tmp_path)
    graph, _ = _graph(corpus, tmp_path / "G", k=9, encoder="bm25")
    for row in (0, 37, 99):
        near = graph.neighbours(row, 9)
        assert row not in near and (np.diff(graph.weights[row]) <= 0).all()
        for other in near:  # every neighbour shares a word, and each word is in nineteen documents
            assert set(texts[row].split()) & set(texts[int(other)].split())
    lonely = corpus_of(["alpha beta", "alpha gamma", "delta"], tmp_path / "lonely")
    graph, _ = _graph(lonely, tmp_path / "L", k=2, encoder="bm25")
    assert [graph.neighbours(row, 2).tolist() for row in range(3)] == [[1], [0], []]


def test_late_interaction_is_maxsim(tmp_path: Path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    texts = [f"document {row}" for row in range(30)]
    tokens = {text: unit(int(rng.integers(1, 6)), 6, row) for row, text in enumerate(texts)}
    monkeypatch.setattr("quit.qa.corpora.neighbours.late_encoder", lambda *_: entries("late:x", 6, tokens))
    corpus = corpus_of(texts, tmp_path)
    graph, _ = _graph(corpus, tmp_path / "G", k=4, encoder="late:x", late_candidates=100)
    scores = np.array([[(tokens[a] @ tokens[b].T).max(axis=1).mean() for b in texts] for a in texts])
    np.fill_diagonal(scores, -9)
    expected = np.argsort(-scores, axis=1)[:, :4]
    assert (np.asarray(graph.edges) == expected).mean() > 0.95  # token vectors are kept as float16
    assert np.allclose(np.asarray(graph.weights, dtype=float), np.take_along_axis(scores, expected, 1), atol=5e-3)
    assert graph.facts["recall"]["value"] == pytest.approx(1.0, abs=0.03)
    few, _ = _graph(corpus, tmp_path / "few", k=4, encoder="late:x", late_candidates=1)
    assert few.facts["recall"]["value"] < 1.0  # candidates by mean vectors alone are not enough here, and it says so


def test_stopped_at_any_move_or_removal_it_goes_on_and_ends_alike(tmp_path: Path, monkeypatch) -> None:
    """The last steps move file after file into place; no state between two of them may need a person."""
    corpus, encoder, _ = _world(tmp_path, monkeypatch)
    calls, last = 0, 0

    class Killed(BaseException):
        pass

    def counted(function):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == last:
                raise Killed
            return function(*arguments, **options)

        return call

    monkeypatch.setattr("os.replace", counted(os.replace))
    monkeypatch.setattr("shutil.rmtree", counted(shutil.rmtree))
    _graph(corpus, tmp_path / "whole")
    whole, once = files_of(tmp_path / "whole"), len(encoder.seen)
    for stop in range(1, calls + 1):
        calls, last, encoder.seen = 0, stop, []
        with pytest.raises(Killed):
            _graph(corpus, tmp_path / f"{stop}")
        last = 0
        _graph(corpus, tmp_path / f"{stop}")
        assert files_of(tmp_path / f"{stop}") == whole, stop
        assert len(encoder.seen) <= once + 16, stop  # a block of vectors at most is made twice
