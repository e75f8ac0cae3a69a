"""What the judge makes of replies, and what it asks for."""

from collections.abc import Sequence

import pytest

from quit.models.generation import CachedGenerator, ChatRequest, Completion
from quit.models.generation.base import Done
from quit.models.judges import GptEvalJudge, rule
from quit.models.judges.gpt_eval import parse_verdict
from quit.models.prompting import load_prompt
from quit.models.protocols import JudgeItem


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Yes", True),
        ("yes.", True),
        ('"Yes"', True),
        ("**Yes**, it is.", True),
        ("YES\n", True),
        ("No", False),
        (" no, it is not", False),
        ("Not sure", None),
        ("Yesterday", None),
        ("None", None),
        ("The candidate is correct", None),
        ("", None),
    ],
)
def test_only_what_starts_with_yes_or_no_is_a_verdict(reply: str, verdict: bool | None) -> None:
    assert parse_verdict(reply) is verdict


class Scripted:
    """Replies by (candidate, number of the attempt); a real judge's odd replies cannot be had to order."""

    name = identity = "scripted"

    def __init__(self, replies: dict[str, list[str]]) -> None:
        self.replies = replies
        self.asked: list[str] = []

    def generate(self, requests: Sequence[ChatRequest], done: Done) -> None:
        for place, request in enumerate(requests):
            candidate = request.fields["candidate"]
            self.asked.append(candidate)
            done(place, Completion(self.replies[candidate][self.asked.count(candidate) - 1], "stop"))


def _items(*candidates: str) -> list[JudgeItem]:
    return [JudgeItem("q1", "Which city?", ("Paris", "City of Light"), candidate) for candidate in candidates]


def test_an_unreadable_reply_is_asked_for_again_and_then_stays_unread() -> None:
    scripted = Scripted({"Lyon": ["No"], "Lutetia": ["Hmm", "Yes"], "Nice": ["Hmm", "Well", "So so"]})
    judge = GptEvalJudge("gpt-eval", CachedGenerator(scripted, None), load_prompt("judge"), attempts=3)
    verdicts = judge.verdicts(_items("Lyon", "Lutetia", "Nice"))
    assert [verdict.correct for verdict in verdicts] == [False, True, None]
    assert verdicts[2].raw == "So so"
    assert sorted(scripted.asked) == ["Lutetia", "Lutetia", "Lyon", "Nice", "Nice", "Nice"]


def test_exact_matches_and_no_answer_cost_nothing() -> None:
    scripted = Scripted({"Lyon": ["No"]})
    judge = GptEvalJudge("gpt-eval", CachedGenerator(scripted, None), load_prompt("judge"))
    rulings = rule(_items("the city of light", "NO ANSWER", "PARIS!", "Lyon"), judge)
    assert [ruling.basis for ruling in rulings] == ["exact", "no_answer", "exact", "model"]
    assert [ruling.verdict.correct for ruling in rulings] == [True, False, True, False]
    assert scripted.asked == ["Lyon"]


def test_all_gold_answers_stand_in_the_prompt() -> None:
    seen: list[str] = []

    class Recorder(Scripted):
        def generate(self, requests: Sequence[ChatRequest], done: Done) -> None:
            seen.extend(request.messages()[0]["content"] for request in requests)
            super().generate(requests, done)

    judge = GptEvalJudge("g", CachedGenerator(Recorder({"Lyon": ["No"]}), None), load_prompt("judge"))
    judge.verdicts(_items("Lyon"))
    assert seen == [
        "Question: Which city?\nAnswer: Paris; City of Light\nCandidate: Lyon\n"
        'Is candidate correct? Choose between "Yes" or "No"'
    ]
