"""First stages on disk: what is found, that it is found again after opening, and what is refused."""

import math
from pathlib import Path

import numpy as np
import pytest

from quit.common.arithmetic import on_grid
from quit.errors import InputError, QuitError
from quit.qa.corpora.graph import build_graph
from quit.qa.indexes import vectors
from quit.qa.indexes.first_stage import build_first_stage, open_first_stage
from quit.qa.settings import FirstStages, Graph
from quit.retrieval.hybrid import FusedStage
from quit.retrieval.protocols import FirstStage
from tests.qa.corpora.worlds import Fixed, Given, corpus_of, entries, unit, use
from tests.retrieval.test_hybrid import TEXTS, _bm25
from tests.rows import write_lines

SETTINGS = FirstStages()


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "BLOCK", 2)


def test_bm25_on_disk_is_lucenes(tmp_path: Path) -> None:
    corpus = corpus_of(TEXTS, tmp_path)
    question = "Which river flows through Khartoum, the Nile?"
    expected = _bm25(question, SETTINGS.bm25_k1, SETTINGS.bm25_b)
    build_first_stage(corpus, "bm25", tmp_path / "I", SETTINGS)
    stage = open_first_stage(tmp_path / "I", corpus, SETTINGS)
    assert isinstance(stage, FirstStage)
    [found, nothing] = stage.search([question, "the of zzz"], 10)
    order = [row for row in np.argsort(-np.array(expected), kind="stable") if expected[row] > 0]
    assert found.rows.tolist() == order and found.rows.dtype == np.int64
    # Lucene leaves the factor k1 + 1 out of the score; bm25s's "lucene" does too.
    assert np.allclose(found.scores, np.array(expected)[order], rtol=1e-5)
    assert len(nothing) == 0
    assert stage.search([question], 2)[0].rows.tolist() == order[:2]
    assert [len(ranking) for ranking in stage.search([question, "the of zzz"], 0)] == [0, 0]


def test_a_dense_index_is_a_full_sort_and_new_documents_alone_are_encoded(tmp_path: Path, monkeypatch) -> None:
    texts = [f"text {row}" for row in range(30)]
    vectors = dict(zip([*texts, "question"], on_grid(unit(31, 8, 4)), strict=True))
    encoder = Given(vectors)
    use(monkeypatch, encoder)
    small = corpus_of(texts[:20], tmp_path / "small")
    build_first_stage(small, "given", tmp_path / "I", SETTINGS)
    large = corpus_of(texts, tmp_path / "large")
    with pytest.raises(InputError, match="made of another corpus"):
        open_first_stage(tmp_path / "I", large, SETTINGS)
    encoder.seen.clear()
    stage = build_first_stage(large, "given", tmp_path / "I", SETTINGS)
    assert sorted(encoder.seen) == sorted(texts[20:])
    [found] = stage.search(["question"], 7)
    products = [vectors[text].astype(np.float64) * vectors["question"] for text in texts]
    scores = np.array([math.fsum(terms) for terms in products], dtype=np.float32)
    assert found.rows.tolist() == np.argsort(-scores, kind="stable")[:7].tolist()
    assert found.scores.tobytes() == np.sort(scores)[::-1][:7].tobytes()  # exact, so the same on every processor
    vectors["question"] = np.full(8, np.nan)
    with pytest.raises(InputError, match="NaN or infinity for 'question'"):
        stage.search(["question"], 7)


