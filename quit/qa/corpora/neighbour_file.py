"""Neighbours as a file of another program ranks them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quit.common.progress import note
from quit.errors import InputError
from quit.qa.corpora.neighbours import Neighbours
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.rankings import read_rankings
from quit.retrieval.protocols import Ranking
from quit.sources.files import plain_name
from quit.text.words import counted

HIGHEST_HALF = 65504.0
"""The largest float16."""
LOWEST_HALF = 2.0**-14
"""The smallest float16 of full precision."""


def read_neighbours(corpus: BuiltCorpus, path: Path, encoder: str) -> Neighbours:
    """Return the neighbours that a file ranks (:func:`quit.qa.indexes.rankings.read_rankings`, of each document).

    The document itself is left out of its list; of two ids of one document the first has the list. ``k`` is the length
    of the longest. Raises :class:`InputError` as ``read_rankings``, and for a file without a neighbour.
    """
    rankings, rows = read_rankings(path, corpus), corpus.rows_by_id
    lists: dict[int, Ranking] = {}
    for name in filter(rows.__contains__, rankings.by_id):
        row, near = rows[name], rankings.by_id[name]
        others = near.rows != row
        lists.setdefault(row, Ranking(near.rows[others], near.scores[others]))
    k = max(map(len, lists.values()), default=0)
    if not k:
        raise InputError(f"{path} lists no neighbour of a document of the corpus {corpus.path}.")
    lists, divisor = _scaled(lists, path.name)
    documents = rankings.documents | rankings.by_id.keys()
    facts = {
        "encoder": encoder,
        "cross_question_only": False,
        **({"weights_divided_by": divisor} if divisor != 1 else {}),
        "method": "imported",
        "file": plain_name(path.name),
        "checksum": rankings.checksum,
        "file_documents": len(documents),
        "unknown_documents": len(documents - rows.keys()),
    }
    return Neighbours(corpus, k, facts, {}, lambda: _FileSearch(k, lists), "nothing: the edges are a file's")


def _scaled(lists: Mapping[int, Ranking], name: str) -> tuple[dict[int, Ranking], float]:
    """Return lists whose scores fit float16, and what they were divided by. ``name``: their file's, for notes."""
    highest = max(float(np.abs(near.scores).max(initial=0)) for near in lists.values())
    divisor = 1.0
    if highest > HIGHEST_HALF or 0 < highest < LOWEST_HALF:
        divisor = 2.0 ** math.ceil(math.log2(highest / HIGHEST_HALF))
        note(
            f"{name}: its highest score is {highest:g}, and float16 goes from {LOWEST_HALF:g} to "
            f"{HIGHEST_HALF:g}; all weights are divided by {divisor:g}.",
            loud=True,
        )
    scaled = {
        row: Ranking(near.rows, (near.scores.astype(np.float64) / divisor).astype(np.float32))
        for row, near in lists.items()
    }
    sizes = [np.abs(near.scores[near.scores != 0]) for near in scaled.values()]
    if small := sum(int((size.astype(np.float16) == 0).sum()) for size in sizes):
        note(f"{name}: {counted(small, 'score')} too small for float16: weight 0.", loud=True)
    return scaled, divisor


@dataclass(frozen=True, eq=False)
class _FileSearch:
    """Lists of neighbours, by row."""

    k: int
    lists: Mapping[int, Ranking]

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        edges = np.full((stop - start, self.k), -1, dtype=np.int64)
        weights = np.zeros((stop - start, self.k), dtype=np.float32)
        for row in filter(self.lists.__contains__, range(start, stop)):
            near = self.lists[row]
            edges[row - start, : len(near)], weights[row - start, : len(near)] = near.rows, near.scores
        return edges, weights

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> None:
        return None
