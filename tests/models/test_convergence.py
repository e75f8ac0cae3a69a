"""The embedded convergence model: sense, independence of company, and the arithmetic against a hand calculation."""

import math
from dataclasses import replace

import numpy as np
import pytest

from quit.models.convergence import EmbeddedConvergence, KernelRidge
from quit.models.convergence_features import NAMES, features
from quit.models.protocols import HintSet

HINTS = ("The Eiffel Tower stands in this city on the Seine.", "It is a city.",
         "Big Ben and the Thames are its landmarks.", "Its cathedral of Notre-Dame burnt in 2019.",
         "It is a popular place with many visitors.")  # fmt: skip
RIVALS = ("London", "Berlin", "Madrid", "Rome", "Vienna")
ITEM = HintSet("Which city hosted the 1900 Summer Olympics?", HINTS, "Paris", RIVALS, "LOC:LOCATION")


@pytest.fixture(scope="module")
def model(encoder) -> EmbeddedConvergence:
    return EmbeddedConvergence(encoder)


def test_values_are_shares_higher_for_telling_hints_whatever_was_valued_before(model, encoder) -> None:
    values = model.values([ITEM])[0]
    tower, city, _, cathedral, popular = values
    assert all(0 <= value == round(value, 6) <= 1 for value in values) and min(tower, cathedral) > max(city, popular)
    other = HintSet("Who wrote Faust?", ("He was born in Frankfurt.",), "Goethe", ("Schiller", "Heine"), "HUM:HUMAN")
    fresh = EmbeddedConvergence(encoder).values([replace(ITEM, hints=()), other, ITEM])
    assert fresh == [[], *model.values([other]), values]


@pytest.mark.parametrize(
    "odd",
    [
        *({"distractors": ()}, {"distractors": ("Paris",)}, {"gold": "1,234"}),
        *({"hints": ("",), "coarse": None}, {"hints": ("It is.",) * 3}),
    ],
)
def test_odd_questions_get_values(model: EmbeddedConvergence, encoder, odd: dict) -> None:
    item = replace(ITEM, **odd)
    assert np.isfinite(features(item, encoder)).all()
    assert all(0 <= value <= 1 for value in model.values([item])[0])


def test_features_by_hand(encoder) -> None:
    row = dict(zip(NAMES, features(ITEM, encoder)[3], strict=True))
    assert (row["hint_words"], row["hint_capitals"], row["hint_numbers"], row["hint_year"]) == (8, 1, 1, 1)
    assert (row["question_hints"], row["question_rivals"], row["question_gold_words"]) == (5, 5, 1)
    assert (row["question_is_LOC"], row["question_is_HUM"], row["hint_place"]) == (1, 0, 0.6)
    cosines = encoder.encode([ITEM.hints[3]])[0] @ encoder.encode(["Paris", *ITEM.distractors]).T
    assert row["name_gold"] == pytest.approx(cosines[0], abs=1e-6)
    assert row["name_lead"] == pytest.approx(cosines[0] - cosines[1:].mean(), abs=1e-6)
    assert row["name_above"] == pytest.approx((cosines[1:] >= cosines[0]).mean())


def test_the_prediction_is_the_weighted_sum_of_likenesses() -> None:
    lists = {
        "features": [[1.0], [-1.0]], "hints": [[1.0, 0.0], [0.0, 1.0]], "golds": [[1.0, 1.0]], "gold": [0, 0],
        "weights": [0.5, -0.25], "mean": [10.0], "scale": [2.0], "widths": [1.0, 2.0, 3.0], "base": 0.4,
    }  # fmt: skip
    arrays = {name: np.array(values) for name, values in lists.items()}
    # x = 12 is 1 after standardising: distances 0 and 4; hint (1, 0): 0 and 2; product (1, 0): 0 and 2.
    expected = 0.4 + 0.5 * 3 - 0.25 * (math.exp(-4) + math.exp(-4) + math.exp(-6))
    values = KernelRidge(arrays).predict(np.array([[12.0]]), np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]))
    assert values[0] == pytest.approx(expected, abs=1e-12)
