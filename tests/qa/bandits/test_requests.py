"""Requests of a small corpus: what arms find of it, what is relevant, and to whom."""

from types import SimpleNamespace

import numpy as np
import pytest

from quit.qa.bandits import arms
from quit.qa.opening import questions
from tests.qa.bandits.test_arms import DOCUMENTS, QRELS, QUERIES, requests_of
from tests.qa.scripted import SmallCollection


@pytest.fixture
def collection() -> SmallCollection:
    return SmallCollection(DOCUMENTS, QUERIES, QRELS)


def test_requests_hold_what_the_first_stage_finds(collection: SmallCollection) -> None:
    [arms_of] = requests_of(collection, vectors=lambda rows: np.eye(5)[rows])
    assert arms_of.documents.tolist() == [[0, 3, -1], [1, 4, 0]]
    assert arms_of.relevant.tolist() == [[True, True, False], [True, False, True]]
    assert arms_of.observed.tolist() == arms_of.relevant.astype(float).tolist()
    assert arms_of.scores[0].tolist() == [4.0, 2.0, 0.0]
    # nuggets: each sub-question, and the document that only the whole question calls relevant
    assert arms_of.gold.tolist() == [0, 1, 3]
    assert arms_of.nuggets.tolist() == [[True, False, False], [False, True, False], [False, False, True]]
    assert arms_of.vectors.shape == (4, 5) and arms_of.size == 5


def test_policies_can_observe_scores_or_a_judge(collection: SmallCollection) -> None:
    def scores(question, answers, texts, vectors):
        assert question == "Who reigns inside South Africa?" and answers == ("Letsie III",)
        return np.array([1.5 if "king" in text else 0.2 for text in texts])

    [judged] = requests_of(collection, relevance=SimpleNamespace(identity="king", scores=scores))
    assert judged.observed.tolist() == [[0.2, 0.2, 0.0], [1.0, 1.0, 0.2]]
    assert judged.relevant.tolist() == [[True, True, False], [True, False, True]]  # metrics still go by the qrels
    [scored] = requests_of(collection, relevance="scores")
    assert scored.observed * 3 == pytest.approx(np.array([[3, 1, 0], [2, 1, 0]]))


def test_a_question_that_matches_nothing_has_empty_lists(collection: SmallCollection) -> None:
    part = arms.Decomposition(questions(collection)[1], ("xyzzy", "plugh"), (-1, -1))
    [arms_of] = requests_of(collection, [part], vectors=lambda rows: np.eye(5)[rows])
    assert (arms_of.size, arms_of.relevant_share) == (0, 0.0)
    assert (arms_of.gold.shape, arms_of.nuggets.shape) == ((0,), (0, 0))
