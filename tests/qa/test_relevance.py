"""Heads that ask a judge: what it says, and what of it could not be read."""

from types import SimpleNamespace

import numpy as np

from quit.models.prompting import load_prompt
from quit.models.protocols import Verdict
from quit.qa.relevance import RELEVANCE_FIELDS, JudgedAnswers, JudgedRelevance, YesNo
from tests.qa.scripted import scripted


def test_a_judge_of_answers_as_head() -> None:
    verdicts = {"x": (True, None), "y": (False, None), "p": (False, 0.7), "hm": (None, None)}

    def judged(items, sample=0):
        return [Verdict(*verdicts[item.candidate], "") for item in items]

    head = JudgedAnswers(SimpleNamespace(name="judge", identity="judge", verdicts=judged))
    assert head.scores("q", ["a"], list(verdicts), np.zeros((4, 2))).tolist() == [1.0, 0.0, 0.7, 0.0]
    assert head.counts["unread"] == 1
    assert head.scores("q", [], ["x"], np.zeros((1, 2))).tolist() == [0.0]


def test_a_language_models_yes_is_1_and_what_cannot_be_read_is_0_and_counted() -> None:
    replies = {"a": "Yes.", "b": "no", "c": "Well, that depends"}
    model = scripted(lambda request: replies[request.fields["document"]])
    head = JudgedRelevance(YesNo(model, load_prompt("document_relevance", RELEVANCE_FIELDS), attempts=2))
    assert head.scores("q", (), [*replies], np.zeros((3, 0))).tolist() == [1.0, 0.0, 0.0]
    assert head.judge.counts == {"verdicts": 3, "unread": 1}
