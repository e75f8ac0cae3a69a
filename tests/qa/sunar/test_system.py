"""The system on a corpus of six documents: hops, ablations, and models and inputs that misbehave."""

from collections.abc import Sequence
from math import log2
from types import SimpleNamespace

import pytest

from quit.models.protocols import NO_ANSWER
from quit.qa.settings import Sunar
from quit.qa.sunar.compare import significance
from quit.qa.sunar.entailment import EquivalentAnswers
from quit.qa.sunar.mer import LanguageModelReasoner, LastAnswer
from quit.qa.sunar.planners import GoldPlan, NoPlan, ReAct, SelfAsk
from quit.qa.sunar.queries import Query
from quit.qa.sunar.reading import LanguageModelAnswers
from quit.qa.sunar.retrieval import SearchStack
from quit.qa.sunar.scores import scores
from quit.qa.sunar.system import SunarSystem
from tests.qa.scripted import WordOverlap, plain
from tests.qa.sunar.small import Edges, asker
from tests.qa.sunar.test_asu import ONE_WAY

TEXTS = [
    "Ivanhoe was written by Walter Scott.",
    "Walter Scott was born in Edinburgh.",
    "Edinburgh lies on the Firth of Forth.",
    "Waverley was written by the same man.",
    "The castle stands on a rock.",
    "Nothing of the kind.",
]
GRAPH = Edges({0: [3, 1], 1: [2, 0], 2: [4], 3: [0]}, len(TEXTS))
PARTS = ("Who was Ivanhoe written by?", "Where was Walter Scott born?")
QUERY = Query("q1", "Where was the author of Ivanhoe born?", ("Edinburgh",), PARTS)


def _found(question: str, texts: Sequence[str]) -> str:
    pairs = (("written", TEXTS[0], "Walter Scott"), ("born", TEXTS[1], "Edinburgh"))
    return next((answer for word, text, answer in pairs if word in question and text in texts), NO_ANSWER)


FINDS = SimpleNamespace(  # a reader that knows two answers, if the document is there
    identity="finds", answer=_found, samples=lambda question, texts, m: [_found(question, texts)] * m
)


def _stack() -> SearchStack:
    stage = WordOverlap(plain(TEXTS))
    return SearchStack(plain(TEXTS), stage, GRAPH, stage)


def _system(stack=None, *, kind="nar", planner=None, reader=None, asu=False, reasoner=None, **more) -> SunarSystem:
    parts = planner or GoldPlan(), reader or FINDS, EquivalentAnswers(ONE_WAY) if asu else None, reasoner
    return SunarSystem(
        stack or _stack(), *parts, Sunar(**{"retrieval": kind, "b": 2, "m": 3, "feedback_documents": 1, **more})
    )


def test_two_hops_by_a_gold_plan() -> None:
    for asu in (True, False):
        trace = _system(asu=asu).answer(QUERY)
        answers = [(step["sub_question"], step["answer"]) for step in trace["steps"]]
        assert answers == list(zip(PARTS, ("Walter Scott", "Edinburgh"), strict=True))
        assert (trace["prediction"], trace["prediction_from"]) == ("Edinburgh", "sub-answer")
        assert trace["ended"]["reason"] == "the decomposition is done"
        assert trace["steps"][0]["batches"][0]["pool"] == "R" and trace["mer"] is None
        assert set(trace["evidence"]) <= set(trace["pool"])
        for batch in (batch for step in trace["steps"] for batch in step["batches"]):
            assert ("s" in batch) == asu == (batch["scores"] != batch["rescored"])
    trace = _system(max_hops=0).answer(QUERY)
    assert [(step["sub_question"], step["answer"]) for step in trace["steps"]] == [(QUERY.text, "Edinburgh")]


def test_the_graph_brings_in_what_the_first_stage_missed() -> None:
    query = Query("q", "Ivanhoe?")
    plain, found = (_system(kind=kind, planner=NoPlan()).answer(query) for kind in ("rerank", "nar"))
    assert plain["pool"] == ["d0"]
    assert set(found["pool"]) == {"d0", "d1", "d2", "d3", "d4"}
    assert [batch["pool"] for batch in found["steps"][0]["batches"]] == ["R", "N", "N", "N"]


