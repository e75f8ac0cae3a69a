"""Rescoring and semantic sets: hand-computed, and what must hold for all numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.systems.sunar.asu import asu, rescored, semantic_sets
from quit.systems.sunar.entailment import EquivalentAnswers


class Pairs:
    """An entailment that knows its pairs."""

    identity = "pairs"

    def __init__(self, *pairs: str) -> None:
        self._pairs = {frozenset(pair) for pair in pairs}
        self.compared: list[tuple[str, str, str]] = []

    def mutual(self, question: str, one: str, other: str) -> bool:
        self.compared.append((question, one, other))
        return frozenset((one, other)) in self._pairs


class OneWay:
    """An equivalence model for which only longer answers mean shorter ones."""

    identity = "one way"

    def probability(self, pairs):
        return np.array([float(len(pair.candidate) >= len(pair.reference)) for pair in pairs])


class Fixed:
    """A reader that samples the same answers."""

    identity = "fixed"

    def __init__(self, *answers: str) -> None:
        self._answers = answers
        self.read: list[tuple[str, ...]] = []

    def answer(self, question, texts):
        return self._answers[0]

    def samples(self, question, texts, m):
        self.read.append(tuple(texts))
        return list(self._answers[:m])


finite = st.floats(-1e3, 1e3)


def test_rescoring_by_hand() -> None:
    # sigmoid 1/2, 3/4, 1/4
    assert rescored(np.array([0.0, np.log(3.0), -np.log(3.0)]), 2) == pytest.approx([0.25, 0.375, 0.125])
    assert rescored(np.array([3.0, -3.0]), 3, literal=True) == pytest.approx([1.0, -1.0])


@given(st.lists(finite, min_size=1, max_size=16), st.integers(1, 10))
def test_within_a_batch_the_order_stays(scores: list[float], s: int) -> None:
    ranked = np.sort(np.array(scores))
    assert (np.diff(rescored(ranked, s)) >= 0).all()
    assert ((rescored(ranked, s) >= 0) & (rescored(ranked, s) <= 1 / s)).all()


def test_sets_are_greedy_against_first_members() -> None:
    # a = b and b = c but not a = c: c is compared with a alone, so it opens a set of its own.
    entailment = Pairs("ab", "bc")
    assert semantic_sets("q", ["The Nile", "nile.", "Nile"], entailment) == [[0, 1, 2]] and entailment.compared == []
    assert semantic_sets("q", ["a", "b", "c", "b"], entailment) == [[0, 1, 3], [2]]
    assert ("q", "a", "c") in entailment.compared and ("q", "b", "c") not in entailment.compared


@given(st.lists(st.sampled_from("abcdef"), max_size=10), st.sets(st.sampled_from(["ab", "bc", "cd", "ef"])))
def test_sets_are_a_partition_of_one_to_m(answers: list[str], pairs: set[str]) -> None:
    sets = semantic_sets("q", answers, Pairs(*pairs))
    assert sorted(place for each in sets for place in each) == list(range(len(answers)))
    assert len(sets) <= len(set(answers))
    assert bool(sets) == bool(answers)


def test_entailment_in_one_direction_is_not_enough() -> None:
    assert not EquivalentAnswers(OneWay()).mutual("q", "Paris", "Paris, France")
    assert EquivalentAnswers(OneWay()).mutual("q", "Paris", "Milan")


def test_a_batch_is_read_best_first_and_divided_by_its_sets() -> None:
    reader = Fixed("1990", "1991", "1990.", "unknown")
    rescore = asu("when?", lambda rows: [f"text {row}" for row in rows], reader, Pairs(), m=4)
    batch = rescore([7, 3], np.array([0.0, np.log(1 / 3)]))
    assert reader.read == [("text 7", "text 3")]
    assert batch.trace == {"s": 3, "sets": [["1990", "1990."], ["1991"], ["unknown"]]}
    assert batch.scores == pytest.approx([0.5 / 3, 0.25 / 3])
    unsampled = asu("q", lambda rows: [""], Fixed(), Pairs(), m=10)([1], np.array([0.0]))
    assert unsampled.trace["s"] == 1 and unsampled.scores == pytest.approx([0.5]), "nothing is punished"
