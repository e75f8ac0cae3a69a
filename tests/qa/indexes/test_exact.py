"""Exact search against one that sorts everything."""

import numpy as np
import pytest

from quit.qa.indexes import exact
from quit.qa.indexes.exact import ExactSearch, Exclusions
from tests.qa.corpora.worlds import unit


def _brute(matrix: np.ndarray, k: int, banned=lambda row: ()) -> list[list[int]]:
    scores = matrix.astype(np.float64) @ matrix.astype(np.float64).T
    left_out = [{row, *banned(row)} for row in range(len(matrix))]
    orders = np.argsort(-scores, axis=1, kind="stable").tolist()
    return [[other for other in order if other not in out][:k] for order, out in zip(orders, left_out, strict=True)]


def _clusters(count: int, seed: int) -> np.ndarray:
    vectors = np.repeat(unit(count // 10, 24, seed), 10, axis=0) + 0.4 * unit(count, 24, seed + 1)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "SCORE_MB", 1)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_neighbours_are_those_of_a_full_sort(precision: str) -> None:
    matrix = _clusters(600, 3)
    search = ExactSearch(matrix, 7, precision=precision, rescored=30)
    found, weights = search.rows(0, 600)
    expected = np.array(_brute(matrix, 7))
    assert (found == expected).mean() > 0.999
    assert np.allclose(weights, np.take_along_axis(matrix @ matrix.T, found, axis=1), atol=1e-5)
    assert (np.diff(weights, axis=1) <= 0).all()
    assert search.recall(np.arange(0, 600, 6), found[::6]) >= 0.999


def test_lanes_lose_nothing() -> None:
    """A matrix wide enough for selection by lanes, with a remainder: fp32 is exact, bf16 after scoring again too."""
    matrix = unit(5003, 16, 1)
    scores = matrix @ matrix[100:140].T
    scores[np.arange(100, 140), np.arange(40)] = -2
    expected = np.sort(np.argsort(-scores, axis=0)[:8].T, axis=1)
    for precision, rescored in (("fp32", 0), ("bf16", 60)):
        found, _ = ExactSearch(matrix, 8, precision=precision, rescored=rescored).rows(100, 140)
        assert (np.sort(found, axis=1) == expected).mean() > 0.995


def test_bf16_alone_misses_what_scoring_again_finds() -> None:
    matrix = _clusters(600, 5)
    rows = np.arange(0, 600, 5)
    recalls = []
    for rescored in (0, 50):
        search = ExactSearch(matrix, 20, precision="bf16", rescored=rescored)
        recalls.append(search.recall(rows, search.rows(0, 600)[0][rows]))
    assert recalls[0] < recalls[1] and recalls[1] > 0.999


def test_recall_counts_by_hand() -> None:
    matrix = np.array([[1, 0], [0.9, 0.1], [0.8, 0.2], [0, 1], [-1, 0]], dtype=np.float32)
    search = ExactSearch(matrix, 2, precision="fp32")
    assert search.recall(np.array([0]), np.array([[1, 2]])) == 1.0
    assert search.recall(np.array([0]), np.array([[1, 3]])) == 0.5
    assert search.recall(np.array([0]), np.array([[-1, 3]])) == 0.0


def test_groups_are_left_out_also_overlapping_ones() -> None:
    matrix = _clusters(60, 9)
    groups = [list(range(0, 20)), list(range(20, 41)), [5, 50, 51]]
    excluded = Exclusions(groups, 60)
    assert excluded.of(5).tolist() == [*range(20), 50, 51] and excluded.of(59).tolist() == []
    assert excluded.max_excluded == 22

    def banned(row: int) -> set[int]:
        return set().union(*[set(group) for group in groups if row in group])

    found, weights = ExactSearch(matrix, 45, precision="fp32", excluded=excluded).rows(0, 60)
    expected = _brute(matrix, 45, banned)
    for row in range(60):
        short = 45 - len(expected[row])
        assert found[row].tolist() == [*expected[row], *[-1] * short]
        assert not weights[row, 45 - short :].any()
    assert (found[5] == -1).sum() == 45 - 38  # 60 documents less the 22 of its groups


def test_equal_vectors_are_ordered_by_row() -> None:
    matrix = np.repeat(unit(3, 8, 2), 4, axis=0)
    found, _ = ExactSearch(matrix, 3, precision="bf16", rescored=5).rows(0, 12)
    assert found[:4].tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