def test_the_first_stage_alone_scores_nothing_and_takes_turns() -> None:
    stack = _stack()
    trace = _system(stack, kind="first").answer(QUERY)
    assert not stack.scorer.scored
    assert trace["prediction"] == "Edinburgh" and "batches" not in trace["steps"][0]
    # By shared words: d0 (4), d3 (3), d1 (1); then d1 (4), d0 (3), d3 (1).
    assert [step["read"] for step in trace["steps"]] == [["d0", "d3", "d1"], ["d1", "d0", "d3"]]
    assert trace["evidence"] == ["d0", "d1", "d3"]


def test_evidence_takes_turns_in_every_variant_and_the_reasoner_reads_it_by_score() -> None:
    stack = _stack()
    trace = _system(stack, kind="rerank", reasoner=LastAnswer(FINDS)).answer(QUERY)
    first, second = (step["read"] for step in trace["steps"])
    turns = [document for pair in zip(first, second, strict=True) for document in pair]
    assert trace["evidence"] == list(dict.fromkeys(turns))
    # For the original question, document 1 shares "was" and "born", 0 "was" and "Ivanhoe"; ids break the tie.
    assert QUERY.text in stack.scorer.scored and trace["mer"]["evidence"][:2] == ["d0", "d1"]


def test_the_reasoner_gets_the_first_documents_of_each_sub_question() -> None:
    trace = _system(kind="first", reasoner=LastAnswer(FINDS), mer_documents=1).answer(QUERY)
    assert [step["read"] for step in trace["steps"]] == [["d0", "d3", "d1"], ["d1", "d0", "d3"]]
    assert trace["mer"]["evidence"] == ["d0", "d1"] and trace["evidence"] == ["d0", "d1", "d3"]
    trace = _system(planner=NoPlan(), reasoner=LastAnswer(FINDS), mer_documents=2).answer(QUERY)
    assert trace["mer"]["evidence"] == trace["evidence"][:2] and len(trace["evidence"]) > 2


def test_the_whole_questions_ranking_is_scored_for_each_sub_question() -> None:
    stack = _stack()
    trace = _system(stack, kind="first", initial="question").answer(QUERY)
    # All share two words with the question ("Ivanhoe was", "was born", ...), d4 one: "the".
    assert [step["read"] for step in trace["steps"]] == [["d0", "d1", "d2", "d3", "d5", "d4"]] * 2
    _system(stack, kind="rerank", initial="question").answer(QUERY)
    assert stack.scorer.scored == set(PARTS)


def test_feedback_expands_the_query_that_documents_are_scored_for() -> None:
    stack = _stack()
    _system(stack, kind="prf", planner=NoPlan()).answer(Query("q", "Ivanhoe?"))
    assert stack.scorer.scored == {f"Ivanhoe? {TEXTS[0]}"}
    stack = _stack()
    gold = Query("q", "written born?", relevant={"d1": 1, "d5": 1})
    _system(stack, kind="prf", planner=NoPlan(), feedback_documents=0).answer(gold)
    assert stack.scorer.scored == {f"written born? {TEXTS[1]}"}


def test_run_and_comparison_grade_documents_alike() -> None:
    graded = Query("q", "written born?", relevant={"d1": 2, "d0": 1})
    trace = _system(kind="first", planner=NoPlan(), top=2).answer(graded)
    assert trace["evidence"][:2] == ["d0", "d1"]
    by_hand = (1 + 2 / log2(3)) / (2 + 1 / log2(3))
    assert scores([trace])["nDCG@10"] == pytest.approx(by_hand, abs=1e-6)
    assert significance([trace], [trace])["nDCG@10"].before == pytest.approx(by_hand)


@pytest.mark.parametrize("kind", ["nar", "rerank", "prf", "first"])
def test_an_empty_ranking_gives_no_evidence_and_no_answer(kind: str) -> None:
    trace = _system(kind=kind, planner=NoPlan(), asu=True, reasoner=LastAnswer(FINDS)).answer(Query("q", "Zebra?"))
    assert trace["pool"] == trace["evidence"] == trace["steps"][0]["read"] == []
    assert trace["prediction"] == NO_ANSWER


@pytest.mark.parametrize("name", ["c", "first", "top"])
def test_with_no_budget_nothing_is_read_and_nothing_answered(name: str) -> None:
    trace = _system(**{name: 0}).answer(QUERY)
    assert trace["prediction"] == NO_ANSWER and len(trace["steps"]) == 2
    assert all(step["read"] == [] and step["answer"] == NO_ANSWER for step in trace["steps"])


