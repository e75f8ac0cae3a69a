"""Algorithm 1 by hand, against pyterrier_adaptive's GAR, and by its properties."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.qa.sunar.nar import Rescored, nar
from quit.retrieval.protocols import Ranking
from tests.qa.sunar.small import Edges, ranking

SCORES = {0: 0.1, 1: 0.9, 2: 0.5, 3: 0.2, 4: 0.8, 5: 0.3, 6: 0.7, 7: 0.0}
GRAPH = Edges({0: [5, 4], 1: [4, 6], 2: [7, 3], 4: [6, 7], 6: [5, 0]}, 8)
R = ranking(0, 1, 2, 3)


def _score(rows):
    return np.array([SCORES[row] for row in rows])


def _ids(rows):
    return [f"d{row}" for row in rows]


def _pools(pool):
    return [(batch.pool, batch.rows) for batch in pool.batches]


def test_a_small_graph_by_hand() -> None:
    pool = nar(R, GRAPH, _score, b=2, c=8, neighbours=2)
    assert _pools(pool) == [
        ("R", (1, 0)),  # N becomes 4: 0.9, 6: 0.9 (neighbours of 1), 5: 0.1 (of 0; it would give 4 less)
        ("N", (4, 6)),  # N becomes 5: 0.7 (raised by 6), 7: 0.8
        ("R", (2, 3)),
        ("N", (5, 7)),  # scored as 0.3 and 0.0
    ]
    assert [one.row for one in pool.ranked(_ids)] == [1, 4, 6, 2, 5, 3, 0, 7]
    assert [one.iteration for one in pool.ranked(_ids)] == [0, 1, 1, 2, 3, 2, 0, 3]
    assert [batch.parents for batch in pool.batches] == [(None, None), (1, 1), (None, None), (6, 4)]


def test_priority_is_the_highest_score_of_a_scored_parent() -> None:
    # 7 comes by 0 (0.1) and by 1 (0.9), 8 by 1 alone, 9 by 0 alone: a batch of one takes 7, which 1 put first.
    scores = {0: 0.1, 1: 0.9, 7: 0.0, 8: 0.0, 9: 0.0}
    graph = Edges({0: [9, 7], 1: [7, 8]}, 10)
    pool = nar(ranking(0, 1), graph, lambda rows: np.array([scores[row] for row in rows]), b=2, c=3, neighbours=2)
    assert _pools(pool) == [("R", (1, 0)), ("N", (7,))] and pool.batches[1].parents == (1,)
    tied = nar(ranking(0, 1), Edges({0: [7], 1: [7]}, 8), lambda rows: np.zeros(len(rows)), b=2, c=3)
    assert tied.batches[1].parents == (0,), "the first of those that tie"


def test_an_empty_pool_is_skipped() -> None:
    alone = nar(ranking(0, 1, 2), Edges({}, 3), _score, b=1, c=3, neighbours=2)
    assert _pools(alone) == [("R", (0,)), ("R", (1,)), ("R", (2,))]
    one = nar(ranking(1), GRAPH, _score, b=2, c=8, neighbours=2)
    assert [name for name, _ in _pools(one)] == ["R", "N", "N", "N"]  # the rest can only come from the graph
    tied = nar(ranking(3, 2, 1, 0), None, lambda rows: np.zeros(len(rows)), b=2, c=4)
    assert [one.row for one in tied.ranked(_ids)] == [2, 3, 0, 1], "by batch, then by id"


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="b must be at least 1"):
        nar(R, GRAPH, _score, b=0, c=3)
    with pytest.raises(ValueError):
        nar(Ranking(np.arange(2), np.ones(1)), GRAPH, _score, b=2, c=3)
    short = nar(R, None, _score, lambda rows, scores: Rescored(scores[1:]), b=2, c=3)
    with pytest.raises(ValueError):
        short.ranked(_ids)


def test_feedback_changes_the_ranking() -> None:
    def rescore(rows, scores):
        return Rescored(scores / (4 if 1 in rows else 1), {"s": 4 if 1 in rows else 1})

    fed = nar(R, GRAPH, _score, rescore, b=2, c=8, neighbours=2)
    assert [one.row for one in fed.ranked(_ids)] == [4, 6, 2, 5, 1, 3, 0, 7]
    assert [batch.trace["s"] for batch in fed.batches] == [4, 1, 1, 1]


@pytest.mark.parametrize(("raw", "last"), [(True, 8), (False, 6)])
def test_neighbours_have_the_rescored_or_the_raw_score_of_their_source(raw: bool, last: int) -> None:
    # 0 scores 0.9 and is divided by 4: its neighbours 5 and 8 enter with 0.225, or 0.9. 5, scored 0.5, brings 6.
    scores = {0: 0.9, 1: 0.4, 5: 0.5, 6: 0.1, 8: 0.1}

    def rescore(rows, values):
        return Rescored(values / (4 if 0 in rows else 1))

    graph = Edges({0: [5, 8], 5: [6]}, 9)
    pool = nar(
        ranking(0, 1), graph, lambda rows: np.array([scores[row] for row in rows]), rescore, b=1, c=4, raw_priority=raw
    )
    assert _pools(pool) == [("R", (0,)), ("N", (5,)), ("R", (1,)), ("N", (last,))]


graphs = st.lists(st.lists(st.integers(0, 14), max_size=4, unique=True), min_size=15, max_size=15)
initials = st.lists(st.integers(0, 14), max_size=15)
values = st.lists(st.floats(-5, 5), min_size=15, max_size=15)


@given(graphs, initials, values, st.integers(1, 6), st.integers(-1, 20), st.integers(0, 4))
def test_properties(graph, initial, scores, b, c, k) -> None:
    calls: list[int] = []

    def score(rows):
        assert 1 <= len(rows) <= b
        calls.extend(rows)
        return np.array([scores[row] for row in rows])

    edges = Edges(dict(enumerate(graph)), 15)
    pool = nar(ranking(*initial), edges, score, b=b, c=c, neighbours=k)
    assert len(calls) == len(set(calls)), "a document was scored twice"
    reached, frontier = set(initial), set(initial)
    while frontier:
        frontier = {near for row in frontier for near in graph[row][:k]} - reached
        reached |= frontier
    assert len(calls) == min(max(c, 0), len(reached)), "the budget is used up, or all that can be reached is scored"
    assert set(calls) <= reached
    ranked = pool.ranked(_ids)
    assert sorted(one.row for one in ranked) == sorted(calls)
    assert all(one.score == one.rescored == scores[one.row] for one in ranked)
    assert [one.rescored for one in ranked] == sorted((scores[row] for row in calls), reverse=True)


@pytest.mark.parametrize(("bounded", "last"), [(False, 4), (True, 10)])
def test_a_bounded_frontier_takes_nothing_that_the_budget_cannot_reach(bounded: bool, last: int) -> None:
    # 0 brings 5, 6, 7, which fill the budget. 5, below 0, then brings 4 only where N has no bound: 4 has come before 10
    # when 1 brings both.
    scores = {0: 0.5, 1: 0.9, 4: 0.0, 5: 0.4, 10: 0.0}
    edges = Edges({0: [5, 6, 7], 1: [10, 4], 5: [4]}, 11)
    pool = nar(ranking(0, 1), edges, lambda rows: np.array([scores[row] for row in rows]), b=1, c=4, bounded=bounded)
    assert _pools(pool) == [("R", (0,)), ("N", (5,)), ("R", (1,)), ("N", (last,))]


@pytest.mark.parametrize(
    ("b", "c", "k"),
    [(4, 16, 10), (5, 50, 10), (16, 50, 10), (16, 100, 10), (1, 20, 10), (16, 16, 10), (16, 299, 4)],
)
def test_with_a_bounded_frontier_nar_is_gar(b: int, c: int, k: int) -> None:
    adaptive = pytest.importorskip("pyterrier_adaptive", reason="pyterrier-adaptive is not installed")
    import pandas as pd

    for seed in range(25):
        draw = np.random.default_rng(seed)
        edges = [draw.choice(np.delete(np.arange(300), row), 10, replace=False)[:k] for row in range(300)]
        scores = draw.permutation(300) / 7.0 - 20.0
        rows = draw.permutation(300)[:40]
        names = [f"d{row}" for row in rows]
        places = {"score": np.arange(40, 0, -1.0), "rank": np.arange(40)}
        initial = pd.DataFrame({"qid": "1", "query": "q", "docno": names, **places})
        scorer = partial(_scored, scores)
        graph = SimpleNamespace(neighbours=lambda name, edges=edges: [f"d{row}" for row in edges[int(name[1:])]])
        theirs = adaptive.GAR(scorer, graph, num_results=c, batch_size=b, backfill=False).transform(initial)
        same, score = Edges(dict(enumerate(edges)), 300), scores.take
        ours = nar(ranking(*rows), same, score, b=b, c=c, neighbours=k, bounded=True).ranked(_ids)
        assert [f"d{one.row}" for one in ours] == theirs.docno.tolist()
        assert [one.score for one in ours] == theirs.score.tolist()
        # GAR counts skipped turns too; its even numbers are R, its odd ones N.
        assert [one.pool for one in ours] == ["RN"[number % 2] for number in theirs.iteration]
        order = sorted(set(theirs.iteration))
        assert [one.iteration for one in ours] == [order.index(number) for number in theirs.iteration]


def _scored(scores, batch):
    """Score a batch as pyterrier's transformers do."""
    return batch.assign(score=[scores[int(name[1:])] for name in batch.docno])
