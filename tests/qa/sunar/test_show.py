"""A trace for people, by hand."""

from quit.qa.sunar.show import lines
from quit.qa.sunar.trace import BatchTrace, Trace, Uncertainty


def _trace(uncertainty: Uncertainty) -> Trace:
    first: BatchTrace = {
        "pool": "R", "documents": ["a", "b"], "scores": [2.0, 1.0], "rescored": [0.5, 0.25], **uncertainty,
    }  # fmt: skip
    near: BatchTrace = {"pool": "N", "documents": ["c"], "scores": [3.0], "rescored": [3.0], "parents": ["a"]}
    return {
        "query_id": "q", "question": "Who?", "answers": ["X", "Y"], "kind": None, "relevant": {"a": 1, "c": 1},
        "planner": "gold", "ended": {"reason": "the decomposition is done", "answer": None, "raw": ""},
        "steps": [{"sub_question": "Which?", "answer": "X", "read": ["c", "b"], "first_stage": 2,
                   "batches": [first, near]}],
        "pool": ["a", "b", "c"], "evidence": ["c", "b"], "mer": None, "prediction": "X",
        "prediction_from": "sub-answer", "replies": {},
    }  # fmt: skip


def test_relevant_documents_are_marked_and_neighbours_have_their_parent() -> None:
    text = lines(_trace({}))
    assert text == [
        "question: Who?", "gold: X; Y", "planner: gold", "", "1. Which?", "   answer: X",
        "   first stage: 2 documents; read: c* b", "   batch 0 from R", "      a*  2.000 -> 0.500",
        "      b  1.000 -> 0.250", "   batch 1 from N", "      c*  3.000 -> 3.000  < a*", "",
        "ended: the decomposition is done", "relevant documents in the pool: 2 of 2; evidence: c* b",
        "prediction: X (from sub-answer)",
    ]  # fmt: skip


def test_sampled_answers_are_shown_by_meaning_or_as_they_are() -> None:
    """``sunar.divisor``: sets of one meaning; or contradictions, of which a trace has the answers alone."""
    sets = lines(_trace({"s": 2, "sets": [["X", "an X"], ["Y"]]}))
    assert "   batch 0 from R, s = 2: 2 x 'X'; 1 x 'Y'" in sets
    answers = lines(_trace({"s": 0.5, "answers": ["X", "Y", "X"]}))
    assert "   batch 0 from R, s = 0.5: 2 x 'X'; 1 x 'Y'" in answers
