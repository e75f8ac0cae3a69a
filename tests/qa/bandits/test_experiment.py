"""The grid of policies and budgets: what it averages, what it leaves out, what it writes."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quit.errors import InputError
from quit.qa.bandits import files
from quit.qa.bandits.experiment import evaluate
from quit.qa.bandits.policies import policies
from quit.qa.settings.bandits import Bandits
from tests.qa.bandits.requests import drawn, request_of

SETTINGS = Bandits(runs=150)
TREE = (-1, -1, 0, 1)


@pytest.fixture(scope="module")
def grid():
    return evaluate([drawn(seed, parents=TREE) for seed in range(12)], policies(SETTINGS), SETTINGS, hierarchical=True)


def test_all_policies_meet_at_the_whole_budget_and_beat_chance_before(grid) -> None:
    shares = [drawn(seed).relevant_share for seed in range(12)]
    for policy in grid.policies:
        assert grid.value(policy.name, 1.0) == pytest.approx(shares)
        assert grid.value(policy.name, 1.0, "recall").tolist() == pytest.approx([float(share > 0) for share in shares])
    assert grid.value("bernoulli-top-3", 0.3).mean() > grid.value("random", 0.3).mean()


def test_the_order_of_requests_changes_nothing(grid) -> None:
    requests = [drawn(seed, parents=TREE) for seed in reversed(range(12))]
    back = evaluate(requests, policies(SETTINGS), SETTINGS, hierarchical=True)
    assert back.requests == grid.requests[::-1]
    assert np.array_equal(back.means[::-1], grid.means, equal_nan=True)


def test_requests_below_the_share_are_left_out_and_counted() -> None:
    lists = {"poor": [[1] + [0] * 19], "none": [[0, 0]], "good": [[1, 0]]}
    requests = [request_of(lists[name], name=name) for name in lists]
    chosen, strict = policies(SETTINGS, ["bernoulli"]), SETTINGS.model_copy(update={"least_relevant": 0.1})
    for settings, counts in ((SETTINGS, (3, 0, 1)), (strict, (1, 2, 0))):
        grid = evaluate(requests, chosen, settings)
        assert (len(grid.requests), grid.left_out, grid.without_relevant) == counts
    with pytest.raises(InputError, match="None of 1 requests can be simulated"):
        evaluate(requests[1:2], chosen, strict)


def test_decompositions_of_a_request_are_averaged_and_it_counts_once() -> None:
    first, second = request_of([[1, 0]], name="q"), request_of([[1, 1]], name="q")
    empty, chosen = request_of([[], []], name="p"), policies(SETTINGS, ["bernoulli"])
    grid = evaluate([first, empty, replace(second, decomposition=1)], chosen, SETTINGS)
    assert grid.requests == ("q", "p") and grid.value("bernoulli", 1.0).tolist() == [0.75, 0.0]
    assert grid.value("bernoulli", 0.1).tolist() == [0.0, 0.0], "less than one document"
    assert grid.means.shape[0] == 2 and len(grid.arms) == 3
    assert [row["value"] for row in grid.rows() if (row["budget"], row["metric"]) == (1.0, "precision")] == [0.375]


def test_table_3_by_hand() -> None:
    # Two arms with the relevant document last are read in the places 2 and 4 one by one, 3 and 4 in turn; one arm in 1.
    requests = [request_of([[0, 1], [0, 1]], name="p"), request_of([[1]], name="q")]
    grid = evaluate(requests, policies(SETTINGS, ["exploitation", "exploration"]), SETTINGS, hierarchical=True)
    second, third, fourth = 1 / np.log2([3, 4, 5])  # what a relevant document is worth in the places 2, 3 and 4
    expected = {"exploitation": (second + fourth) / (1 + second), "exploration": (third + fourth) / (1 + second)}
    for row, (policy, of_p) in zip(grid.ndcg_rows(), expected.items(), strict=True):  # neither has a tree
        assert (row.pop("policy"), row.pop("structure")) == (policy, "flat")
        assert row == {f"alpha_ndcg@{cutoff}": pytest.approx((of_p + 1) / 2) for cutoff in (5, 10, 20, 40, 50)}


def _row(rows, **wanted):
    return next(row for row in rows if wanted.items() <= row.items())


def test_what_is_written(grid, tmp_path: Path) -> None:
    whole = files.write(grid, tmp_path, {"arms_from": "test"})
    with (tmp_path / "bandits.csv").open() as file:
        rows = list(csv.DictReader(file))
    # the two extremes have no tree
    flat, tree = len(grid.policies), sum(policy.expands for policy in grid.policies)
    assert len(rows) == (flat + tree) * 10 * 7 and tree == flat - 2
    own = _row(rows, policy="bernoulli", structure="flat", metric="precision", budget="0.1")
    low, value, high = (float(own[name]) for name in ("low", "value", "high"))
    assert low <= value <= high and value == pytest.approx(grid.value("bernoulli", 0.1).mean())
    base = _row(rows, policy="random-rank-aware", metric="precision")
    assert {float(base[name]) for name in ("difference", "difference_low", "difference_high")} == {0}
    assert json.loads((tmp_path / "bandits.json").read_text())["trees"] == whole["trees"]
    at = _row(whole["trees"], policy="bernoulli", budget=0.1, metric="precision")
    assert at["tree"] == pytest.approx(grid.value("bernoulli", 0.1, structure="tree").mean())
    first, recall = (files.plot(grid, tmp_path, metric, "").read_bytes() for metric in ("precision", "recall"))
    assert first[:4] == recall[:4] == b"\x89PNG" and first != recall
    assert files.plot(grid, tmp_path, "precision", "").read_bytes() == first
