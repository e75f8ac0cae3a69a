"""The roles of hints: three questions by hand, and every question against a literal reading of the definitions."""

from itertools import combinations, permutations
from math import factorial, inf
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quit.settings import parse
from quit.stages.roles import role_tables, roles_of, roles_stage
from tests.rows import table_of, tuples

ORDERS = {n: sorted(order for k in range(1, n + 1) for order in permutations(range(n), k)) for n in range(2, 8)}


def literal(right: dict[tuple[int, ...], bool], without: float, n: int) -> dict:
    """The roles by the definitions: the Shapley value as the mean rise over all permutations of players."""
    sets = [frozenset(some) for k in range(1, n + 1) for some in combinations(range(n), k)]
    p = {some: sum(right[order] for order in permutations(some)) / factorial(len(some)) for some in sets}
    sufficient = [some for some in sets if p[some] == 1]
    minimal = [some for some in sufficient if not any(other < some for other in sufficient)]
    v = {frozenset(): without, **p}
    shapley, harmed = [0.0] * n, []
    for players in permutations(range(n)):
        for place, hint in enumerate(players):
            before = frozenset(players[:place])
            shapley[hint] += (v[before | {hint}] - v[before]) / factorial(n)
    for hint in range(n):
        others = [some for some in v if hint not in some]
        harmed.append(sum(v[some | {hint}] < v[some] for some in others) / len(others))
    return {
        "shapley": pytest.approx(shapley, abs=1e-12),
        "smallest_set": [min((len(some) for some in minimal if hint in some), default=inf) for hint in range(n)],
        "harmed": harmed,
        "fewest_in_every_order": min(map(len, sufficient), default=inf),
        "fewest_in_some_order": min((len(some) for some in sets if p[some]), default=inf),
        "order_dependent_sets": sum(0 < p[some] < 1 for some in sets),
    }


@st.composite
def labelled(draw):
    n = draw(st.sampled_from(sorted(ORDERS)))
    chance = draw(st.floats(0, 1))
    right = np.random.default_rng(draw(st.integers(0, 2**32))).random((2, len(ORDERS[n]))) < chance
    return n, right, draw(st.lists(st.sampled_from([0.0, 1 / 3, 1.0]), min_size=2, max_size=2))


@settings(max_examples=60, deadline=None)
@given(labelled())
def test_roles_are_those_of_their_definitions(case) -> None:
    n, right, without = case
    roles = roles_of(right, np.array(without), n)
    for row in range(2):
        expected = literal(dict(zip(ORDERS[n], right[row].tolist())), without[row], n)
        assert {name: roles[name][row].tolist() for name in expected} == expected


@settings(max_examples=60, deadline=None)
@given(labelled())
def test_shapley_values_sum_to_success_with_all_hints_less_success_without(case) -> None:
    n, right, without = case
    whole = [len(order) == n for order in ORDERS[n]]
    total = roles_of(right, np.array(without), n)["shapley"].sum(axis=1)
    assert total == pytest.approx(right[:, whole].mean(axis=1) - without, abs=1e-12)


# Labels of the passages 0, 01, 1, 10, by hand.
LABELS = {"a": (2, 2, 1, 1), "b": (1, 2, 1, 2), "c": (1, 1, 2, 1)}
PROBED = {"a": ((0, False), (1, True)), "b": ((0, False), (1, None))}


def by_hand(**more) -> dict[str, pa.Table]:
    labels = [{"question_id": one, "label": label} for one, of_question in LABELS.items() for label in of_question]
    hints = [
        {"question_id": one, "rank": rank, "hint_id": f"{one}{rank}", "selected": rank < 2}
        for rank in (2, 1, 0)
        for one in LABELS
    ]
    return role_tables(table_of("labels", labels), table_of("ranked_hints", hints), 2, **more)


def probe(reader: str = "one") -> pa.Table:
    answers = [(one, *answer) for one, answers in PROBED.items() for answer in answers]
    names = ("question_id", "repetition", "correct")
    return table_of("probe_answers", [{**dict(zip(names, row, strict=True)), "reader": reader} for row in answers])


def test_three_questions_by_hand() -> None:
    tables = by_hand(probe_answers=probe(), labelers=["one"])
    # a: p(0) = 1, p(1) = 0, p(01) = 1/2, without 1/2. b: 0, 0, 1, without 0. c: 0, 1, 0, not probed.
    assert tuples(tables["hint_roles"], "hint_id", "rank", "shapley", "smallest_set", "harmed") == [
        *(("a0", 0, 0.5, 1, 0.0), ("a1", 1, -0.5, None, 1.0), ("b0", 0, 0.5, 2, 0.0)),
        *(("b1", 1, 0.5, 2, 0.0), ("c0", 0, -0.5, None, 0.5), ("c1", 1, 0.5, 1, 0.0)),
    ]
    roles = [("a", 1, 1, 1, 1, 0.5), ("b", 2, 2, 0, 0, 0.0), ("c", 1, 1, 0, 1, None)]
    assert [tuple(row.values()) for row in tables["question_roles"].to_pylist()] == roles


def test_no_sufficient_set_is_null() -> None:
    rows = [{"question_id": "a", "label": 1}] * 4
    hints = [{"question_id": "a", "rank": rank, "hint_id": str(rank), "selected": True} for rank in (0, 1)]
    tables = role_tables(table_of("labels", rows), table_of("ranked_hints", hints), 2)
    names = ("fewest_in_every_order", "fewest_in_some_order", "unneeded_hints")
    assert tuples(tables["question_roles"], *names) == [(None, None, None)]


def test_answers_of_readers_that_are_no_labelers_do_not_count() -> None:
    tables = by_hand(probe_answers=probe("another"), labelers=["one"])
    assert tables["question_roles"]["without_hints"].null_count == 3


def test_without_hints_one_labeler_that_is_right_is_enough() -> None:
    answers = pa.concat_tables([probe(), probe("two"), probe("another")])
    for labelers in (["one"], ["one", "two"]):
        share = by_hand(probe_answers=answers, labelers=labelers)["question_roles"]["without_hints"]
        assert share.to_pylist() == [0.5, 0, None]


def test_a_shard_without_questions_has_empty_tables() -> None:
    nothing = lambda name: lambda columns: table_of(name, []).select(columns)  # noqa: E731
    context = SimpleNamespace(settings=parse({"passages": {"hints": 2}}))
    tables = roles_stage.function(context, *map(nothing, ("ranked_hints", "probe_answers", "labels")))
    assert [len(rows) for rows in tables.values()] == [0, 0]