def test_a_sparse_index_is_the_dot_product(tmp_path: Path, monkeypatch) -> None:
    rng = np.random.default_rng(2)
    texts = [f"text {row}" for row in range(25)]
    weights = np.where(rng.random((26, 40)) < 0.2, rng.random((26, 40)), 0).astype(np.float32)
    postings = {text: (np.flatnonzero(row).astype(np.int32), row[row > 0]) for text, row in zip([*texts, "q"], weights)}
    monkeypatch.setattr("quit.qa.indexes.first_stage.sparse_encoder", lambda *_: entries("sparse:x", 40, postings))
    corpus = corpus_of(texts, tmp_path)
    build_first_stage(corpus, "sparse:x", tmp_path / "I", SETTINGS)
    [found] = open_first_stage(tmp_path / "I", corpus, SETTINGS).search(["q"], 6)
    scores = weights[:25] @ weights[25]
    order = [row for row in np.argsort(-scores, kind="stable") if scores[row] > 0][:6]
    assert found.rows.tolist() == order and np.allclose(found.scores, scores[order], atol=1e-6)
    postings["text 3"][1][:] = np.nan
    with pytest.raises(InputError, match=f"NaN or infinity for '{corpus.ids([3])[0]}'"):
        build_first_stage(corpus, "sparse:x", tmp_path / "J", SETTINGS)


@pytest.mark.parametrize("name", ["given", "sparse:x"])
def test_an_encoder_that_changed_under_its_name_encodes_all_again(name: str, tmp_path: Path, monkeypatch) -> None:
    texts = ["one", "two", "three"]
    rows = dict(zip([*texts, "q"], np.eye(4, 3, dtype=np.float32), strict=True))
    rows["q"] = rows["one"]
    lists = {text: (np.flatnonzero(row).astype(np.int32), row[row > 0]) for text, row in rows.items()}
    dense, sparse = Given(rows), entries("sparse:x", 3, lists)
    use(monkeypatch, dense)
    monkeypatch.setattr("quit.qa.indexes.first_stage.sparse_encoder", lambda *_: sparse)
    corpus = corpus_of(texts, tmp_path)
    build_first_stage(corpus, name, tmp_path / "I", SETTINGS)
    graph = build_graph(corpus, name, 1, tmp_path / "G", Graph(), SETTINGS)[0].identity
    dense.identity = sparse.identity = "another"
    rows["one"], rows["three"] = rows["three"], rows["one"]
    lists["one"], lists["three"] = lists["three"], lists["one"]
    with pytest.raises(InputError, match="are not those of another. Run: quit index build"):
        open_first_stage(tmp_path / "I", corpus, SETTINGS)
    stage = build_first_stage(corpus, name, tmp_path / "I", SETTINGS)
    assert texts[stage.search(["q"], 1)[0].rows[0]] == "three"
    again, new = build_graph(corpus, name, 1, tmp_path / "G", Graph(), SETTINGS)
    assert new and again.identity != graph


def test_fusion_by_hand() -> None:
    [found] = FusedStage([Fixed([4, 2, 9]), Fixed([2, 7])]).search(["q"], 3)
    assert found.rows.tolist() == [2, 4, 7]  # 1/62 + 1/61; 1/61; 1/62 (9: 1/63)
    assert found.scores == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])


def test_a_fused_list_is_the_beginning_of_a_longer_one() -> None:
    stages = FusedStage([Fixed([4, 2, 9]), Fixed([7, 2, 5])])
    [[short], [long]] = (stages.search(["q"], depth) for depth in (1, 5))
    assert short.rows.tolist() == [2] == long.rows[:1].tolist()  # second in both: 2/62, above 1/61


def test_what_is_no_index(tmp_path: Path) -> None:
    corpus = corpus_of(TEXTS, tmp_path)
    with pytest.raises(InputError, match="holds no finished index"):
        open_first_stage(tmp_path / "nowhere", corpus, SETTINGS)
    write_lines(tmp_path / "home" / "letter.txt", ["dear"])
    for encoder, out, settings, said in (
        ("bm25", "home", SETTINGS, "holds no index"),
        ("late:minilm", "late", SETTINGS, "is not a dense encoder"),
        (str(tmp_path / "home"), "st", SETTINGS, "cannot be loaded"),
        ("minilm", "gpu", FirstStages(device="cuda:99"), r"first_stages\.device is 'cuda:99'"),
    ):
        with pytest.raises(QuitError, match=said):
            build_first_stage(corpus, encoder, tmp_path / out, settings)
