"""A language model that says what a function of the request says, and small corpora."""

from collections.abc import Callable, Sequence

import numpy as np

from quit.models.factory import Models
from quit.models.generation import CachedGenerator
from quit.models.generation.base import ChatRequest, Completion, OnReply
from quit.qa.contracts.corpora import CORPUS_TABLES
from quit.qa.settings import QaSettings, parse
from quit.retrieval.protocols import Ranking
from quit.text.tokens import words
from tests.servers.builds import served


class Scripted:
    """A language model whose replies are a function of the request; keeps what it is asked."""

    name = identity = "scripted"

    def __init__(self, reply: Callable[[ChatRequest], str], ends: str = "stop") -> None:
        self._reply, self._ends = reply, ends
        self.requests: list[ChatRequest] = []

    def generate(self, requests: Sequence[ChatRequest], on_reply: OnReply) -> None:
        for place, request in enumerate(requests):
            self.requests.append(request)
            on_reply(place, Completion(self._reply(request), self._ends))


def scripted(reply: Callable[[ChatRequest], str]) -> CachedGenerator:
    """Return a generator that answers each request with ``reply(request)``; nothing is kept."""
    return CachedGenerator(Scripted(reply), None)


def settings(**sections: dict) -> QaSettings:
    """Return settings with a reader ``tiny``, a language model of a server that is not there."""
    return parse(served("http://127.0.0.1:9/v1", "tiny", reader={"role": "reader"}, **sections))


class Talks(Models):
    """Models whose language model answers each request with ``reply(request)``."""

    def __init__(self, settings: QaSettings, reply: Callable[[ChatRequest], str]) -> None:
        super().__init__(settings)
        self._reply = reply

    def generator(self, spec) -> CachedGenerator:
        return scripted(self._reply)


class SmallCollection:
    """A corpus in memory. ``documents``: (title, text); ``queries``: rows of the queries table; ``qrels``: query ->
    {row: relevance}."""

    def __init__(self, documents: Sequence[tuple[str, str]], queries: Sequence[dict], qrels: dict[str, dict[int, int]]):
        self.identity = "small"
        self._documents = list(documents)
        self._qrels = qrels
        blank = {"answers": [], "parent_id": None, "hop": None, "kind": None, "source": "test", "record_id": "q"}
        self.queries = CORPUS_TABLES["queries"].from_rows([{**blank, **query} for query in queries])

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


def plain(texts: Sequence[str]) -> SmallCollection:
    """Return a corpus of texts without titles and questions."""
    return SmallCollection([("", text) for text in texts], [], {})


class WordOverlap:
    """A first stage and scorer: documents by the number of words they share with the query, ties by row; none shared,
    not found. ``scored``: the queries that it scored for."""

    identity = "word-overlap"

    def __init__(self, collection: SmallCollection) -> None:
        self._texts = collection.texts(range(len(collection)))
        self.scored: set[str] = set()

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        self.scored.add(query)
        return self._shared(query, texts)

    def _shared(self, query: str, texts: Sequence[str]) -> np.ndarray:
        asked, *own = ({word.casefold() for word in words(text)} for text in (query, *texts))
        return np.array([float(len(asked & one)) for one in own])

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        replies = []
        for query in queries:
            scores = self._shared(query, self._texts)
            rows = np.argsort(-scores, kind="stable")[:depth]
            rows = rows[scores[rows] > 0]
            replies.append(Ranking(rows.astype(np.int64), scores[rows].astype(np.float32)))
        return replies
