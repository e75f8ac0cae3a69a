"""A corpus that fits on a page, a scripted language model, and what else SUNAR's tests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from quit.corpora.protocols import Ranking
from quit.models.generation import CachedGenerator, ChatRequest, Completion
from quit.models.generation.base import Done
from quit.models.prompting import load_prompt
from quit.settings import Sunar
from quit.systems.sunar.reading import Asker

SETTINGS = Sunar(temperature=0.3, frequency_penalty=0.8, presence_penalty=0.6, max_tokens=50)


class Texts:
    """Documents from a list; ids are d0, d1, ..."""

    identity = "texts"

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(texts)

    def __len__(self) -> int:
        return len(self._texts)

    def ids(self, rows: Sequence[int]) -> list[str]:
        return [f"d{row}" for row in rows]

    def texts(self, rows: Sequence[int]) -> list[str]:
        return [self._texts[row] for row in rows]


class Shared:
    """A first stage and scorer: how many words of the query a text has."""

    identity = "shared words"

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._texts = list(texts)
        self.scored: list[tuple[str, str]] = []

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        found = []
        for query in queries:
            scores = np.array([_shared(query, text) for text in self._texts], dtype=np.float32)
            rows = np.argsort(-scores, kind="stable")[:depth]
            rows = rows[scores[rows] > 0]
            found.append(Ranking(rows.astype(np.int64), scores[rows]))
        return found

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        self.scored += [(query, text) for text in texts]
        return np.array([_shared(query, text) for text in texts], dtype=np.float64)


class Edges:
    """A graph from lists of neighbours."""

    identity = "edges"

    def __init__(self, edges: Mapping[int, Sequence[int]], size: int) -> None:
        self._edges = edges
        self._size = size

    def __len__(self) -> int:
        return self._size

    def neighbours(self, row: int, k: int) -> np.ndarray:
        return np.array(list(self._edges.get(row, ()))[:k], dtype=np.int64)


class Scripted:
    """A language model whose replies are a function of the request."""

    name = identity = "scripted"

    def __init__(self, reply: Callable[[ChatRequest], str]) -> None:
        self._reply = reply
        self.requests: list[ChatRequest] = []

    def generate(self, requests: Sequence[ChatRequest], done: Done) -> None:
        for place, request in enumerate(requests):
            self.requests.append(request)
            done(place, Completion(self._reply(request), "stop"))


def asker(prompt: str, reply: Callable[[ChatRequest], str]) -> tuple[Asker, Scripted]:
    """An asker of a shipped prompt and the model behind it."""
    model = Scripted(reply)
    return Asker(CachedGenerator(model, None), load_prompt(prompt), SETTINGS), model


def ranking(*rows: int) -> Ranking:
    return Ranking(np.array(rows, dtype=np.int64), np.arange(len(rows), 0, -1, dtype=np.float32))


def _shared(query: str, text: str) -> int:
    return len(set(query.casefold().strip("?").split()) & set(text.casefold().replace(".", "").split()))
