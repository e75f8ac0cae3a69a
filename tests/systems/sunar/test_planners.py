"""Planners read what a scripted language model says, however badly it says it."""

import pytest

from quit.systems.sunar.planners import Ask, GoldPlan, Hop, NoPlan, ReAct, SearChain, SelfAsk, Stop, final_answer
from quit.systems.sunar.queries import Query
from tests.systems.sunar.small import asker

QUERY = Query("q", "Where was the founder of X born?")
PATH = [Hop("Who founded X?", "Ada Byron")]


def _move(planner, prompt: str, reply: str, path=()):
    made, model = asker(prompt, lambda request: reply)
    return planner(made).next(QUERY, list(path)), model


@pytest.mark.parametrize(
    ("reply", "asks"),
    [
        ("Yes.\nFollow up: Who founded X?", "Who founded X?"),
        ("Follow up: Who founded X?\nIntermediate Answer: Ada Byron\nFollow up: Where was she born?", "Who founded X?"),
        ("Follow up: one?\nFollow up: two?\nand more words", "two?"),
        ("follow-up: Who founded X?\n\nSome rambling", "Who founded X?"),
    ],
)
def test_self_ask_takes_the_last_follow_up_before_an_intermediate_answer(reply: str, asks: str) -> None:
    move, _ = _move(SelfAsk, "self_ask", reply)
    assert move == Ask(asks, reply)


@pytest.mark.parametrize(
    ("reply", "reason", "answer"),
    [
        ("[Final Answer]: London\nFollow up: no", "final answer", "London"),
        ("So the final answer: London.", "final answer", "London."),
        ("[Final Answer]:", "no follow-up question in the reply", None),
        ("Once upon a time there was a city.", "no follow-up question in the reply", None),
        ("Follow up:   \n", "no follow-up question in the reply", None),
        ("", "no follow-up question in the reply", None),
        ("Intermediate Answer: x\n[Final Answer]: y", "no follow-up question in the reply", None),
    ],
)
def test_self_ask_ends(reply: str, reason: str, answer: str | None) -> None:
    move, _ = _move(SelfAsk, "self_ask", reply)
    assert move == Stop(reason, answer, reply)


def test_self_ask_shows_the_path_and_asks_greedily_with_a_stop_string() -> None:
    _, model = _move(SelfAsk, "self_ask", "x", PATH)
    (request,) = model.requests
    assert request.messages()[-1]["content"] == (
        "Question: Where was the founder of X born?\nAre follow up questions needed here: Yes.\n"
        "Follow up: Who founded X?\nIntermediate Answer: Ada Byron"
    )
    assert request.stop == ("Intermediate Answer:",) and request.temperature == 0.0
    assert (request.frequency_penalty, request.presence_penalty, request.max_tokens) == (0.8, 0.6, 50)


@pytest.mark.parametrize(
    ("reply", "path", "expected"),
    [
        ("I need it.\nAction 1: Search[Who founded X?]\nObservation 1: Search[no]", (), "Who founded X?"),
        ("Action 1: Search[Who founded X?\nbroken", (), "Who founded X?"),
        ("Action 2: Lookup[birthplace]", PATH, "Who founded X? birthplace"),
        ("Action 1: Lookup[birthplace]", (), "birthplace"),
    ],
)
def test_react_asks(reply: str, path, expected: str) -> None:
    move, model = _move(ReAct, "react", reply, path)
    assert move == Ask(expected, reply)
    assert model.requests[0].stop == ("Observation",)
    assert model.requests[0].messages()[-1]["content"].endswith(f"Thought {len(path) + 1}:")


@pytest.mark.parametrize(
    ("reply", "reason", "answer"),
    [
        ("Action 3: Finish[London]", "final answer", "London"),
        ("Finish[]", "an empty Finish", None),
        ("Search[ ]", "an empty Search", None),
        ("Observation: I act on my own", "no action in the reply", None),
        ("[Final Answer]: London", "final answer", "London"),
    ],
)
def test_react_ends(reply: str, reason: str, answer: str | None) -> None:
    assert _move(ReAct, "react", reply)[0] == Stop(reason, answer, reply)


def test_searchain_retrieves_for_the_first_query_that_was_not_retrieved_for() -> None:
    chain = "[Query 1]: Who founded X?\n[Answer 1]: Bob\n[Query 2]: Where was Bob born?\n[Final Answer]: Rome"
    assert _move(SearChain, "searchain", chain)[0] == Ask("Who founded X?", chain)
    move, model = _move(SearChain, "searchain", chain, PATH)
    assert move == Ask("Where was Bob born?", chain)
    assert "[Query 1]: Who founded X?\n[Answer 1]: Ada Byron" in model.requests[0].messages()[-1]["content"]


def test_searchain_ends_when_every_query_was_retrieved_for() -> None:
    done = "[Query 1]: who founded X\n[Unsolved Query]: Who founded X?\n[Final Answer]: London"
    assert _move(SearChain, "searchain", done, PATH)[0] == Stop("final answer", "London", done)
    assert _move(SearChain, "searchain", "no idea", PATH)[0] == Stop("no new query in the reply", None, "no idea")


def test_the_gold_plan_is_the_corpus_own_and_then_ends() -> None:
    query = Query("q", "?", sub_questions=("one?", "two?"))
    plan = GoldPlan()
    assert plan.next(query, []) == Ask("one?")
    assert plan.next(query, [Hop("one?", "1")]) == Ask("two?")
    assert plan.next(query, [Hop("one?", "1"), Hop("two?", "2")]) == Stop("the decomposition is done")
    assert plan.next(Query("q", "?"), []) == Stop("no decomposition is known")
    assert NoPlan().next(query, []) == Stop("no plan")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("a [Final Answer]: b\nc", "b"),
        ("[Final Answer]: a [Final Answer]: b", "b"),
        ("finally", None),
        ("Final Answer:\n b ", "b"),
    ],
)
def test_the_final_answer_is_the_last_one_named(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer
