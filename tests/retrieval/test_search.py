"""Search of queries against a full sort."""

import numpy as np
import torch

from quit.retrieval.search import nearest
from tests.qa.corpora.worlds import unit


def test_a_query_search_is_a_full_sort_and_knows_no_batches() -> None:
    matrix, queries = unit(433, 12, 7), unit(40, 12, 8)

    def search(asked: np.ndarray, depth: int) -> list[tuple[np.ndarray, np.ndarray]]:
        pieces = [torch.from_numpy(matrix[low : low + 100]) for low in range(0, 433, 100)]
        return list(nearest(asked, lambda: pieces, depth, 32))

    rows, scores = zip(*search(queries, 9), strict=True)
    expected = np.argsort(-(queries @ matrix.T), axis=1, kind="stable")[:, :9]
    assert np.array_equal(np.stack(rows), expected)
    [one] = search(queries[11:12], 9)
    assert np.array_equal(one[0], rows[11]) and np.array_equal(one[1], scores[11])
    assert len(search(queries[:1], 1000)[0][0]) == 433
