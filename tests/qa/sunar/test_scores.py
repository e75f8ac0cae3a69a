"""Figures over nothing that could be judged (others: test_run.py)."""

import pytest

from quit.qa.sunar.queries import Query
from quit.qa.sunar.scores import scores
from tests.qa.sunar.small import trace_of


@pytest.mark.parametrize(("relevant", "none"), [(None, None), ({"d": 1}, 0.0)])
def test_a_run_over_nothing_that_could_be_judged_has_no_figures(relevant, none: float | None) -> None:
    query = Query("q", "x", relevant=relevant)
    figures = scores([trace_of(query, pool=[], evidence=[])])
    assert figures["cover_em"] is None
    assert figures["Recall@10"] == figures["nDCG@10"] == figures["pool_recall"] == none
