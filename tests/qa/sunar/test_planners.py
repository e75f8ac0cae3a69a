"""Planners read what a scripted language model says, however badly it says it."""

import pytest

from quit.qa.sunar import planners
from quit.qa.sunar.planners import Ask, Decomp, GoldPlan, Hop, IRCoT, NoPlan, ReAct, SearChain, SelfAsk, Stop
from quit.qa.sunar.queries import Query
from tests.qa.sunar.small import asker
from tests.rows import cases

QUERY = Query("q", "Where was the founder of X born?")
PATH = [Hop("Who founded X?", "Ada Byron")]


def _move(planner, reply: str, path=()):
    """The planner's move after a path, given a reply, and the last message that the model was shown."""
    made, model = asker(PROMPTS[planner], lambda request: reply)
    move = planner(made).next(QUERY, list(path))
    [request] = model.requests
    return move, request, request.messages()[-1]["content"]


MOVES = cases(__file__, "planners.jsonl")
"""Planner, reply (some are SmolLM2-135M's), and how that ends the plan, or nothing where it asks; answer or
sub-question."""
PROMPTS = {SelfAsk: "self_ask_musique", ReAct: "react", SearChain: "searchain", Decomp: "decomp", IRCoT: "ircot_2wiki"}


@pytest.mark.parametrize(("name", "reply", "reason", "text"), MOVES)
def test_a_reply_is_a_sub_question_or_an_end(name: str, reply: str, reason: str | None, text: str | None) -> None:
    """Self-Ask: the last follow-up before an intermediate answer."""
    expected = Stop(reason, text, reply) if reason else Ask(text, reply)
    assert _move(getattr(planners, name), reply, PATH if reason else ())[0] == expected


def test_self_ask_shows_the_path_and_asks_greedily_with_a_stop_string() -> None:
    _, request, shown = _move(SelfAsk, "x", PATH)
    assert shown.endswith(
        "\n\nQuestion: Where was the founder of X born?\nAre follow up questions needed here: Yes.\n"
        "Follow up: Who founded X?\nIntermediate Answer: Ada Byron"
    )
    assert request.stop == ("Intermediate Answer:",) and request.temperature == 0.0
    assert (request.frequency_penalty, request.presence_penalty, request.max_tokens) == (0.8, 0.6, 50)


SEARCHED = Hop(
    "Who founded X?",
    "Ada Byron",
    "Thought 1: I need the founder.\nAction 1: Search[Who founded X?]",
    ("X was founded by Ada Byron. She was born in Leith.", "Ada Byron was born again in 1990."),
)


def test_react_looks_up_sentence_after_sentence_in_what_was_found_last() -> None:
    path = [SEARCHED]
    for expected in ("(Result 1 / 2) She was born in Leith.", "(Result 2 / 2) Ada Byron was born again in 1990.",
                     "No more results."):  # fmt: skip
        reply = f"Where?\nAction {len(path) + 1}: Lookup[born]"
        move, *_ = _move(ReAct, reply, path)
        assert move == Ask("Lookup[born]", reply, expected)
        path.append(Hop(move.sub_question, move.answer, move.raw))
    move, *_ = _move(ReAct, "Lookup[BORN]", [*path, SEARCHED])
    assert move.answer == "(Result 1 / 2) She was born in Leith.", "a new search starts from the top"
    _, _, shown = _move(ReAct, "Finish[Leith]", path[:2])
    assert shown.endswith(
        "[1] X was founded by Ada Byron. She was born in Leith.\n[2] Ada Byron was born again in 1990.\n\n"
        "Question: Where was the founder of X born?\n"
        "Thought 1: I need the founder.\nAction 1: Search[Who founded X?]\nObservation 1: Ada Byron\n"
        "Thought 2: Where?\nAction 2: Lookup[born]\nObservation 2: (Result 1 / 2) She was born in Leith.\nThought 3:"
    )
    _, request, shown = _move(ReAct, "Finish[Leith]")
    assert request.stop == ("Observation",) and shown.endswith("Thought 1:")


def test_ircot_retrieves_for_the_question_and_then_for_each_sentence(monkeypatch) -> None:
    monkeypatch.setattr(planners, "IRCOT_STEP", 1)
    monkeypatch.setattr(planners, "IRCOT_MAX", 2)
    made, model = asker("ircot_musique", lambda request: "X was founded by Ada Byron. She was born in Leith.")
    planner = IRCoT(made)
    assert planner.next(QUERY, []) == Ask(QUERY.text) and not model.requests
    path = [Hop(QUERY.text, "", texts=("one", "left out")), Hop("X is a club.", "", texts=("one",))]
    path.append(Hop("X is old.", "", texts=("two",)))
    move = planner.next(QUERY, path)
    assert move == Ask("X was founded by Ada Byron.", "X was founded by Ada Byron. She was born in Leith.")
    shown = model.requests[0].messages()[-1]["content"]
    evidence, reasoning = "Evidence:\n[1] one\n[2] two\n", "Reasoning: X is a club. X is old."
    assert shown.endswith(f"{evidence}Question: Where was the founder of X born?\n{reasoning}")
    assert planner.collected([*path, Hop("More.", "", texts=("three",))]) == ["one", "two"]


def test_decomp_asks_and_shows_answers_and_documents() -> None:
    reply = " (select) [retrieve odqa] Where was Ada Byron born? \nAnswer: Leith\n[Final Answer]: Leith"
    move, _, shown = _move(Decomp, reply, [SEARCHED])
    assert move == Ask("Where was Ada Byron born?", reply)
    assert shown.endswith(
        "[2] Ada Byron was born again in 1990.\n[Question]: Where was the founder of X born?\n"
        'Subquestion 1: (select) [retrieve odqa] Who founded X?\nAnswer: "answer": ["Ada Byron"]\nSubquestion 2:'
    )


def test_searchain_retrieves_for_the_first_query_that_was_not_retrieved_for() -> None:
    chain = "[Query 1]: Who founded X?\n[Answer 1]: Bob\n[Query 2]: Where was Bob born?\n[Final Answer]: Rome"
    move, _, shown = _move(SearChain, chain, PATH)
    assert move == Ask("Where was Bob born?", chain) and "[Query 1]: Who founded X?\n[Answer 1]: Ada Byron" in shown


def test_the_gold_plan_is_the_corpus_own_and_then_ends() -> None:
    query = Query("q", "?", sub_questions=("one?", "two?"))
    plan = GoldPlan()
    assert plan.next(query, []) == Ask("one?")
    assert plan.next(query, [Hop("one?", "1")]) == Ask("two?")
    assert plan.next(query, [Hop("one?", "1"), Hop("two?", "2")]) == Stop("the decomposition is done")
    assert plan.next(Query("q", "?"), []) == Stop("no decomposition is known")
    assert NoPlan().next(query, []) == Stop("no plan")
