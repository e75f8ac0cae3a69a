"""The highest of some scores; exact nearest neighbours of queries by blocked matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from quit.common.arithmetic import products

BLOCK = 64
"""Queries of one product of :func:`nearest`, padded: a product of one fixed shape treats each query alike."""


def nearest(
    queries: np.ndarray, chunks: Callable[[], Iterable[Any]], depth: int, rows: int = BLOCK
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each query the rows (int64) and dot products (float32) of its ``depth`` best vectors, best first, ties
    by the lower row.

    ``queries``: float32, shape (n, d). ``chunks``: called for each block of queries, gives all vectors in pieces of
    shape (m, d), arrays or torch's tensors on a GPU, of which one is in memory at a time. ``rows``: queries per
    block.
    """
    for start in range(0, len(queries), rows):
        part = queries[start : start + rows]
        block = np.zeros((rows, queries.shape[1]), dtype=np.float32)
        block[: len(part)] = part
        top = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))] * len(part)
        first = 0
        for chunk in chunks():
            on_gpu = not isinstance(chunk, np.ndarray)
            product = (chunk.new_tensor(block) @ chunk.T).cpu().numpy() if on_gpu else products(block, chunk)
            for query, row in enumerate(product[: len(part)]):
                columns = best(row, depth)
                owners = np.concatenate([top[query][0], columns + first])
                scores = np.concatenate([top[query][1], row[columns]])
                order = best(scores, depth)
                top[query] = owners[order], scores[order]
            first += len(chunk)
        yield from top


def best(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the ``count`` highest scores, int64, best first, ties by place."""
    return best_with_ties(scores, count)[:count]


def best_with_ties(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the ``count`` highest scores and of ties with the last, int64, best first, ties by place."""
    if len(scores) > count > 0:
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    return places[np.argsort(-scores[places], kind="stable")]
