"""What the judge makes of replies, and what it asks for."""

import pytest

from quit.models.generation import CachedGenerator
from quit.models.judges import GptEvalJudge, parse_verdict
from quit.models.prompting import load_prompt
from quit.models.protocols import JudgeItem
from tests.systems.scripted import Scripted

VERDICTS = {
    True: ["Yes", "yes.", '"Yes"', "**Yes**, it is.", "YES\n"],
    False: ["No", " no, it is not"],
    None: ["Not sure", "Yesterday", "None", "The candidate is correct", ""],
}


@pytest.mark.parametrize(("reply", "verdict"), [(reply, each) for each in VERDICTS for reply in VERDICTS[each]])
def test_only_what_starts_with_yes_or_no_is_a_verdict(reply: str, verdict: bool | None) -> None:
    assert parse_verdict(reply) is verdict


def test_an_unreadable_reply_is_asked_for_again_and_then_stays_unread() -> None:
    replies = {"Lyon": ["No"], "Lutetia": ["Hmm", "Yes"], "Nice": ["Hmm", "Well", "So so"]}
    model = Scripted(lambda request: replies[request.fields["candidate"]][request.sample])
    judge = GptEvalJudge("gpt-eval", CachedGenerator(model, None), load_prompt("judge"), attempts=3)
    gold = ("Paris", "City of Light")
    verdicts = judge.verdicts([JudgeItem("q1", "Which city?", gold, candidate) for candidate in replies])
    assert [verdict.correct for verdict in verdicts] == [False, True, None]
    assert verdicts[2].raw == "So so"
    assert len(model.requests) == 1 + 2 + 3
    assert model.requests[0].messages()[0]["content"] == (
        "Question: Which city?\nAnswer: Paris; City of Light\nCandidate: Lyon\n"
        'Is candidate correct? Choose between "Yes" or "No"'
    )
