"""SUNAR put together: plan, retrieve, answer, look back (the SUNAR paper, section 3, figure 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from quit.models.protocols import NO_ANSWER
from quit.qa.settings import Sunar
from quit.qa.sunar.asu import asu
from quit.qa.sunar.entailment import Entailment
from quit.qa.sunar.mer import MetaReasoner
from quit.qa.sunar.planners import Hop, Planner, Stop
from quit.qa.sunar.queries import Query
from quit.qa.sunar.reading import AnswerModel, counting_replies
from quit.qa.sunar.retrieval import Evidence, Retrieval, SearchStack
from quit.qa.sunar.trace import ReasonerTrace, SearchTrace, StepTrace, Trace
from quit.text.normalize import normalize_question


@dataclass(frozen=True, slots=True)
class Step:
    """A sub-question and its answer, and the evidence for it: None where it was known without retrieval. ``read_ids``:
    of the documents that were read."""

    hop: Hop
    read_ids: list[str]
    evidence: Evidence | None

    def to_dict(self, is_planned: bool) -> StepTrace:
        """Return it as a trace has it."""
        search: SearchTrace = self.evidence.trace if self.evidence else {"first_stage": 0}
        hop = self.hop
        trace: StepTrace = {"sub_question": hop.sub_question, "answer": hop.answer, "read": self.read_ids, **search}
        return {**trace, "raw": hop.raw} if is_planned else trace


@dataclass(frozen=True, slots=True)
class Decomposition:
    """The steps of a plan, and why it ended."""

    steps: list[Step]
    stop: Stop

    @property
    def path(self) -> list[Hop]:
        """The sub-questions and their answers."""
        return [step.hop for step in self.steps]


@dataclass(eq=False)
class SunarSystem:
    """SUNAR, or one of its ablations.

    ``entailment`` None is -ASU, ``reasoner`` None is -MER, a retrieval without graph is plain re-ranking, a planner
    that asks nothing is retrieve-and-read.
    """

    stack: SearchStack
    planner: Planner
    reader: AnswerModel
    entailment: Entailment | None
    reasoner: MetaReasoner | None
    settings: Sunar

    def __post_init__(self) -> None:
        self._retrieval = Retrieval(self.stack, self.settings)

    def answer(self, query: Query) -> Trace:
        """Return the trace of one question, always the same."""
        with counting_replies() as replies:
            return self._answer(query, replies)

    def _answer(self, query: Query, replies: Counter[str]) -> Trace:
        plan = self._decompose(query)
        path, stop = plan.path, plan.stop
        steps = plan.steps or [self._step(query, query.text)]
        if path and self.planner.reads_last:
            answer = self.reader.answer(query.text, self.planner.collected(path))
            stop = stop if answer == NO_ANSWER else replace(stop, answer=answer)
        evidences = [step.evidence for step in steps if step.evidence is not None]
        pool = list(dict.fromkeys(row for each in evidences for row in each.rows))
        top = self.settings.top
        ranking = _turns(evidences, top) if len(evidences) > 1 else pool
        prediction, source = self._conclusion(path, steps, stop)
        reasoned: ReasonerTrace | None = None
        if self.reasoner is not None:
            documents = _turns(evidences, self.settings.mer_documents or top)
            documents = (self._retrieval.by_score(query, documents) if len(evidences) > 1 else documents)[:top]
            meta = self.reasoner.reason(query.text, path, self.stack.documents.texts(documents))
            reasoned = {"answer": meta.answer, "raw": meta.raw, "evidence": self.stack.documents.ids(documents)}
            if meta.answer is not None:
                prediction, source = meta.answer, "mer"
        return {
            "query_id": query.query_id,
            "question": query.text,
            "answers": list(query.answers),
            "kind": query.kind,
            "relevant": dict(sorted((query.relevant or {}).items())),
            "planner": self.planner.name,
            "steps": [step.to_dict(bool(path)) for step in steps],
            "ended": {"reason": stop.reason, "answer": stop.answer, "raw": stop.raw},
            "pool": self.stack.documents.ids(pool),
            "evidence": self.stack.documents.ids(ranking),
            "mer": reasoned,
            "prediction": prediction,
            "prediction_from": source,
            "replies": dict(replies),
        }

    def _decompose(self, query: Query) -> Decomposition:
        plan = Decomposition([], Stop("max_hops was reached"))
        keys: set[str] = set()
        while len(plan.steps) < self.settings.max_hops:
            move = self.planner.next(query, plan.path)
            if isinstance(move, Stop):
                return replace(plan, stop=move)
            key = normalize_question(move.sub_question)
            if key in keys and move.answer is None:
                return replace(plan, stop=Stop("a sub-question was repeated", raw=move.raw))
            keys.add(key)
            if move.answer is None:
                plan.steps.append(self._step(query, move.sub_question, move.raw, not self.planner.reads_last))
            else:
                plan.steps.append(Step(Hop(move.sub_question, move.answer, move.raw), [], None))
        return plan

    def _step(self, query: Query, sub_question: str, raw: str = "", with_answer: bool = True) -> Step:
        settings, rescore = self.settings, None
        if self.entailment is not None:
            rescore = asu(sub_question, self.stack.documents.texts, self.reader, self.entailment, settings)
        evidence = self._retrieval.evidence(query, sub_question, rescore)
        rows = evidence.rows[: settings.top]
        texts = self.stack.documents.texts(rows)
        answer = self.reader.answer(sub_question, texts) if with_answer else ""
        return Step(Hop(sub_question, answer, raw, tuple(texts)), self.stack.documents.ids(rows), evidence)

    def _conclusion(self, path: list[Hop], steps: list[Step], stop: Stop) -> tuple[str, str]:
        """Return the answer without MER (the planner's, or the last sub-answer), and where it comes from."""
        if path and stop.answer is not None:
            return stop.answer, "planner"
        answers = [step.hop.answer for step in steps if step.read_ids and step.hop.answer not in ("", NO_ANSWER)]
        return (answers[-1], "sub-answer") if answers else (NO_ANSWER, "nothing")


def _turns(evidences: Sequence[Evidence], count: int) -> list[int]:
    """Return the first document of each sub-question, then the second, up to ``count``: one rule for all variants."""
    turns = zip_longest(*(each.rows[:count] for each in evidences))
    return list(dict.fromkeys(row for turn in turns for row in turn if row is not None))
