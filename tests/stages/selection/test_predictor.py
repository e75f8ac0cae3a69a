"""What the predictor sees, and what it must not."""

import numpy as np
import pytest

from quit.stages.labelling.passages import permutation_table
from quit.stages.selection.predictor import features, predict, relations, similarity

HINTS = 3
RNG = np.random.default_rng(3)
SHAPE = (9, len(permutation_table(HINTS)))
LABELS = RNG.random(SHAPE) < 0.4
FIRM = np.where(RNG.random(SHAPE) < 0.5, 1.0, 0.5).astype(np.float32)
KNOWN = RNG.random(SHAPE) < 0.5


def _names(row: np.ndarray) -> set[str]:
    names = permutation_table(HINTS).permutation.to_pylist()
    return {name for name, related in zip(names, row, strict=True) if related}


def test_neighbours_of_a_passage_by_hand() -> None:
    row = permutation_table(HINTS).permutation.to_pylist().index("01")
    by_kind = ("10", "", "0 012", "0 1", "012 021 102 120 201 210", "1 021 201", "02 20 12 21")
    assert [_names(kind[row]) for kind in relations(HINTS)] == [set(names.split()) for names in by_kind]


def test_similarity_by_hand() -> None:
    place = permutation_table(HINTS).permutation.to_pylist().index
    alike = similarity(HINTS)
    assert (alike == alike.T).all()
    for one, other, value in (("01", "01", 1), ("01", "10", 0.8), ("01", "021", 1 / 8), ("0", "12", 0.8 / 8**3)):
        assert alike[place(one), place(other)] == pytest.approx(value, abs=2**-25)


def test_features_by_hand() -> None:
    """Two hints: passages 0, 01, 1 and 10. Passage 0 has label 2 by the second labeler, 01 has label 1."""
    labels, evidence = np.array([[True, False, False, False]]), np.array([[True, True, False, False]])
    rate = (1 + 0.4) / (2 + 1)
    beside_01, beside_0 = 0.5 * rate / 1.5, (1 + 0.5 * rate) / 1.5
    near, distance = 0.8 / 8**2, 0.8 / 8**2 + 1 / 8
    shares = [*[rate] * 5, beside_01, beside_01, beside_0, (near + 0.05 * rate) / (distance + 0.05)]
    expected = [*(np.log(share / (1 - share)) for share in shares), 0.5 * near / (near + 0.05), 1]
    assert features(labels, 0.5 * labels, evidence, 2, 0.4)[0, 2] == pytest.approx(expected, rel=1e-5)


def test_a_passages_own_answer_is_in_none_of_its_features() -> None:
    before = features(LABELS, FIRM, KNOWN, HINTS, 0.4)
    places = np.argwhere(KNOWN)[::5]
    assert len(places) > 10
    for question, passage in places:
        flipped, firm, unknown = LABELS.copy(), FIRM.copy(), KNOWN.copy()
        flipped[question, passage] ^= True
        firm[question, passage] = 0.25
        after = features(flipped, firm, KNOWN, HINTS, 0.4)
        assert (after[question, passage] == before[question, passage]).all()
        assert (np.delete(after[question], passage, 0) != np.delete(before[question], passage, 0)).any()
        assert (np.delete(after, question, 0) == np.delete(before, question, 0)).all()
        unknown[question, passage] = False
        assert (features(LABELS, FIRM, unknown, HINTS, 0.4)[question, passage] == before[question, passage]).all()


def test_labels_that_are_not_known_change_nothing() -> None:
    assert (predict(LABELS, FIRM, KNOWN, HINTS) == predict(LABELS ^ ~KNOWN, FIRM * KNOWN, KNOWN, HINTS)).all()


def test_the_same_label_everywhere_is_laplaces_rule() -> None:
    evidence = np.zeros(SHAPE, dtype=bool)
    evidence[0, :3] = True
    assert (predict(np.zeros(SHAPE, dtype=bool), FIRM, evidence, HINTS) == 0.2).all()
    assert (predict(np.ones(SHAPE, dtype=bool), FIRM, evidence, HINTS) == 0.8).all()


def test_order_that_does_not_matter_is_learned_and_probabilities_are_calibrated() -> None:
    hints, questions = 4, 60
    subsets = permutation_table(hints).subset.to_pylist()
    codes = np.array([sorted(set(subsets)).index(subset) for subset in subsets])
    labels = (RNG.random((questions, len(set(subsets)))) < 0.3)[:, codes]
    evidence = RNG.random(labels.shape) < 0.4
    probability = predict(labels, labels.astype(np.float32), evidence, hints)
    rest = ~evidence
    assert ((probability >= 0.5) == labels)[rest].mean() > 0.9
    assert probability[rest].mean() == pytest.approx(labels[rest].mean(), abs=0.05)
