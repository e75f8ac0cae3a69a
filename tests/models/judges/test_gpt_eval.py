"""What the judge makes of replies, and what it asks for."""

import pytest

from quit.models.generation import ChatRequest
from quit.models.judges import GptEvalJudge, rule
from quit.models.judges.gpt_eval import parse_verdict
from quit.models.prompting import load_prompt
from quit.models.protocols import JudgeItem
from tests.systems.scripted import scripted

VERDICTS = {
    True: ["Yes", "yes.", '"Yes"', "**Yes**, it is.", "YES\n"],
    False: ["No", " no, it is not"],
    None: ["Not sure", "Yesterday", "None", "The candidate is correct", ""],
}


@pytest.mark.parametrize(("reply", "verdict"), [(reply, each) for each in VERDICTS for reply in VERDICTS[each]])
def test_only_what_starts_with_yes_or_no_is_a_verdict(reply: str, verdict: bool | None) -> None:
    assert parse_verdict(reply) is verdict


def _judge(asked: list[ChatRequest], **replies: list[str]) -> GptEvalJudge:
    """A judge whose replies are given by candidate and attempt: a real one's odd replies cannot be had to order."""

    def reply(request: ChatRequest) -> str:
        asked.append(request)
        return replies[request.fields["candidate"]][request.sample]

    return GptEvalJudge("gpt-eval", scripted(reply), load_prompt("judge"), attempts=3)


def _items(*candidates: str) -> list[JudgeItem]:
    return [JudgeItem("q1", "Which city?", ("Paris", "City of Light"), candidate) for candidate in candidates]


def test_an_unreadable_reply_is_asked_for_again_and_then_stays_unread() -> None:
    asked: list[ChatRequest] = []
    judge = _judge(asked, Lyon=["No"], Lutetia=["Hmm", "Yes"], Nice=["Hmm", "Well", "So so"])
    verdicts = judge.verdicts(_items("Lyon", "Lutetia", "Nice"))
    assert [verdict.correct for verdict in verdicts] == [False, True, None]
    assert verdicts[2].raw == "So so"
    assert len(asked) == 1 + 2 + 3


def test_exact_matches_and_no_answer_cost_nothing() -> None:
    asked: list[ChatRequest] = []
    rulings = rule(_items("the city of light", "NO ANSWER", "PARIS!", "Lyon"), _judge(asked, Lyon=["No"]))
    assert [ruling.basis for ruling in rulings] == ["exact", "no_answer", "exact", "model"]
    assert [ruling.verdict.correct for ruling in rulings] == [True, False, True, False]
    assert [request.fields["candidate"] for request in asked] == ["Lyon"]


def test_all_gold_answers_are_in_the_prompt() -> None:
    asked: list[ChatRequest] = []
    _judge(asked, Lyon=["No"]).verdicts(_items("Lyon"))
    assert [request.messages()[0]["content"] for request in asked] == [
        "Question: Which city?\nAnswer: Paris; City of Light\nCandidate: Lyon\n"
        'Is candidate correct? Choose between "Yes" or "No"'
    ]
