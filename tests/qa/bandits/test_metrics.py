"""Precision, recall and alpha-nDCG: by hand, and against ir_measures."""

import math
import tracemalloc
from itertools import permutations

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quit.qa.bandits.metrics import alpha_ndcg, budget_documents, measure
from tests.qa.bandits.requests import request_of

NEVER = np.iinfo(np.int64).max


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 4), st.sampled_from([5, 10, 20]))
def test_alpha_ndcg_is_that_of_ir_measures(seed: int, documents: int, nuggets: int, cutoff: int) -> None:
    rng = np.random.default_rng(seed)
    held = rng.random((documents, nuggets)) < 0.4
    held[0, 0] = True
    held = held[held.any(axis=1)]
    others = [f"x{place}" for place in range(8)]
    ranking = rng.permutation([f"d{place}" for place in range(len(held))] + others)[: rng.integers(1, 16)].tolist()
    positions = [ranking.index(f"d{place}") if f"d{place}" in ranking else NEVER for place in range(len(held))]
    pairs = zip(*np.nonzero(held), strict=True)
    qrels = [ir_measures.Qrel("q", f"d{place}", 1, str(nugget)) for place, nugget in pairs]
    run = [ir_measures.ScoredDoc("q", name, float(100 - place)) for place, name in enumerate(ranking)]
    measure_ = ir_measures.alpha_nDCG(alpha=0.5) @ cutoff
    expected = ir_measures.calc_aggregate([measure_], qrels, run)[measure_]
    # Where gains tie, the ideal order is not unique, and the values of its orders differ: ours takes the first
    # document.
    values = (
        alpha_ndcg(np.array([positions])[:, order], held[list(order)], [cutoff], 0.5)[0, 0]
        for order in permutations(range(len(held)))
    )
    assert any(value == pytest.approx(expected, abs=1e-5) for value in values)


def test_alpha_ndcg_of_many_runs_with_many_gold_documents_needs_little_memory() -> None:
    rng = np.random.default_rng(3)
    positions = np.stack([rng.permutation(300)[:200] for _ in range(100)])
    tracemalloc.start()
    values = alpha_ndcg(positions, np.eye(200, dtype=bool), [10])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    gains = [sum(1 / math.log2(2 + place) for place in row if place < 10) for row in positions.tolist()]
    assert values[:, 0] == pytest.approx(np.array(gains) / sum(1 / math.log2(2 + place) for place in range(10)))
    assert peak < 30e6  # a number per run and pair would be 32 MB


def test_metrics_of_a_run_by_hand() -> None:
    # document 7 is on both lists; observed in the order 7, 8, 7, 9
    request = request_of([[1, 0], [1, 1]], documents=[[7, 8], [7, 9]])
    order = np.array([[0, 1, 2, 3]])
    values, at = measure(request, order, [0, 1, 3, 4], 1, [2])
    assert values.precision.tolist() == [[0.0, 1.0, pytest.approx(2 / 3), 0.75]]
    assert values.recall.tolist() == [[0.0, pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]]
    assert values.documents.tolist() == [[0, 1, 2, 3]] and values.relevant_documents.tolist() == [[0, 1, 1, 2]]
    assert values.distinct_recall.tolist() == [[0.0, 0.5, 0.5, 1.0]]
    assert values.labels.tolist() == [[0, 1, 3, 4]]
    full = 1 + 1 / math.log2(3)
    assert values.alpha_ndcg[0].tolist() == pytest.approx([0, 1, 1 / full, (1 + 1 / math.log2(5)) / full])
    assert at.tolist() == [[pytest.approx(1 / full)]]


def test_a_window_reads_past_what_it_pays_for() -> None:
    request = request_of([[1, 0, 0, 0], [0, 0]])
    order = np.array([[0, 4, 1, 2, 3, 5]])
    values, _ = measure(request, order, [1, 2, 3, 6], 3)
    # after 1: arm 0 ranks 1-3; after 2: and arm 1 ranks 1-2; after 3: arm 0 ranks 1-4; nothing is left to peek at
    assert values.labels.tolist() == [[3, 5, 6, 6]]


def test_nothing_relevant_and_nothing_at_all() -> None:
    for request in (request_of([[0, 0], [0]]), request_of([[], []])):
        order = np.arange(request.size, dtype=np.int32)[None] if request.size else np.zeros((1, 0), np.int32)
        values, at = measure(request, order, budget_documents(request.size, [0.1, 1.0]), 1, [5])
        for name in ("precision", "recall", "relevant_documents", "distinct_recall", "alpha_ndcg"):
            assert getattr(values, name).tolist() == [[0.0, 0.0]]
        assert at.tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("size", "shares", "documents"),
    [(20, [0.1, 0.3, 0.7, 1.0], [2, 6, 14, 20]), (3, [0.1, 0.3, 0.34], [0, 0, 1])],
)
def test_budgets_round_down(size: int, shares: list[float], documents: list[int]) -> None:
    assert budget_documents(size, shares) == documents
