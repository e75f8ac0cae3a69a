"""What the judge makes of replies, and what it asks for."""

import numpy as np
import pytest

from quit.models.generation import CachedGenerator
from quit.models.judges import EquivalenceJudge, GptEvalJudge, parse_verdict
from quit.models.prompting import load_prompt
from quit.models.protocols import JudgeItem
from tests.qa.scripted import Scripted

VERDICTS = {
    True: ["Yes", "yes.", '"Yes"', "**Yes**, it is.", "YES\n", "Yes, there is no doubt.", "Ｙｅｓ", "Verdict: Yes",
           "**Answer:** Yes", "<answer>Yes</answer>", '{"answer": "Yes"}', "### Answer\nYes", "The answer is: **yes**.",
           "It names the lake. So my answer is yes", 'The answer to this question is "Yes'],
    False: ["No", " no, it is not", "No it is not", "[No]", "**No**", "Answer: No", r"$\boxed{\text{No}}$",
            "Answer:\n\nNo", 'No, the question "Is a postage', "The answer is no", "No because it is another",
            "No - the lake is another", "No\n\nIt is another."],
    None: ["Yes/No", "Yes or No?", "Yes and No", "[Yes/No]", "Yes|No", "Answer: Yes/No", "Yes or no answer", "Yes, no",
           "No. Yes.", "Yes\nNo", "Answer: No\nAnswer: Yes", "Neither Yes nor No", "Not sure", "Yesterday", "None",
           "No idea", "NO ANSWER", "The candidate is correct", "The answer is not yes", "The answer is no longer known",
           'The answer to this question is: "', "Notably, yes", "",
           "No Country for Old Men", "Answer: No Country for Old Men", "Yes Minister", "Yes Minister is meant",
           "The gold answer is yes, so No", "The gold answer is yes.", "The reference answer: no", "No doubt", "No-one",
           "The expected answer is yes", "The correct answer is No. 5", "It is not correct: yes, it is a city"],
}  # fmt: skip


@pytest.mark.parametrize(("reply", "verdict"), [(reply, each) for each in VERDICTS for reply in VERDICTS[each]])
def test_only_what_says_yes_or_no_and_not_both_is_a_verdict(reply: str, verdict: bool | None) -> None:
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


def test_the_most_probable_gold_answer_decides_and_the_threshold_is_enough() -> None:
    class Told:
        identity = "told"

        def probability(self, pairs):
            return np.array([{"a": 0.2, "b": 0.6}[pair.reference] for pair in pairs])

    judge = EquivalenceJudge("j", Told(), 0.6)
    items = [JudgeItem("q", "Which?", golds, "x") for golds in (("a", "b"), ("a",), ())]
    verdicts = [(each.correct, each.probability) for each in judge.verdicts(items)]
    assert verdicts == [(True, 0.6), (False, 0.2), (False, 0.0)]
