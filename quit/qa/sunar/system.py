"""SUNAR put together: plan, retrieve, answer, look back (the SUNAR paper, section 3, figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from quit.models.protocols import NO_ANSWER
from quit.qa.settings import Sunar
from quit.qa.sunar.asu import asu
from quit.qa.sunar.entailment import Entailment
from quit.qa.sunar.mer import MetaReasoner
from quit.qa.sunar.planners import Hop, Planner, Stop
from quit.qa.sunar.queries import Query
from quit.qa.sunar.reading import AnswerModel, counting_replies
from quit.qa.sunar.retrieval import Evidence, Retrieval, SearchStack
from quit.text.normalize import normalize_question


@dataclass(eq=False)
class SunarSystem:
    """SUNAR, or one of its ablations.

    ``entailment`` None is -ASU, ``reasoner`` None is -MER, a retrieval without graph is plain re-ranking, a planner
    that asks nothing is retrieve-and-read.
    """

    library: SearchStack
    planner: Planner
    reader: AnswerModel
    entailment: Entailment | None
    reasoner: MetaReasoner | None
    settings: Sunar

    def __post_init__(self) -> None:
        self._retrieval = Retrieval(self.library, self.settings)

    def answer(self, query: Query) -> dict[str, Any]:
        """Return the trace of one question, always the same: every step, the evidence, ``prediction``, and ``replies``:
        what language models were asked (:data:`quit.qa.sunar.reading.COUNTS`)."""
        with counting_replies() as replies:
            trace = self._answer(query)
        return trace | {"replies": dict(replies)}

    def _answer(self, query: Query) -> dict[str, Any]:
        path, steps, evidences, stop = self._decompose(query)
        if not path:
            evidence, step = self._step(query, query.text)
            steps, evidences = [step], [evidence]
        elif self.planner.reads_last:
            answer = self.reader.answer(query.text, self.planner.collected(path))
            stop = stop if answer == NO_ANSWER else replace(stop, answer=answer)
        pool = list(dict.fromkeys(row for each in evidences for row in each.rows))
        top = self.settings.top
        ranking = _turns(evidences, top) if len(evidences) > 1 else pool
        prediction, source = self._conclusion(path, steps, stop)
        reasoned: dict[str, Any] | None = None
        if self.reasoner is not None:
            documents = _turns(evidences, self.settings.mer_documents or top)
            documents = (self._by_score(query, documents) if len(evidences) > 1 else documents)[:top]
            meta = self.reasoner.reason(query.text, path, self._texts(documents))
            reasoned = {"answer": meta.answer, "raw": meta.raw, "evidence": self.library.documents.ids(documents)}
            if meta.answer is not None:
                prediction, source = meta.answer, "mer"
        return {
            "query_id": query.query_id,
            "question": query.text,
            "answers": list(query.answers),
            "kind": query.kind,
            "relevant": dict(sorted((query.relevant or {}).items())),
            "planner": self.planner.name,
            "steps": steps,
            "ended": {"reason": stop.reason, "answer": stop.answer, "raw": stop.raw},
            "pool": self.library.documents.ids(pool),
            "evidence": self.library.documents.ids(ranking),
            "mer": reasoned,
            "prediction": prediction,
            "prediction_from": source,
        }

    def _decompose(self, query: Query) -> tuple[list[Hop], list[dict[str, Any]], list[Evidence], Stop]:
        path: list[Hop] = []
        steps: list[dict[str, Any]] = []
        evidences: list[Evidence] = []
        keys: set[str] = set()
        while len(path) < self.settings.max_hops:
            move = self.planner.next(query, path)
            if isinstance(move, Stop):
                return path, steps, evidences, move
            key = normalize_question(move.sub_question)
            if key in keys and move.answer is None:
                return path, steps, evidences, Stop("a sub-question was repeated", raw=move.raw)
            keys.add(key)
            texts: list[str] = []
            if move.answer is None:
                evidence, step = self._step(query, move.sub_question, with_answer=not self.planner.reads_last)
                evidences.append(evidence)
                texts = self._texts(evidence.rows[: self.settings.top])
            else:
                step = {"sub_question": move.sub_question, "answer": move.answer, "read": [], "first_stage": 0}
            path.append(Hop(move.sub_question, step["answer"], move.raw, tuple(texts)))
            steps.append(step | {"raw": move.raw})
        return path, steps, evidences, Stop("max_hops was reached")

    def _step(self, query: Query, sub_question: str, with_answer: bool = True) -> tuple[Evidence, dict[str, Any]]:
        settings, rescore = self.settings, None
        if self.entailment is not None:
            rescore = asu(sub_question, self._texts, self.reader, self.entailment, settings)
        evidence = self._retrieval.evidence(query, sub_question, rescore)
        rows = evidence.rows[: settings.top]
        answer = self.reader.answer(sub_question, self._texts(rows)) if with_answer else ""
        names = self.library.documents.ids(rows)
        return evidence, {"sub_question": sub_question, "answer": answer, "read": names, **evidence.trace}

    def _by_score(self, query: Query, rows: list[int]) -> list[int]:
        """Return documents by their score for the original question, ties by document id; where nothing is scored, as
        they are."""
        if self.settings.retrieval in ("first", "gold"):
            return rows
        scores = self.library.scorer.score(query.text, self._texts(rows)).tolist()
        names = self.library.documents.ids(rows)
        return [row for _, _, row in sorted(zip((-score for score in scores), names, rows, strict=True))]

    def _conclusion(self, path: list[Hop], steps: list[dict[str, Any]], stop: Stop) -> tuple[str, str]:
        """Return the answer without MER (the planner's, or the last sub-answer), and where it comes from."""
        if path and stop.answer is not None:
            return stop.answer, "planner"
        answers = [step["answer"] for step in steps if step["read"] and step["answer"] not in ("", NO_ANSWER)]
        return (answers[-1], "sub-answer") if answers else (NO_ANSWER, "nothing")

    def _texts(self, rows: Sequence[int]) -> list[str]:
        return self.library.documents.texts(rows) if len(rows) else []


def _turns(evidences: Sequence[Evidence], count: int) -> list[int]:
    """Return the first document of each sub-question, then the second, up to ``count``: one rule for all variants."""
    turns = zip_longest(*(each.rows[:count] for each in evidences))
    return list(dict.fromkeys(row for turn in turns for row in turn if row is not None))
