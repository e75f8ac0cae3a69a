"""Late interaction (ColBERT): a query token's best match among a passage's tokens, added up over the query's tokens.

As a retriever, hints are encoded, not passages: a passage's best match is the best of its hints' ones, so 37,005 hints stand for 2.4
million passages, and the permutations of a subset have one score. As a reranker whole passages are encoded, and order counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quit.corpora.lexical import best_with_ties
from quit.corpora.protocols import Ranking
from quit.errors import InputError
from quit.models.protocols import Encoder
from quit.systems.benchmark.dense import loaded, model_identity, model_place
from quit.systems.benchmark.plugins import Context
from quit.systems.benchmark.task import expand

VERSION = 1
MOST_KNOWN = 500_000
"""Scores remembered at most."""


class LateRetriever:
    """``late`` (MiniLM's token vectors) or ``late:MODEL`` (a sentence-transformers multi-vector model such as ColBERT)."""

    def __init__(self, context: Context) -> None:
        self._passages = context.passages
        self._tokens = token_encoder(context)
        self._chunk = context.settings.benchmark.chunk
        self.identity = f"late/{VERSION}/hints/{self._tokens.identity}"

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` passages a query."""
        passages = self._passages
        asked = self._tokens.queries(queries)
        scores = [np.zeros(passages.groups * len(passages.subsets), dtype=np.float32) for _ in queries]
        step = max(1, self._chunk // 64 // max(map(len, passages.subsets)))  # a text has some sixty tokens at most
        for start in range(0, passages.groups, step):
            groups = range(start, min(start + step, passages.groups))
            texts = [text for group in groups for text in passages.parts(group)]
            vectors = self._tokens.documents(texts)
            ends = np.cumsum([len(one) for one in vectors])
            stacked = np.concatenate(vectors)
            for place, query in enumerate(asked):
                matches = self._matches(query @ stacked.T, ends).reshape(len(query), len(groups), -1)
                found = [matches[:, :, list(subset)].max(axis=2).sum(axis=0) for subset in passages.subsets]
                width = len(passages.subsets)
                scores[place][start * width : (start + len(groups)) * width] = np.stack(found, axis=1).ravel()
        made = []
        for one in scores:
            units = best_with_ties(one, depth)
            made.append(expand(passages, units, one[units], depth))
        return made

    def _matches(self, products: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the best match of each query token in each text, shape (query tokens, texts); -1 for a text without tokens."""
        starts = np.concatenate([[0], ends[:-1]])
        empty = ends == starts
        if empty.all():
            return np.full((len(products), len(ends)), -1.0, dtype=np.float32)
        found = np.full((len(products), len(ends)), -1.0, dtype=np.float32)
        found[:, ~empty] = np.maximum.reduceat(products, starts[~empty], axis=1)
        return found


class LateReranker:
    """``late`` or ``late:MODEL``: MaxSim between the query and whole passages.

    MiniLM's scores are remembered: systems share most of their passages, and its vectors do not depend on what shares a batch.
    """

    def __init__(self, context: Context) -> None:
        self._tokens = token_encoder(context)
        self._known: dict[tuple[str, bytes], float] | None = {} if isinstance(self._tokens, TokenEncoder) else None
        self.identity = f"late/{VERSION}/passages/{self._tokens.identity}"

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return the sum over the query's tokens of the best cosine in each text, float64, shape (len(texts),)."""
        if self._known is None:
            return self._scored(query, texts)
        keys = [(query, hashlib.blake2b(text.encode(), digest_size=12).digest()) for text in texts]
        new = [place for place, key in enumerate(keys) if key not in self._known]
        found = dict(zip(new, self._scored(query, [texts[place] for place in new]).tolist(), strict=True))
        made = np.array([found[place] if place in found else self._known[key] for place, key in enumerate(keys)])
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known.update((keys[place], score) for place, score in found.items())
        return made

    def _scored(self, query: str, texts: Sequence[str]) -> np.ndarray:
        asked = self._tokens.queries([query])[0]
        made = np.zeros(len(texts))
        if len(asked):
            for place, tokens in enumerate(self._tokens.documents(texts)):
                if len(tokens):
                    made[place] = float((asked @ tokens.T).max(axis=1).sum(dtype=np.float64))
        return made


class TokenEncoder:
    """Token vectors of an :class:`quit.models.protocols.Encoder`: queries and documents alike."""

    def __init__(self, encoder: Encoder) -> None:
        self.identity = encoder.identity
        self._encoder = encoder

    def queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return unit vectors, one array of shape (tokens, dimension) a text."""
        return self._encoder.encode_tokens(texts)

    documents = queries


class MultiVectorEncoder:
    """Token vectors of a sentence-transformers multi-vector model (ColBERT). Raises ``InputError`` where it cannot be loaded."""

    def __init__(self, name: str, batch: int, device: str) -> None:
        self._name, self._batch, self._device = name, batch, device
        self.identity = f"{model_identity(name)}/batch={batch}"
        self._model: Any = None

    def queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return unit vectors, one array of shape (tokens, dimension) a text."""
        return self._encode("encode_query", texts)

    def documents(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return unit vectors, one array of shape (tokens, dimension) a text."""
        return self._encode("encode_document", texts)

    def _encode(self, method: str, texts: Sequence[str]) -> list[np.ndarray]:
        if self._model is None:
            from sentence_transformers import MultiVectorEncoder as Model

            if not is_multi_vector(model_place(self._name)):
                raise InputError(
                    f"{self._name!r} is no multi-vector model: its projection would be noise. "
                    "Make one of it with: quit benchmark finetune --kind multi-vector"
                )
            self._model = loaded(self._name, lambda: Model(model_place(self._name), device=self._device))
        found = getattr(self._model, method)(
            list(texts), batch_size=self._batch, show_progress_bar=False, normalize_embeddings=True
        )
        return [np.asarray(one.cpu() if hasattr(one, "cpu") else one, dtype=np.float32) for one in found]


def is_multi_vector(name: str) -> bool:
    """Whether a model has one vector a token. A hub name is taken at its word; a folder is looked into."""
    modules = Path(name) / "modules.json"
    return not modules.is_file() or "multi_vector" in modules.read_text(encoding="utf-8")


def token_encoder(context: Context) -> TokenEncoder | MultiVectorEncoder:
    """Return the token vectors that ``late`` or ``late:MODEL`` asks for."""
    settings = context.settings.benchmark
    if context.argument:
        return MultiVectorEncoder(context.argument, settings.batch, settings.device)
    return TokenEncoder(context.models.encoder)
