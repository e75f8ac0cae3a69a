"""Convergence by a language model, on replies given by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from quit.errors import SettingsError
from quit.models.convergence_scored import LLMCandidates, LLMConvergence
from quit.models.generation import CachedGenerator
from quit.models.prompting import load_prompt
from quit.models.protocols import HintSet
from quit.settings import Convergence, parse
from tests.qa.scripted import Scripted, scripted


def test_an_unreadable_reply_is_asked_for_again_then_counted() -> None:
    llm = Scripted(lambda request: "Yes" if request.sample == 1 and "Lyon" in str(request.messages()) else "Hm")
    model = LLMConvergence(CachedGenerator(llm, None), load_prompt("refers"), Convergence())
    # Nothing is known of Nice, the gold answer, so the hint does not refer to it: 0.
    item = HintSet("Which?", ("A city.",), "Nice", ("Lyon",))
    assert model.values([item]) == [[0.0]]
    assert len(llm.requests) == 2 + 2 + 1
    prompt = 'Does the hint "A city." refer to "Lyon"? Answer with "Yes" or "No" only.'  # as in the spec
    assert llm.requests[0].messages()[-1]["content"] == prompt
    # A repeated call, a hint or a candidate that occurs twice, and other candidates of the same hint add nothing.
    assert model.counted([item]) == model.counted([item]) == ([[0.0]], [[1]])
    others = HintSet("Which?", ("A city.", "A city."), "Rome", ("Bonn", "Bonn", "Lyon"))
    assert model.counted([item, others])[1] == [[1], [2, 2]]


def test_written_candidates_are_cleaned_and_none_is_the_answer(encoder) -> None:
    reply = '1. Lyon\n- Nice\n* "Rome".\n\n4) lyon\nPARIS\nCity of Light\nBonn\nOslo'
    same = SimpleNamespace(probability=lambda pairs: np.array([pair.candidate == "City of Light" for pair in pairs]))
    written = LLMCandidates(
        scripted(lambda request: reply), load_prompt("candidates"), encoder, same, Convergence(candidate_cap=5)
    )
    [candidates] = written.draw([{"question_id": "q1", "question": "Which city?", "answers": ["Paris"]}])
    assert [candidate.candidate for candidate in candidates] == ["Lyon", "Nice", "Rome", "Bonn"]
    assert all(-1 <= candidate.similarity <= 1 for candidate in candidates)


def test_the_setting_must_name_a_language_model() -> None:
    with pytest.raises(SettingsError, match="language_model must name"):
        parse({"convergence": {"method": "llm", "language_model": "nobody"}})
