"""Convergence by a language model, on replies given by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from quit.models.convergence_llm import LLMCandidates, LLMHintScorer
from quit.models.generation import CachedGenerator, ChatRequest, Completion
from quit.models.generation.base import Done
from quit.models.prompting import load_prompt
from quit.models.protocols import HintPair, HintSet, Pair
from quit.settings import Convergence, parse
from quit.stages.rank import Scored


class Scripted:
    """Replies out of a function of the last turn; what a model would say is not the matter here."""

    name = identity = "scripted"

    def __init__(self, reply) -> None:
        self.reply = reply
        self.asked: list[str] = []

    def generate(self, requests: Sequence[ChatRequest], done: Done) -> None:
        for place, request in enumerate(requests):
            self.asked.append(request.messages()[-1]["content"])
            done(place, Completion(self.reply(self.asked[-1], request.sample), "stop"))


def _scorer(reply) -> tuple[LLMHintScorer, Scripted]:
    scripted = Scripted(reply)
    return LLMHintScorer(CachedGenerator(scripted, None), load_prompt("refers")), scripted


def test_the_question_is_the_specs() -> None:
    scorer, scripted = _scorer(lambda text, sample: "Yes")
    assert scorer.score([HintPair("Which?", "A city.", "Paris")]).tolist() == [1.0]
    assert scripted.asked == ['Does the hint "A city." refer to "Paris"? Answer with "Yes" or "No" only.']


def test_convergence_follows_by_the_formula() -> None:
    # The hint refers to Paris and to two of four distractors: 1 - (3 - 1) / 5 = 0.6.
    scorer, _ = _scorer(
        lambda text, sample: "Yes" if any(f'"{name}"' in text for name in ("Paris", "Lyon", "Nice")) else "No"
    )
    item = HintSet("Which?", ("It lies in France.",), "Paris", ("Lyon", "Nice", "Rome", "Bonn"))
    assert Scored(scorer, Convergence()).values([item]) == [[0.6]]


def test_an_unreadable_reply_is_asked_for_again_then_reported(caplog: pytest.LogCaptureFixture) -> None:
    scorer, scripted = _scorer(lambda text, sample: "Yes" if sample == 1 and "Lyon" in text else "Hm")
    pairs = [HintPair("Which?", "A city.", name) for name in ("Lyon", "Nice")]
    assert scorer.score(pairs).tolist() == [1.0, 0.0]
    assert len(scripted.asked) == 2 + 2 + 1
    assert "1 of 2" in caplog.text


class Same:
    """Calls "City of Light" equivalent to Paris."""

    identity = "same"

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        return np.array([float(pair.candidate == "City of Light") for pair in pairs])


def test_written_candidates_are_cleaned_and_none_is_the_answer(encoder) -> None:
    reply = '1. Lyon\n- Nice\n* "Rome".\n\n4) lyon\nPARIS\nCity of Light\nBonn\nOslo'
    made = LLMCandidates(
        CachedGenerator(Scripted(lambda text, sample: reply), None),
        load_prompt("candidates"),
        encoder,
        Same(),
        Convergence(candidate_cap=5),
    )
    drawn = made.draw([{"question_id": "q1", "question": "Which city?", "answers": ["Paris"]}])[0]
    assert [one.candidate for one in drawn] == ["Lyon", "Nice", "Rome", "Bonn"]
    assert all(-1 <= one.similarity <= 1 for one in drawn)


def test_the_setting_must_name_a_language_model() -> None:
    from quit.errors import SettingsError

    with pytest.raises(SettingsError, match="language_model must name"):
        parse({"convergence": {"method": "llm", "language_model": "nobody"}})