def _asked(plan, meta: str | None = None, **more):
    """The trace of a language model that plans by a function of the hops so far, and its requests for the meta
    reasoner, which is left out without ``meta``."""

    def reply(request):
        if request.template.name == "self_ask_musique":
            return plan(request.messages()[-1]["content"].rpartition("\nQuestion: ")[2].count("Intermediate Answer"))
        return meta if request.template.name == "meta_reasoner_musique" else "an answer"

    planner, reader = SelfAsk(asker("self_ask_musique", reply)[0]), LanguageModelAnswers(asker("sub_answer", reply)[0])
    reasoner, model = asker("meta_reasoner_musique", reply)
    reasons = LanguageModelReasoner(reasoner) if meta else None
    return _system(planner=planner, reader=reader, reasoner=reasons, **more).answer(QUERY), model.requests


@pytest.mark.parametrize(
    ("plan", "hops", "reason"),
    [
        (lambda hops: f"Follow up: Who was number {hops}?", 4, "max_hops was reached"),
        (lambda hops: "Follow up: Who was it" + "?" * (hops + 1), 1, "a sub-question was repeated"),
    ],
)
def test_a_model_that_never_stops_asking_or_repeats_itself_is_stopped(plan, hops: int, reason: str) -> None:
    trace, _ = _asked(plan, max_hops=4)
    assert (len(trace["steps"]), trace["ended"]["reason"]) == (hops, reason)
    assert (trace["prediction"], trace["prediction_from"]) == ("an answer", "sub-answer")


def test_a_model_that_rambles_degrades_to_retrieve_and_read() -> None:
    trace, requests = _asked(lambda hops: "Well, you see, it all depends." * 50, "[Final Answer]: meta")
    assert [step["sub_question"] for step in trace["steps"]] == [QUERY.text]
    assert (trace["prediction"], trace["prediction_from"]) == ("meta", "mer")
    assert "Existing steps:\n(none)" in requests[0].messages()[-1]["content"]


@pytest.mark.parametrize("meta", ["[Answer]: hm", None])
def test_without_a_word_of_the_reasoner_the_planner_has_the_last(meta: str | None) -> None:
    trace, _ = _asked(lambda hops: "[Final Answer]: Leith" if hops else "Follow up: Who?", meta)
    assert (trace["prediction"], trace["prediction_from"]) == ("Leith", "planner")
    assert trace["mer"] == ({"answer": None, "raw": meta, "evidence": []} if meta else None)


def test_the_reasoner_sees_the_path_and_evidence_of_all_hops() -> None:
    reasoner, model = asker("meta_reasoner_musique", lambda request: "[Answer]: so.\n[Final Answer]: Leith")
    trace = _system(reasoner=LanguageModelReasoner(reasoner)).answer(QUERY)
    shown = model.requests[0].messages()[-1]["content"]
    assert "1. Who was Ivanhoe written by? Walter Scott\n2. Where was Walter Scott born? Edinburgh" in shown
    assert TEXTS[0] in shown and TEXTS[1] in shown and trace["prediction"] == "Leith"


def test_react_looks_up_without_retrieving() -> None:
    replies = iter(["Who?\nAction 1: Search[Who was Ivanhoe written by?]", "Lookup[Walter]", "Finish[Walter Scott]"])
    planner, model = asker("react", lambda request: next(replies))
    trace = _system(planner=ReAct(planner), kind="rerank").answer(QUERY)
    search, look_up = trace["steps"]
    assert (look_up["sub_question"], look_up["read"]) == ("Lookup[Walter]", [])
    assert look_up["answer"] == f"(Result 1 / 2) {TEXTS[0]}" and "d1" in search["read"]
    assert (trace["prediction"], trace["prediction_from"]) == ("Walter Scott", "planner")
    assert trace["evidence"] == trace["pool"] == search["read"]
    assert "Thought 1: Who?\nAction 1: Search[" in model.requests[2].messages()[-1]["content"]


def test_samples_are_asked_for_with_their_numbers_and_the_papers_penalties() -> None:
    reader, model = asker("sub_answer", lambda request: f"answer {request.sample % 2}")
    system = _system(reader=LanguageModelAnswers(reader), asu=True, planner=NoPlan(), kind="rerank")
    trace = system.answer(Query("q", "Ivanhoe?"))
    sampled = [request for request in model.requests if request.temperature]
    assert [request.sample for request in sampled] == [0, 1, 2]
    assert {(r.temperature, r.frequency_penalty, r.presence_penalty) for r in sampled} == {(0.3, 0.8, 0.6)}
    # "answer 0" and "answer 1" have one length, so the stand-in for entailment takes them for the same.
    assert trace["steps"][0]["batches"][0]["s"] == 1
