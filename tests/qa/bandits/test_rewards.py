"""Table 1, by hand."""

import math

import numpy as np
import pytest

from quit.qa.bandits import rewards

REL = np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0]])
LENGTHS = np.array([4, 2])


def test_top_k_is_the_mean_of_a_window_that_the_list_cuts() -> None:
    expected = [[2 / 3, 2 / 3, 1.0, 1.0], [1 / 2, 1.0, 0.0, 0.0]]
    assert rewards.top_k(REL, LENGTHS, 3) == pytest.approx(np.array(expected))
    assert (rewards.top_k(REL, LENGTHS, 1)[0] == REL[0]).all(), "a window of one is the Bernoulli reward"
    for k in range(1, 7):
        assert rewards.top_k(np.ones((2, 4)), LENGTHS, k).tolist() == [[1.0] * 4, [1.0, 1.0, 0.0, 0.0]]


def test_terms_of_the_rank_as_printed_and_the_index_form_infinite_before_the_first_pull() -> None:
    assert rewards.rank_aware(np.ones((1, 3)))[0].tolist() == pytest.approx([1.0, 1 / math.log2(3), 0.5])
    expected = [0.1, 0.1 * math.sqrt(math.log2(3) / 2), 0.1 * math.sqrt(2 / 3)]
    assert rewards.ucb_term(3, 0.1).tolist() == pytest.approx(expected)
    bonus = rewards.index_bonus(3, 0.1, 1000.0)
    assert bonus[0] == 1000.0 and bonus[1:].tolist() == rewards.ucb_term(3, 0.1).tolist()


def test_novelty() -> None:
    assert rewards.novelty(np.array([1.0, 0.0, -1.0])).tolist() == [0.0, 0.5, 1.0]
    concave = rewards.concave_novelty(np.array([-0.3, 0.0, 0.9, 1.0]), 5, 15)
    assert concave.tolist() == pytest.approx([1.0, 1.0, math.exp(-5 * 0.9**15), math.exp(-5)])


def test_scores_are_scaled_within_the_request() -> None:
    scores = np.array([[3.0, 2.0], [1.0, 99.0]])
    assert rewards.normalised(scores, np.array([2, 1])).tolist() == [[1.0, 0.5], [0.0, 0.0]]
    assert rewards.normalised(np.full((1, 2), 7.0), np.array([2])).tolist() == [[1.0, 1.0]]
    assert rewards.normalised(scores, np.array([0, 0])).tolist() == [[0.0, 0.0], [0.0, 0.0]]
