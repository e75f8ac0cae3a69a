"""Relevance by rank: slopes and reciprocal ranks by hand."""

import pytest

from quit.qa.bandits.rank_relevance import rank_relevance
from tests.qa.bandits.requests import request_of


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
