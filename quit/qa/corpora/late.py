"""Late-interaction neighbours: MaxSim over token vectors, among the candidates that mean vectors name.

Similarity of document q to d: the mean over q's tokens of the highest cosine with a token of d (ColBERT's MaxSim
divided by q's length, so that weights are comparable and fit float16). Token vectors take some hundred times the space
of one vector a document; scoring every pair is out of reach past some ten thousand documents, so candidates come from
mean vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from quit.common.arithmetic import unit
from quit.qa.indexes import vectors
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.encoders import LateEncoder
from quit.qa.indexes.exact import ExactSearch, Exclusions, block_bytes
from quit.qa.indexes.vectors import check_finite, checkpointed_batches, id_of

LATE_SAMPLE = 20
"""Documents whose neighbours are compared with MaxSim over the whole corpus: each costs as much as a search of its
own."""


class CorpusTokens:
    """Token vectors of a corpus's documents, kept in ``folder`` as float16; those that are missing are encoded.

    ``lengths``: int64, tokens of each document. Raises :class:`quit.errors.InputError` that names the document when the
    encoder returns NaN or infinity.
    """

    def __init__(self, corpus: BuiltCorpus, encoder: LateEncoder, folder: Path) -> None:
        def encode(start: int, stop: int) -> list[np.ndarray]:
            empty = np.zeros((1, encoder.dimension), dtype=np.float32)  # a text without a token is near to nothing
            texts = [tokens if len(tokens) else empty for tokens in encoder.documents(corpus.text_range(start, stop))]
            for row, tokens in enumerate(texts, start=start):
                check_finite(tokens[None], encoder.name, id_of(corpus, row))
            return [np.concatenate(texts).astype(np.float16), np.array([len(tokens) for tokens in texts])]

        plan = {"corpus": corpus.identity, "identity": encoder.identity}
        count, names = len(corpus), ("tokens", "lengths")
        steps = checkpointed_batches(folder, plan, names, count, vectors.BLOCK, encode, "token vectors")
        self._files = [tokens for tokens, _ in steps]
        self._bounds = [np.concatenate([[0], np.cumsum(lengths)]) for _, lengths in steps]
        self.lengths = np.concatenate([lengths for _, lengths in steps])

    def of(self, row: int) -> np.ndarray:
        """Return the token vectors of a document, float32, shape (tokens, dimension)."""
        step, offset = divmod(row, vectors.BLOCK)
        low, high = self._bounds[step][offset], self._bounds[step][offset + 1]
        return np.asarray(self._files[step][low:high], dtype=np.float32)

    def means(self) -> np.ndarray:
        """Return each document's mean vector at length 1, float32, shape (documents, dimension)."""
        return unit(np.stack([self.of(row).mean(axis=0) for row in range(len(self.lengths))]).astype(np.float32))


class LateSearch:
    """Neighbours by MaxSim: of each document the ``k`` best of ``k * candidates`` by mean vectors.

    Implements :class:`quit.qa.corpora.neighbours.Search`.
    """

    def __init__(
        self, tokens: CorpusTokens, k: int, candidates: int, *, device: str = "cpu", excluded: Exclusions | None = None
    ) -> None:
        self._tokens, self._k, self._device, self._excluded = tokens, k, device, excluded
        depth = min(k * candidates, len(tokens.lengths) - 1)
        self._search = ExactSearch(tokens.means(), depth, precision="fp32", device=device, excluded=excluded)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (neighbours: int64, -1 where there are fewer; weights: float32), shapes (stop - start, k)."""
        neighbours = np.full((stop - start, self._k), -1, dtype=np.int64)
        weights = np.zeros((stop - start, self._k), dtype=np.float32)
        candidates, _ = self._search.rows(start, stop)
        for offset, others in enumerate(candidates):
            others = np.sort(others[others >= 0])
            scores = self._maxsim(start + offset, others)
            order = np.argsort(-scores, kind="stable")[: self._k]
            neighbours[offset, : len(order)], weights[offset, : len(order)] = others[order], scores[order]
        return neighbours, weights

    def _maxsim(self, row: int, others: np.ndarray) -> np.ndarray:
        import torch

        device = self._device
        query_tokens = torch.from_numpy(self._tokens.of(row)).to(device).double()  # half precision: products are exact
        parts = [np.zeros(0, dtype=np.float32)]
        # Of each token its vector three times, in float32, joined and in float64, and its similarities in both.
        limit = block_bytes(device) // (16 * query_tokens.shape[1] + 12 * len(query_tokens))
        for step in steps_of(self._tokens.lengths[others], limit):
            tokens = [self._tokens.of(other) for other in others[step].tolist()]
            owner = torch.from_numpy(np.repeat(np.arange(len(tokens)), list(map(len, tokens)))).to(device)
            similar = (query_tokens @ torch.from_numpy(np.concatenate(tokens)).to(device).double().T).float()
            top = torch.full((len(query_tokens), len(tokens)), -1.0, device=device)
            top.scatter_reduce_(1, owner.expand(len(query_tokens), -1), similar, reduce="amax")
            parts.append(top.mean(dim=0).cpu().numpy())
        return np.concatenate(parts)

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float:
        """Return the mean share of the true neighbours (MaxSim with every document) among those given; 1 where a
        document can have none."""
        hits = []
        for row, named in zip(rows.tolist(), neighbours, strict=True):
            banned = [row, *(self._excluded.of(row) if self._excluded else ())]
            others = np.setdiff1d(np.arange(len(self._tokens.lengths)), banned)
            scores = self._maxsim(row, others)
            count = min(self._k, len(others))
            threshold = np.sort(scores)[len(scores) - count :].min(initial=np.inf) - 1e-6
            hits.append(np.isin(others[scores >= threshold], named).sum() / count if count else 1.0)
        return float(np.mean(hits)) if hits else 1.0


def steps_of(lengths: np.ndarray, limit: int) -> Iterator[slice]:
    """Yield slices of texts one after the other, each of at most ``limit`` tokens or of one text. ``lengths``: int64,
    tokens of each text."""
    ends, start = np.cumsum(lengths), 0
    while start < len(ends):
        stop = max(start + 1, int(np.searchsorted(ends, ends[start] - lengths[start] + limit, side="right")))
        yield slice(start, stop)
        start = stop
