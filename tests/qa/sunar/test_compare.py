"""Two runs compared: what the graph gains by hand, exact paired tests, runs that cannot be compared."""

import pytest

from quit.qa.sunar.compare import compare, significance
from quit.qa.sunar.queries import Query
from tests.qa.sunar.small import trace_of


def test_what_the_graph_gains_is_counted_by_its_parents() -> None:
    query = Query("q", "x", relevant={"a": 1, "b": 1, "c": 1}, kind="2hop")
    before = trace_of(query, pool=["a", "c"], evidence=["c", "a"])
    batches = [{"pool": "R", "documents": ["x", "a"]}, {"pool": "N", "documents": ["b"], "parents": ["a"]}]
    after = trace_of(query, pool=["x", "a", "b"], evidence=["b", "a", "x"]) | {"steps": [{"batches": batches}]}
    comparison = compare([before], [after], top=2)
    assert (comparison["relevant"], comparison["gained"], comparison["lost"], comparison["by_graph"]) == (3, 1, 1, 1)
    assert (comparison["parent_relevant"], comparison["parent_rank"]) == (1, 2.0)
    assert (comparison["gained_in_top"], comparison["lost_from_top"]) == (1, 1)
    again = compare([before], [before | {"evidence": ["x", "c", "a"]}], top=2)  # c and a were in the pool before
    there = compare([before | {"evidence": ["x", "c", "a"]}], [before], top=2)
    assert (
        (again["gained_in_top"], again["lost_from_top"]) == (0, 1) == (there["lost_from_top"], there["gained_in_top"])
    )
    assert comparison["kinds"] == {"2hop": {"questions": 1, "pool": [0.6667, 0.6667], "top_2": [0.6667, 0.6667]}}


def _answered(prediction: str, *evidence: str, questions: int = 1) -> list[dict]:
    """Traces of questions whose answer is Lima and whose relevant document is d1."""
    queries = [Query(f"q{number}", prediction, ("Lima",), relevant={"d1": 1}) for number in range(questions)]
    return [trace_of(query, evidence=list(evidence)) for query in queries]


def test_two_runs_differ_by_exact_paired_tests() -> None:
    before = _answered("Quito", "d2", questions=5)
    after = _answered("It is Lima", "d1", "d2", questions=4) + before[4:]
    comparison = significance(before, after)
    row = comparison["cover_em"]
    assert (row.questions, row.before, row.after, row.difference) == (5, 0.0, 0.8, 0.8)
    # Four of four differing questions on one side: both ends of 2^4 equally likely sign patterns.
    assert row.p_randomisation == 2 / 16 and comparison["Recall@10"].p_randomisation == 2 / 16
    assert row.holm == 3 * 2 / 16 and row.p_t == pytest.approx(0.0161, abs=1e-4)  # t = 4 on 4 degrees of freedom
    assert significance(before, before)["nDCG@10"].p_randomisation == 1.0
    unjudged = [{**trace, "answers": [], "relevant": {}} for trace in before]
    assert significance(unjudged, unjudged) == {}
    unanswered = [[{**traces[0], "answers": []}, *traces[1:]] for traces in (before, after)]
    mixed = significance(*unanswered)
    row = mixed["cover_em"]  # over four questions, of which three differ; the other measures over five
    assert (row.questions, row.after, row.p_randomisation, row.holm) == (4, 0.75, 2 / 8, 3 * 2 / 16)
    assert mixed["nDCG@10"] == comparison["nDCG@10"]
    within = _answered("Limassol", "d1", questions=2)
    for part, covered in ((True, 1.0), (False, 0.0)):
        assert significance(within, within, substring=part)["cover_em"].before == covered
