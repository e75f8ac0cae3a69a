"""Agreement against published worked examples and against scikit-learn."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quit.evaluate.agreement import alpha_of, alpha_of_counts, cohen_kappa, kappas, pair_agreements

# Krippendorff, Computing Krippendorff's alpha-reliability (2011), section C: four observers, twelve units, gaps;
# nominal alpha 0.743.
_GAP = None
KRIPPENDORFF = {
    "A": [1, 2, 3, 3, 2, 1, 4, 1, 2, _GAP, _GAP, _GAP],
    "B": [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _GAP, 3],
    "C": [_GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _GAP],
    "D": [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _GAP],
}


def _alpha(units: Iterable[Sequence[int]]) -> float | None:
    return alpha_of_counts((Counter(values), 1) for values in units)


def test_alpha_is_the_published_one() -> None:
    units = {who: enumerate(row) for who, row in KRIPPENDORFF.items()}
    judged = {who: {unit: value for unit, value in row if value is not _GAP} for who, row in units.items()}
    assert alpha_of(judged) == pytest.approx(0.743, abs=0.0005)
    # The same paper, section A: binary data, two observers, ten units, alpha 0.095.
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert _alpha(zip(first, second, strict=True)) == pytest.approx(0.095, abs=0.0005)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_kappa_is_scikit_learns(pairs) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    first, second = [left for left, _ in pairs], [right for _, right in pairs]
    mine = cohen_kappa(Counter(zip(first, second, strict=True)))
    if 1 in (len({*first}), len({*second})):
        assert mine is None
    else:
        assert mine == pytest.approx(metrics.cohen_kappa_score(first, second))


def test_what_is_not_defined_is_none() -> None:
    assert cohen_kappa({}) is None
    for pairs in ({(1, 1): 2}, {(1, 1): 2, (1, 0): 1}, {(0, 1): 2, (1, 1): 1, (0, 0): 0}):
        cells = [[[pairs.get(pair, 0) for pair in ((1, 1), (1, 0), (0, 1), (0, 0))]]]
        assert cohen_kappa(pairs) is None and kappas(np.array(cells), 0)[0][0] is None
    assert _alpha([]) is None and _alpha([[True], [False]]) is None
    assert _alpha([[True, True], [True, True]]) is None


def test_pairs_count_only_what_both_judged() -> None:
    judged = {"a": {1: True, 2: False, 3: True}, "b": {2: False, 3: False, 4: True}, "c": {9: True}}
    [pair] = pair_agreements(judged)
    assert (pair.first, pair.second, pair.items, pair.agreement) == ("a", "b", 2, 0.5)


def test_kappas_of_groups_are_each_ones_and_their_intervals_hold() -> None:
    """Two judges agree at a rate of each question's own; the population's kappa is that of 200,000 questions."""
    dice = np.random.default_rng(0)

    def drawn(questions: int) -> np.ndarray:
        noise = dice.beta(2, 8, (questions, 2)) / 2
        alike = 1 - noise.sum(axis=1)
        cells = np.stack([0.3 * alike, *noise.T, 0.7 * alike], axis=1)
        return dice.multinomial(6, cells / cells.sum(axis=1, keepdims=True))

    [[truth, *_]] = kappas(drawn(200_000)[:, None], 0)
    samples = np.stack([drawn(60) for _ in range(300)], axis=1)
    rows = kappas(samples, 400)
    for (value, *_), cells in zip(rows, samples.sum(axis=0).tolist(), strict=True):
        pairs = dict(zip(((1, 1), (1, 0), (0, 1), (0, 0)), cells, strict=True))
        assert value == pytest.approx(cohen_kappa(pairs))
    assert 0.91 < np.mean([low <= truth <= high for _, low, high in rows]) < 0.98
    one_says_yes, alike = [3, 1, 0, 0], [1, 0, 0, 1]
    assert kappas(np.array([[one_says_yes, alike]]), 5) == [[None, None, None], [1.0, 1.0, 1.0]]
