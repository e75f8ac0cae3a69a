"""The search of a tree's n, tau and lambda."""

import pytest

from quit.errors import SettingsError
from quit.qa.bandits.experiment import evaluate
from quit.qa.bandits.policies import policies
from quit.qa.bandits.tuning import trials_of
from quit.qa.settings.bandits import Bandits
from tests.qa.bandits.requests import request_of


def test_a_search_keeps_the_best_tree_and_begins_with_the_settings() -> None:
    # A parent with a relevant document at each of four ranks, and a child that holds the rest: who opens it late gains.
    request = request_of([[1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [0] * 10, [0] * 10], parents=(-1, -1, 0))
    settings = Bandits(runs=200, trials=8, budgets=(0.3, 0.5))
    [policy] = policies(settings, ["bernoulli"])
    trials = trials_of([request], policy, settings)
    assert trials == trials_of([request], policy, settings) and len(trials) == 8
    assert [trial.precision for trial in trials] == sorted((trial.precision for trial in trials), reverse=True)
    own = next(trial for trial in trials if trial.expand_after == 4 and trial.expand_above == 0.77)
    grid = evaluate([request], [policy], settings, hierarchical=True)
    assert own.inheritance == 0.91 and own.precision == grid.value("bernoulli", 0.3, structure="tree")[0]
    assert own.gain == own.precision - grid.value("bernoulli", 0.3)[0]
    [fixed] = policies(settings, ["exploitation"])
    for requests, tuned in (([request_of([[1, 0]])], policy), ([request], fixed)):
        with pytest.raises(SettingsError, match=f"--tune {tuned.name}: there is no tree"):
            trials_of(requests, tuned, settings)
    best = {key: getattr(trials[0], key) for key in ("expand_after", "expand_above", "inheritance")}
    grid = evaluate([request], [policy], settings.model_copy(update=best), hierarchical=True)
    assert trials[0].precision == grid.value("bernoulli", 0.3, structure="tree")[0]
    assert {1 <= trial.expand_after <= settings.documents for trial in trials} == {True}


def test_every_tree_that_is_tried_gives_its_children_a_prior() -> None:
    request = request_of([[1.0] * 10, [0.0] * 10], parents=(-1, 0))
    settings = Bandits(runs=1, trials=17, budgets=(1.0,), seed=51)  # the last lambda drawn is below 0.0005
    trials = trials_of([request], policies(settings, ["bernoulli"])[0], settings)
    assert min(trial.inheritance for trial in trials) == 0.001
