"""Late interaction against a loop over all pairs: steps of any size, groups, a text without tokens; its memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from quit.qa.corpora.late import CorpusTokens, LateSearch, steps_of
from quit.qa.indexes import exact, vectors
from quit.qa.indexes.exact import Exclusions
from tests.qa.corpora.worlds import corpus_of, entries, unit


def _search(folder: Path, tokens: list[np.ndarray], k: int = 3, excluded: Exclusions | None = None) -> LateSearch:
    texts = [f"document {row}" for row in range(len(tokens))]
    encoder = entries("late:x", tokens[0].shape[1], dict(zip(texts, tokens, strict=True)))
    return LateSearch(CorpusTokens(corpus_of(texts, folder), encoder, folder / "tokens"), k, 100, excluded=excluded)


@pytest.mark.parametrize(("block", "megabytes"), [(2048, 512), (7, 512), (7, 0)])
def test_neighbours_are_those_of_a_loop_over_all_pairs(tmp_path: Path, monkeypatch, block: int, megabytes: int) -> None:
    monkeypatch.setattr(vectors, "BLOCK", block)
    monkeypatch.setattr(exact, "SCORE_MB", megabytes)
    rng = np.random.default_rng(0)
    tokens = [unit(int(rng.integers(1, 6)), 6, row).astype(np.float16).astype(np.float32) for row in range(20)]
    tokens[4] = np.zeros((0, 6), dtype=np.float32)
    excluded = Exclusions([[0, 1, 2], [2, 19]], 20)
    search = _search(tmp_path, tokens, excluded=excluded)
    kept = [each if len(each) else np.zeros((1, 6), dtype=np.float32) for each in tokens]
    scores = np.array([[(one @ other.T).max(axis=1).mean() for other in kept] for one in kept])
    for row in range(20):
        scores[row, [row, *excluded.of(row)]] = -9
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :3]
    neighbours, weights = search.rows(0, 20)
    assert neighbours.tolist() == expected.tolist()
    assert weights == pytest.approx(np.take_along_axis(scores, expected, axis=1), abs=1e-6)
    everyone = np.arange(20)
    assert search.recall(everyone, neighbours) == 1.0
    assert search.recall(everyone, np.where(np.arange(3) == 0, -1, neighbours)) == pytest.approx(2 / 3)


def test_a_document_that_can_have_no_neighbour_lacks_none(tmp_path: Path) -> None:
    tokens = [unit(2, 6, row) for row in range(4)]
    search = _search(tmp_path, tokens, k=1, excluded=Exclusions([[0, 1], [0, 2], [0, 3]], 4))
    assert search.recall(np.arange(2), np.full((2, 1), -1)) == 0.5, "of document 1, documents 2 and 3 may be"


def test_memory_is_bounded_whatever_a_text_and_a_vector_measure(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(exact, "SCORE_MB", 1)
    search = _search(tmp_path, [unit(180 if row else 8, 128, row) for row in range(64)])
    few = np.full((1, 3), -1)
    search.recall(np.zeros(1, dtype=np.int64), few)  # what is imported and mapped once
    tracemalloc.start()
    search.recall(np.zeros(1, dtype=np.int64), few)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_step_holds_no_more_than_its_limit_or_one_text() -> None:
    lengths = np.array([3, 1, 1, 9, 2, 2, 1])
    assert [lengths[step].tolist() for step in steps_of(lengths, 5)] == [[3, 1, 1], [9], [2, 2, 1]]
    assert [*steps_of(lengths[:0], 5)] == []
