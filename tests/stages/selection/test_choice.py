"""Prices by hand, and what is chosen."""

import numpy as np

from quit.stages.labelling.passages import permutation_table
from quit.stages.selection.choice import choose, computed_tokens

NAMES = permutation_table(3).permutation.to_pylist()
TOKENS = np.array([[10.0, 20.0, 30.0, 5.0]])


def _asked(*names: str) -> np.ndarray:
    return np.array([[name in names for name in NAMES]])


def _price(asked: np.ndarray) -> dict[str, float]:
    return dict(zip(NAMES, computed_tokens(asked, TOKENS, 3)[0].tolist(), strict=True))


def test_a_prefix_in_the_cache_is_not_paid_again() -> None:
    price = _price(_asked())
    assert (price["0"], price["02"], price["210"]) == (15, 45, 65)
    price = _price(_asked("0", "01"))
    assert (price["01"], price["012"], price["02"]) == (25, 35, 35)  # after 0, after 01, after 0
    assert price["102"] == 65  # the same hints, and no prefix in common


def test_without_tokens_every_passage_costs_the_same() -> None:
    assert (computed_tokens(_asked("0"), None, 3) == 1).all()


def test_uncertain_questions_are_asked_and_what_was_chosen_stays() -> None:
    probability = np.repeat([[0.5], [0.0001], [0.9999]], len(NAMES), axis=1)
    evidence = np.zeros(probability.shape, dtype=bool)
    evidence[1, 3] = True
    chosen = choose(probability, evidence, 6, None, 3)
    assert chosen.sum() == 7
    assert chosen[0].sum() == 6
    assert chosen[1, 3]


def test_two_orders_of_all_hints_teach_less_than_other_hints() -> None:
    chosen = choose(np.full((1, len(NAMES)), 0.5), np.zeros((1, len(NAMES)), dtype=bool), 4, None, 3)
    subsets = [permutation_table(3).subset.to_pylist()[row] for row in np.flatnonzero(chosen[0])]
    assert len(set(subsets)) == 4


def test_all_are_chosen_where_more_are_wanted_than_there_are() -> None:
    nothing = np.zeros((2, len(NAMES)), dtype=bool)
    assert choose(np.full(nothing.shape, 0.5), nothing, 1000, None, 3).all()
    assert (choose(np.full(nothing.shape, 0.5), nothing, 0, None, 3) == nothing).all()
