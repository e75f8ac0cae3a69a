"""The rule that stops, and the promise; bounds against hand-worked cases, published figures and all cases of a small
population."""

import math

import numpy as np
import pytest
from scipy.stats import beta, hypergeom

from quit.stages.labelling.passages import passage_count, permutation_table
from quit.stages.selection import ErrorGuarantee, Reason, select
from quit.stages.selection.rounds import Answered, audit_size, draw_passages, look, predictions, upper_bound

HINTS = 4
PASSAGES = passage_count(HINTS)


class Labelers:
    """Two labelers in waves: each passage of label 2 is accepted from the first or the second."""

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = labels
        self.second = np.random.default_rng(0).random(labels.shape) < 0.3
        self.asked = np.zeros(labels.shape, dtype=bool)

    def __call__(self, mask: np.ndarray) -> np.ndarray:
        assert not (mask & self.asked).any()
        self.asked |= mask
        answers = np.full((2, *mask.shape), -1, dtype=np.int8)
        first = self.labels & ~self.second
        answers[0][mask] = first[mask]
        answers[1][mask & ~first] = self.labels[mask & ~first]
        return answers


def _draw(labels: np.ndarray, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(labels.shape)


def _select(labels: np.ndarray, promise: ErrorGuarantee, seed: int, labelers: Labelers | None = None, **more):
    ids = [f"q{number:03d}" for number in range(len(labels))]
    return select(ids, HINTS, labelers or Labelers(labels), promise, draw=_draw(labels, seed), **more)


def _usual(questions: int, seed: int = 0) -> np.ndarray:
    """Return labels of questions of which half are never answered, and half where one hint is read, with exceptions."""
    rng = np.random.default_rng(seed)
    key = rng.integers(0, 2 * HINTS, questions)
    names = permutation_table(HINTS).permutation.to_pylist()
    labels = np.array([[str(hint) in name for name in names] for hint in key])
    return labels ^ (rng.random(labels.shape) < 0.01)


def test_a_look_by_hand() -> None:
    # Ten passages predicted 1, five of them in the audit, none wrong: at most 3 of the ten are missed.
    # Ten predicted 2, all in the audit, one wrong: the bound is that one, which is asked. So 3/20 and 0/20.
    probability = np.repeat([[0.2], [0.5]], 10, axis=1)
    audit = np.array([[True] * 5 + [False] * 5, [True] * 10])
    label_2 = np.array([[False] * 10, [True] * 9 + [False]])
    evidence = np.zeros((2, 10), dtype=bool)
    options = ErrorGuarantee(error=0.15, confidence=0.9, looks=(0.5,))  # two bounds at one look: 5% each
    seen = look(evidence, probability, audit, label_2, options)
    assert (seen.asked, seen.audit, seen.missed, seen.false) == (15, 15, 0, 1)
    assert (seen.missed_bound, seen.false_bound, seen.stopped) == (0.15, 0.0, True)
    stricter = ErrorGuarantee(error=0.149, confidence=0.9, looks=(0.5,))
    assert not look(evidence, probability, audit, label_2, stricter).stopped


def test_evidence_leaves_the_audit_which_has_the_smallest_draws() -> None:
    evidence, audit = np.array([[True] * 5 + [False] * 5]), np.array([[True, False] * 5])
    seen = look(evidence, np.zeros((1, 10)), audit, np.zeros((1, 10), dtype=bool), ErrorGuarantee(looks=(0.5,)))
    assert (seen.asked, seen.audit) == (7, 2)
    assert draw_passages(np.array([[0.3, 0.1], [0.1, 0.9]]), 2).tolist() == [[False, True], [True, False]]


def test_a_collection_with_one_label_needs_the_audit_and_the_first_look() -> None:
    labels = np.zeros((40, PASSAGES), dtype=bool)
    selection = _select(labels, ErrorGuarantee(), 1)
    [only] = selection.rounds
    assert only.stopped and only.asked < 0.25 * labels.size
    assert (selection.probability[selection.reason == Reason.NOT_ASKED] < 0.5).all()


def test_coin_flips_are_all_asked() -> None:
    labels = np.random.default_rng(5).random((30, PASSAGES)) < 0.5
    labelers = Labelers(labels)
    selection = _select(labels, ErrorGuarantee(), 2, labelers)
    *earlier, last = selection.rounds
    assert (last.asked, last.missed_bound, last.false_bound, last.stopped) == (labels.size, 0, 0, True)
    assert labelers.asked.all() and not any(one.stopped for one in earlier)
    assert (selection.reason == Reason.EXACT).any() and np.isnan(selection.probability).all()


def test_what_is_asked_has_a_reason_and_the_rest_a_probability() -> None:
    labels = _usual(60)
    labelers = Labelers(labels)
    options = ErrorGuarantee(error=0.1)
    selection = _select(labels, options, 3, labelers)
    assert ((selection.reason != Reason.NOT_ASKED) == labelers.asked).all()
    assert (np.isnan(selection.probability) == labelers.asked).all()
    assert ((selection.reason == Reason.AUDIT) == draw_passages(_draw(labels, 3), options.audit_of(labels.size))).all()
    assert selection.rounds[-1].asked == labelers.asked.sum() < 0.6 * labels.size


def test_the_same_twice_and_evidence_that_does_not_depend_on_the_audit() -> None:
    labels = _usual(20)
    tokens = np.random.default_rng(1).integers(8, 30, (20, HINTS + 1)).astype(float)
    first, second = (_select(labels, ErrorGuarantee(), 4, prompt_tokens=tokens) for _ in range(2))
    assert first.probability.tobytes() == second.probability.tobytes()
    assert (first.reason == second.reason).all()
    assert first.rounds == second.rounds
    paths = []
    for seed in (5, 6):
        answered = Answered(Labelers(labels), labels.shape)
        answered.add(draw_passages(_draw(labels, seed), 300))
        paths.append(list(predictions(answered, HINTS, (0.1, 0.2), tokens)))
    for one, other in zip(*paths, strict=True):
        assert (one[0] == other[0]).all() and (one[1] == other[1]).all()


@pytest.mark.slow
def test_the_promise_over_repetitions() -> None:
    labels = _usual(60, seed=7)
    kept = early = 0
    for seed in range(20):
        selection = _select(labels, ErrorGuarantee(error=0.08), seed)
        last, rest = selection.rounds[-1], selection.reason == Reason.NOT_ASKED
        predicted = selection.probability >= 0.5
        missed, false = (rest & labels & ~predicted).mean(), (rest & ~labels & predicted).mean()
        kept += missed <= last.missed_bound and false <= last.false_bound and missed + false <= 0.08
        early += bool(rest.any())
    assert kept >= 19 and early >= 15


@pytest.mark.parametrize("questions", [1, 2])
@pytest.mark.parametrize("hints", [1, 2, 5])
def test_few_questions_and_hints(questions: int, hints: int) -> None:
    labels = np.zeros((questions, passage_count(hints)), dtype=bool)
    labels[0] = True
    selection = select(list("ab")[:questions], hints, Labelers(labels), ErrorGuarantee(), draw=_draw(labels, 1))
    assert selection.rounds[-1].stopped


def test_what_cannot_be_selected() -> None:
    labels = np.zeros((2, PASSAGES), dtype=bool)
    with pytest.raises(ValueError, match="ascending"):
        select(["b", "a"], HINTS, Labelers(labels), ErrorGuarantee(), draw=_draw(labels, 1))
    with pytest.raises(ValueError, match="shape"):
        select(["a", "b"], HINTS, Labelers(labels), ErrorGuarantee(), draw=np.zeros((2, 3)))


def test_hand_worked() -> None:
    # None of 5 drawn from 10 is wrong. With 3 wrong that has probability C(7,5)/C(10,5) = 21/252 = 0.083, with 4 wrong
    # C(6,5)/C(10,5) = 6/252 = 0.024: at 5% the bound is 3, at 1% (5 wrong: 1/252 = 0.004) it is 4.
    assert upper_bound(0, 5, 10, 0.05) == 3
    assert upper_bound(0, 5, 10, 0.01) == 4
    # One of 2 drawn, and it is not wrong: with 1 wrong that has probability 1/2, which is not above 1/2.
    assert upper_bound(0, 1, 2, 0.5) == 0


@pytest.mark.parametrize(("wrong", "sample"), [(0, 50), (3, 200), (17, 400), (40, 1000)])
def test_a_large_population_is_clopper_and_pearson(wrong: int, sample: int) -> None:
    population = 2_000_000
    exact = float(beta.ppf(0.975, wrong + 1, sample - wrong))
    assert upper_bound(wrong, sample, population, 0.025) / population == pytest.approx(exact, rel=2e-3)


def test_nothing_is_left_to_bound_where_all_are_drawn() -> None:
    assert upper_bound(4, 30, 30, 0.01) == 4
    assert upper_bound(0, 0, 30, 0.01) == 30


def test_coverage_in_every_case_of_a_small_population() -> None:
    population, sample, alpha = 40, 13, 0.05
    for wrong in range(population + 1):
        below = [
            hypergeom.pmf(found, population, wrong, sample)
            for found in range(max(0, sample - population + wrong), min(sample, wrong) + 1)
            if upper_bound(found, sample, population, alpha) < wrong
        ]
        assert sum(below) <= alpha


def test_the_least_audit_can_show_the_promise_and_a_smaller_one_cannot() -> None:
    population, error, alpha = 3_000, 0.05, 0.0025
    least = 2 * math.log(1 / alpha) / error
    size = audit_size(1_000, error, alpha)
    assert size == math.ceil(1.25 * least)
    assert 2 * upper_bound(0, size, population, alpha) / population <= error
    assert 2 * upper_bound(0, round(0.8 * least), population, alpha) / population > error


def test_the_audit_grows_with_the_build_and_is_never_more_than_all() -> None:
    sizes = [audit_size(passages, 0.05, 0.0025) for passages in (100, 3_250, 35_100, 2_630_875)]
    assert sizes[0] == 100
    assert sizes == sorted(sizes)
    assert sizes[-1] < 0.005 * 2_630_875
