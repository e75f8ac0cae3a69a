"""What judges ask for, and what decides."""

import numpy as np

from quit.models.generation import CachedGenerator
from quit.models.judges import EquivalenceJudge, GptEvalJudge
from quit.models.prompting import load_prompt
from quit.models.protocols import JudgeItem
from tests.qa.scripted import Scripted


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


def test_the_most_probable_gold_answer_decides_and_the_threshold_is_enough() -> None:
    class Told:
        identity, note = "told", staticmethod(lambda *texts: None)

        def probability(self, pairs):
            return np.array([{"a": 0.2, "b": 0.6}[pair.reference] for pair in pairs])

    judge = EquivalenceJudge("j", Told(), 0.6)
    items = [JudgeItem("q", "Which?", golds, "x") for golds in (("a", "b"), ("a",), ())]
    verdicts = [(each.correct, each.probability) for each in judge.verdicts(items)]
    assert verdicts == [(True, 0.6), (False, 0.2), (False, 0.0)]
