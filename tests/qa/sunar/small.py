"""What SUNAR's tests share: a graph by hand, an asker, rankings, traces."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.prompting import load_prompt
from quit.qa.settings import Sunar
from quit.qa.sunar.queries import Query
from quit.qa.sunar.reading import Asker
from quit.retrieval.protocols import Ranking
from tests.qa.scripted import Scripted

SETTINGS = Sunar(max_tokens=50)


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


def asker(prompt: str, reply: Callable[[ChatRequest], str]) -> tuple[Asker, Scripted]:
    """An asker of a shipped prompt and the model behind it."""
    model = Scripted(reply)
    return Asker(CachedGenerator(model, None), load_prompt(prompt), SETTINGS), model


def ranking(*rows: int) -> Ranking:
    return Ranking(np.array(rows, dtype=np.int64), np.arange(len(rows), 0, -1, dtype=np.float32))


def trace_of(query: Query, **more):
    """A trace of a question whose prediction is its text; ``more``: its other parts."""
    own = {"query_id": query.query_id, "prediction": query.text, "steps": [{}], "replies": {}, "kind": query.kind}
    return {**own, "relevant": dict(query.relevant or {}), "answers": list(query.answers), **more}
