"""Policies by name, and how those without a posterior choose."""

import numpy as np
import pytest

from quit.errors import SettingsError
from quit.qa.bandits.policies import Policy, policies
from quit.qa.settings.bandits import Bandits
from tests.qa.bandits.requests import request_of

SETTINGS = Bandits()


def test_unknown_policies_are_named() -> None:
    with pytest.raises(SettingsError, match="no policy 'bernouli'. Did you mean 'bernoulli'"):
        policies(SETTINGS, ["bernouli"])
    assert [policy.name for policy in policies(SETTINGS, ["gaussian", "random"])] == ["random", "gaussian"]


def _named(name: str) -> Policy:
    [policy] = policies(SETTINGS, [name])
    return policy


def test_the_last_arm_goes_on_while_it_is_relevant_or_to_its_end() -> None:
    last = np.array([0.0, 0.4, 0.5, 1.0])
    assert _named("epsilon-greedy").stays(last).tolist() == [False, False, True, True]
    assert _named("exploitation").stays(last).all()


def test_exploration_takes_an_arm_with_the_fewest_pulls_whatever_theta_is() -> None:
    theta, pulls = np.array([[0.9, 0.1, 0.8]], np.float32), np.array([[1, 0, 0]])
    worth = _named("exploration").worth(request_of([[0] * 3] * 3), theta, pulls)
    assert worth.argmax(axis=1).tolist() == [2], "of the two without a pull that with the larger theta"


def test_random_chooses_an_arm_by_its_share_of_the_documents_left() -> None:
    """Six, two and two documents, of which two of the first and one of the second are read: 4, 1 and 2 are left."""
    request = request_of([[0] * 6, [0] * 2, [0] * 2])
    theta = np.random.default_rng(0).random((20_000, 3)).astype(np.float32)
    arms = _named("random").worth(request, theta, np.array([[2, 1, 0]])).argmax(axis=1)
    assert np.bincount(arms) / len(arms) == pytest.approx([4 / 7, 1 / 7, 2 / 7], abs=0.01)
    closed = np.where(np.arange(3) == 0, -1e6, theta)
    assert 0 not in _named("random").worth(request, closed, np.array([[2, 1, 0]])).argmax(axis=1)
