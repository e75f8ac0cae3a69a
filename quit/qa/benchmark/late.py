"""Late interaction (ColBERT): a query token's best match among a passage's tokens, added up over the query's tokens.

As a retriever, hints are encoded, not passages: a passage's best match is the best of its hints' ones, so 37,005 hints
stand for 2.4 million passages, and the permutations of a subset have one score. Their token vectors are encoded once
and kept as float16: with ColBERTv2's 128 numbers 256 bytes per token. As a reranker whole passages are encoded,
and order counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from quit.common.arithmetic import maxsim, products
from quit.common.arrays import write_array
from quit.common.ids import content_hash
from quit.qa.benchmark.passages import expand
from quit.qa.benchmark.plugins import PluginContext
from quit.qa.indexes.encoders import ColbertEncoder, LateEncoder, TokenVectors
from quit.qa.indexes.vectors import check_finite
from quit.retrieval.protocols import Ranking
from quit.retrieval.search import best_with_ties

VERSION = {"hints": 2, "passages": 1}
MAX_REMEMBERED = 500_000
"""Scores remembered at most."""


class LateRetriever:
    """``late`` (MiniLM's token vectors) or ``late:MODEL`` (a multi-vector model such as ColBERT)."""

    def __init__(self, context: PluginContext) -> None:
        self._passages = context.passages
        self._tokens = token_encoder(context)
        batch, chunk = context.settings.benchmark.batch, context.settings.benchmark.chunk
        self.identity = f"late/{VERSION['hints']}/hints/{self._tokens.identity}/batch={batch}"
        self._max_parts = int(self._passages.units.sizes.max())
        self._step = max(1, chunk // 64 // self._max_parts)  # a text has some sixty tokens
        self._folder = context.cache / content_hash(self.identity, self._passages.identity, chunk)

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` passages per query."""
        passages, units = self._passages, self._passages.units
        first_part = 0
        query_tokens = self._tokens.queries(queries)
        best = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)) for _ in queries]
        for start in range(0, passages.groups, self._step):
            groups = range(start, min(start + self._step, passages.groups))
            vectors, ends = self._vectors(groups)
            first, end = np.searchsorted(units.group, [groups.start, groups.stop])
            parts = units.parts[first:end]
            places = np.minimum(parts.indptr[:-1] + np.arange(self._max_parts)[:, None], parts.indptr[1:] - 1)
            padded = parts.indices[places] - first_part  # a unit with fewer parts has its last one more than once
            for number, query in enumerate(query_tokens):
                matches = self._matches(products(query, vectors), ends)
                sums = matches.take(padded, axis=1).max(axis=1).sum(axis=0)
                rows = np.concatenate([best[number][0], np.arange(first, end)])
                scores = np.concatenate([best[number][1], sums])
                check_finite(scores[None], self._tokens.name, [queries[number]].__getitem__)
                order = best_with_ties(scores, depth)
                best[number] = rows[order], scores[order]
            first_part += len(ends)
        return [expand(passages, *of_query, depth) for of_query in best]

    def _vectors(self, groups: range) -> tuple[np.ndarray, np.ndarray]:
        """Return the token vectors of the groups' parts, (tokens, dimension), and where each part ends, from disk where
        they are."""
        tokens, lengths = (self._folder / f"{groups.start:010d}.{name}.npy" for name in ("tokens", "lengths"))
        if not lengths.is_file():  # written last
            vectors = self._tokens.documents([text for group in groups for text in self._passages.parts(group)])
            write_array(tokens, np.concatenate(vectors).astype(np.float16))
            write_array(lengths, np.array([len(vector) for vector in vectors]))
        return np.load(tokens).astype(np.float32), np.cumsum(np.load(lengths))

    def _matches(self, products: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return each query token's best match in each text, (query tokens, texts); -1 without tokens."""
        starts = np.concatenate([[0], ends[:-1]])
        empty = ends == starts
        matches = np.full((len(products), len(ends)), -1.0, dtype=np.float32)
        if not empty.all():
            matches[:, ~empty] = np.maximum.reduceat(products, starts[~empty], axis=1)
        return matches


class LateReranker:
    """``late`` or ``late:MODEL``: MaxSim between the query and whole passages.

    MiniLM's scores are remembered: systems share most of their passages, and its vectors do not depend on what shares a
    batch.
    """

    def __init__(self, context: PluginContext) -> None:
        self._tokens = token_encoder(context)
        self._memory: dict[tuple[str, bytes], float] | None = {} if isinstance(self._tokens, TokenVectors) else None
        batch = context.settings.benchmark.batch
        self.identity = f"late/{VERSION['passages']}/passages/{self._tokens.identity}/batch={batch}"

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return the sum over the query's tokens of the best cosine in each text, float64, shape (len(texts),)."""
        if self._memory is None:
            return self._scores(query, texts)
        keys = [(query, hashlib.blake2b(text.encode(), digest_size=12).digest()) for text in texts]
        new = [row for row, key in enumerate(keys) if key not in self._memory]
        fresh = dict(zip(new, self._scores(query, [texts[row] for row in new]).tolist(), strict=True))
        scores = np.array([fresh[row] if row in fresh else self._memory[key] for row, key in enumerate(keys)])
        if len(self._memory) > MAX_REMEMBERED:
            self._memory.clear()
        self._memory.update((keys[row], score) for row, score in fresh.items())
        return scores

    def _scores(self, query: str, texts: Sequence[str]) -> np.ndarray:
        [query_tokens] = self._tokens.queries([query])
        return np.array([row.sum(dtype=np.float64) for row in maxsim(query_tokens, self._tokens.documents(texts))])


def token_encoder(context: PluginContext) -> LateEncoder:
    """Return the token vectors that ``late`` or ``late:MODEL`` asks for."""
    name, settings = context.argument, context.running
    if name:
        return ColbertEncoder(name, settings, unit=True)
    return TokenVectors(context.models.encoder)
