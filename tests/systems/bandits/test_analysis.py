"""Relevance by rank, fitted by hand; the search of a tree's n, tau and lambda."""

import pytest

from quit.settings.bandits import Bandits
from quit.systems.bandits.analysis import rank_relevance, tune
from quit.systems.bandits.experiment import evaluate
from quit.systems.bandits.policies import policies
from tests.systems.bandits.requests import request_of


def test_the_slope_of_relevance_on_rank_by_hand() -> None:
    # Ranks 1, 2, 3 and 1, 2 with relevance 1, 0, 0 and 0, 1: mean rank 9/5, spread 14/5, covariance 3 - 5 * 9/5 * 2/5.
    falls = request_of([[1, 0, 0], [0, 1]], name="falls")
    rises = request_of([[0, 1], [0, 0]], name="rises")
    flat = request_of([[1], [0]], name="flat")  # one rank only: no line
    relevance = rank_relevance([falls, rises, flat, request_of([[], []], name="empty")])
    slopes = {point["request_id"]: point["slope"] for point in relevance["points"]}
    assert slopes == {"falls": pytest.approx(-0.6 / 2.8), "rises": pytest.approx(0.5), "flat": None, "empty": None}
    reciprocal = [point["mrr"] for point in relevance["points"]]
    assert reciprocal == [pytest.approx(0.75), pytest.approx(0.25), 0.5, 0.0]
    assert (relevance["requests"], relevance["negative"]) == (2, 1)
    assert (relevance["mrr"], relevance["slope"]) == (pytest.approx(0.5), pytest.approx((0.5 - 0.6 / 2.8) / 2))
    assert rank_relevance([flat])["slope"] is None


def test_a_search_keeps_the_best_tree_and_begins_with_the_settings() -> None:
    # A parent with a relevant document at each of four ranks, and a child that holds the rest: who opens it late gains.
    request = request_of([[1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [0] * 10, [0] * 10], parents=(-1, -1, 0))
    settings = Bandits(runs=200, trials=8, budgets=(0.3, 0.5))
    [policy] = policies(settings, ["bernoulli"])
    trials = tune([request], policy, settings)
    assert trials == tune([request], policy, settings) and len(trials) == 8
    assert [trial["precision"] for trial in trials] == sorted((trial["precision"] for trial in trials), reverse=True)
    own = next(trial for trial in trials if trial["expand_after"] == 4 and trial["expand_above"] == 0.77)
    grid = evaluate([request], [policy], settings, hierarchical=True)
    assert own["inheritance"] == 0.91 and own["precision"] == grid.value("bernoulli", 0.3, structure="tree")[0]
    assert own["gain"] == own["precision"] - grid.value("bernoulli", 0.3)[0]
    best = {key: trials[0][key] for key in ("expand_after", "expand_above", "inheritance")}
    grid = evaluate([request], [policy], settings.model_copy(update=best), hierarchical=True)
    assert trials[0]["precision"] == grid.value("bernoulli", 0.3, structure="tree")[0]
    assert {1 <= trial["expand_after"] <= settings.documents for trial in trials} == {True}
