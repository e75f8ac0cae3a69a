"""Statistics of agreement, against scipy and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import matthews_corrcoef, roc_auc_score

from quit.evaluate.association import associate, auc_minus_half, matthews, pearson, spearman

VALUES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=4, max_size=40)


@given(VALUES)
def test_they_are_what_other_tools_compute(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(each) for each in zip(*pairs, strict=True))
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)
    else:
        assert pearson(x, y) is None
    positive = y > 1
    if 0 < positive.sum() < len(y):
        assert auc_minus_half(x, positive) == pytest.approx(roc_auc_score(positive, x) - 0.5)
        if len(set(x > 2)) == 2:
            assert matthews(x > 2, positive) == pytest.approx(matthews_corrcoef(positive, x > 2))
    else:
        assert auc_minus_half(x, positive) is None and matthews(x > 2, positive) is None


def test_a_true_association_is_told_from_chance() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 80)
    real = associate(labels + rng.normal(size=80), labels, pearson, seed=1, resamples=200)
    none = associate(rng.normal(size=80), labels, pearson, seed=1, resamples=200)
    assert real["low"] is not None and real["value"] is not None and 0 < real["low"] < real["value"] < real["high"]
    assert real["p"] == pytest.approx(1 / 201) and none["p"] > 0.05 and none["low"] < 0 < none["high"]


def test_groups_widen_the_interval() -> None:
    rng = np.random.default_rng(3)
    labels, values = rng.integers(0, 2, 20), rng.normal(size=20)
    pairs = np.repeat(values + labels, 10), np.repeat(labels, 10)
    once, grouped = (
        associate(*pairs, pearson, seed=1, resamples=200, groups=groups)
        for groups in (None, np.repeat(np.arange(20), 10))
    )
    assert grouped["high"] - grouped["low"] > 1.5 * (once["high"] - once["low"])


UNRELATED = {
    "labels by group and item": lambda rng, group: _grouped(rng, group) > 0,
    "one label per group": lambda rng, group: rng.normal(size=group[-1] + 1)[group] > 0,
    "a question and its sub-questions": lambda rng, group: np.diff(group, prepend=-1),
}


def _grouped(rng: np.random.Generator, group: np.ndarray) -> np.ndarray:
    return rng.normal(size=group[-1] + 1)[group] + 0.5 * rng.normal(size=len(group))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[4] * 30, [3, 4, 5] * 10], ids=["equal", "unequal"])
@pytest.mark.parametrize("kind", UNRELATED)
def test_unrelated_labels_of_groups_have_a_p_below_5_percent_in_5_percent(kind: str, sizes: list[int]) -> None:
    """Binomial: of 800 tests at 0.05, 3% to 7% are 2.6 standard deviations either way."""
    rng, group = np.random.default_rng(0), np.repeat(np.arange(30), sizes)

    def covariance(values: np.ndarray, labels: np.ndarray) -> float:
        return float((values - values.mean()) @ labels)

    p_values = [
        associate(_grouped(rng, group), UNRELATED[kind](rng, group), covariance, seed=seed, resamples=19, groups=group)[
            "p"
        ]
        for seed in range(800)
    ]
    assert 0.03 < np.mean(np.array(p_values) <= 0.05) < 0.07


@pytest.mark.parametrize("unit", ["group", "item"])
def test_an_association_of_groups_or_inside_them_is_found(unit: str) -> None:
    rng, group = np.random.default_rng(0), np.repeat(np.arange(30), 4)
    labels = rng.permutation(np.arange(30) % 2)[group] if unit == "group" else np.tile([1, 0, 0, 0], 30)
    association = associate(labels + _grouped(rng, group), labels, spearman, seed=0, resamples=200, groups=group)
    assert association["p"] < 0.05 and association["low"] > 0


def test_one_group_has_no_interval() -> None:
    association = associate([1.0, 2.0, 3.0], [1, 3, 2], pearson, seed=0, groups=["q"] * 3)
    assert association["value"] == pytest.approx(0.5) and (association["low"], association["high"]) == (None, None)


def test_nothing_to_say() -> None:
    assert associate([], [], pearson, seed=0)["value"] is None
    assert associate([1, 1], [0, 1], pearson, seed=0)["p"] is None
    with pytest.raises(ValueError, match="2 values against 1"):
        associate([1, 2], [1], pearson, seed=0)


@pytest.mark.parametrize("items", [6, 200])
def test_no_interval_where_resamples_lack_the_statistic(items: int) -> None:
    # One positive in six: a resample lacks it with probability (5/6)^6 = 33%; in 200 items, a third of them positive,
    # with (2/3)^200.
    labels = np.arange(items) % 6 < (1 if items == 6 else 2)
    predicted = np.arange(items) % 6 < 2
    association = associate(predicted, labels, matthews, seed=1, resamples=200)
    assert association["value"] == pytest.approx(matthews_corrcoef(labels, predicted)) and association["p"] is not None
    if items == 6:
        assert association["low"] is None and association["high"] is None
    else:
        assert association["low"] == association["high"] == 1.0


def test_spearman_against_a_worked_example() -> None:
    # Ranks 1 2.5 2.5 4 against 1 3 2 4: 1 - 6 * 0.5 / 60 without ties; with mean ranks 0.9487 (scipy 1.16 gives the
    # same).
    assert spearman([1, 2, 2, 3], [10, 30, 20, 40]) == pytest.approx(0.9486832980505138)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1], [1, 2]) is None
