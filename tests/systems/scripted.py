"""A language model that says what a function of the request says, and small corpora."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from quit.models.generation import CachedGenerator
from quit.models.generation.base import ChatRequest, Completion, Done
from quit.retrieval.protocols import Ranking
from quit.text.normalize import words


class _Scripted:
    name = identity = "scripted"

    def __init__(self, reply: Callable[[ChatRequest], str]) -> None:
        self._reply = reply

    def generate(self, requests: Sequence[ChatRequest], done: Done) -> None:
        for place, request in enumerate(requests):
            done(place, Completion(self._reply(request), "stop"))


def scripted(reply: Callable[[ChatRequest], str]) -> CachedGenerator:
    """Return a generator that answers each request with ``reply(request)``; nothing is kept."""
    return CachedGenerator(_Scripted(reply), None)


class SmallCollection:
    """A corpus in memory. ``documents``: (title, text); ``queries``: rows of the queries table; ``qrels``: query ->
    {row: relevance}."""

    def __init__(self, documents: Sequence[tuple[str, str]], queries: Sequence[dict], qrels: dict[str, dict[int, int]]):
        self.identity = "small"
        self._documents = list(documents)
        self._qrels = qrels
        blank = {"answers": [], "parent_id": None, "hop": None, "kind": None, "source": "test"}
        schema = pa.schema(
            [("query_id", pa.string()), ("text", pa.string()), ("answers", pa.list_(pa.string())),
             ("parent_id", pa.string()), ("hop", pa.int16()), ("kind", pa.string()), ("source", pa.string())]
        )  # fmt: skip
        self.queries = pa.Table.from_pylist([{**blank, **query} for query in queries], schema)

    def __len__(self) -> int:
        return len(self._documents)

    def ids(self, rows: Sequence[int]) -> list[str]:
        return [f"d{row}" for row in rows]

    def titles(self, rows: Sequence[int]) -> list[str]:
        return [self._documents[row][0] for row in rows]

    def texts(self, rows: Sequence[int]) -> list[str]:
        return [" ".join(part for part in self._documents[row] if part) for row in rows]

    def relevant_rows(self) -> dict[str, dict[int, int]]:
        return self._qrels


class WordOverlap:
    """A first stage: documents by the number of words they share with the query, ties by row; none shared, not
    found."""

    identity = "word-overlap"

    def __init__(self, collection: SmallCollection) -> None:
        self._words = [{word.casefold() for word in words(text)} for text in collection.texts(range(len(collection)))]

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        made = []
        for query in queries:
            asked = {word.casefold() for word in words(query)}
            scores = np.array([len(asked & own) for own in self._words], dtype=np.float32)
            rows = np.argsort(-scores, kind="stable")[:depth]
            rows = rows[scores[rows] > 0]
            made.append(Ranking(rows.astype(np.int64), scores[rows]))
        return made
