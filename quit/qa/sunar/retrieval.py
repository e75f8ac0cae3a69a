"""From a sub-question to its evidence: NAR, and the baselines that it is compared with at the same budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from quit.qa.indexes.built import BuiltCorpus
from quit.qa.settings import Sunar
from quit.qa.sunar.nar import Pool, Rescore, Scored, nar
from quit.qa.sunar.queries import Query
from quit.qa.sunar.trace import BatchTrace, SearchTrace
from quit.retrieval.protocols import Documents, FirstStage, NeighbourGraph, Ranking, Scorer

NOTHING = Ranking(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))
"""A ranking without a document."""


@dataclass(frozen=True, slots=True)
class Untitled:
    """A corpus whose documents are read without titles. Implements :class:`quit.retrieval.protocols.Documents`."""

    corpus: BuiltCorpus

    @property
    def identity(self) -> str:
        return f"{self.corpus.identity}/untitled"

    def __len__(self) -> int:
        return len(self.corpus)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the documents' ids."""
        return self.corpus.ids(rows)

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the documents' texts alone."""
        return self.corpus.bodies(rows)


@dataclass(frozen=True, slots=True)
class SearchStack:
    """A corpus with its first stage, graph and scorer. Without a ``graph`` only R is scored."""

    documents: Documents
    first_stage: FirstStage
    graph: NeighbourGraph | None
    scorer: Scorer


@dataclass(frozen=True, slots=True)
class Evidence:
    """Documents of a sub-question, best first, and how they were found (for the trace)."""

    ranked: list[Scored]
    trace: SearchTrace

    @property
    def rows(self) -> list[int]:
        """The documents' rows, best first."""
        return [scored.row for scored in self.ranked]


class Retrieval:
    """How evidence is found, as ``settings.retrieval`` says: ``nar``; ``rerank``, the same without the graph; ``prf``,
    re-ranking with an expanded query; ``first``, neither; ``gold``, the question's relevant documents, an **oracle**
    (the golden evidence of the SUNAR paper's table 1).

    ``feedback_documents``: how many of R expand the query of ``prf``; 0 takes the relevant ones in R (the paper's ideal
    baseline, an oracle), which leaves the query as it is where R holds none.
    """

    def __init__(self, stack: SearchStack, settings: Sunar) -> None:
        self._stack = stack
        self._settings = settings

    def evidence(self, query: Query, sub_question: str, rescore: Rescore | None = None) -> Evidence:
        """Return a sub-question's evidence; none where the first stage finds nothing."""
        stack, settings = self._stack, self._settings
        if settings.retrieval == "gold":
            return Evidence([Scored(row, 1.0, 1.0, 0, "gold") for row in query.relevant_rows], {"first_stage": 0})
        text = query.text if settings.initial == "question" else sub_question
        R = stack.first_stage.search([text], settings.first)[0] if settings.first > 0 else NOTHING
        if settings.retrieval == "first":
            pairs = zip(R.rows.tolist(), R.scores.tolist(), strict=True)
            return Evidence([Scored(row, score, score, 0, "R") for row, score in pairs], {"first_stage": len(R)})
        scored_query = self._expand(query, sub_question, R) if settings.retrieval == "prf" else sub_question
        pool = nar(
            R,
            stack.graph if settings.retrieval == "nar" else None,
            lambda rows: stack.scorer.score(scored_query, stack.documents.texts(rows)),
            rescore,
            b=settings.b,
            c=settings.c,
            neighbours=settings.neighbours,
            raw_priority=settings.priority == "raw",
            bounded=settings.frontier == "bounded",
        )
        batches = batch_traces(pool, stack.documents.ids)
        return Evidence(pool.ranked(stack.documents.ids), {"first_stage": len(R), "batches": batches})

    def by_score(self, query: Query, rows: Sequence[int]) -> list[int]:
        """Return documents by their score for the original question, ties by document id; as they are where documents
        are not scored (``first``, ``gold``)."""
        if self._settings.retrieval in ("first", "gold"):
            return list(rows)
        documents = self._stack.documents
        scores = self._stack.scorer.score(query.text, documents.texts(rows))
        return [row for _, _, row in sorted(zip((-scores).tolist(), documents.ids(rows), rows, strict=True))]

    def _expand(self, query: Query, sub_question: str, R: Ranking) -> str:
        documents, count = self._stack.documents, self._settings.feedback_documents
        rows = R.rows.tolist()
        if count:
            rows = rows[:count]
        else:
            relevant = query.relevant or {}
            rows = [row for row, name in zip(rows, documents.ids(rows), strict=True) if name in relevant]
        return " ".join([sub_question, *documents.texts(rows)])


def batch_traces(pool: Pool, ids: Callable[[Sequence[int]], list[str]]) -> list[BatchTrace]:
    """Return the batches of a pool for a trace."""
    traces: list[BatchTrace] = []
    for batch in pool.batches:
        scores, rescored = _short(batch.scores), _short(batch.rescored)
        trace: BatchTrace = {"pool": batch.pool, "documents": ids(batch.rows), "scores": scores, "rescored": rescored}
        if batch.pool == "N":
            trace["parents"] = ids([row for row in batch.parents if row is not None])
        traces.append({**trace, **batch.trace})
    return traces


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.7g}") for value in values.tolist()]
