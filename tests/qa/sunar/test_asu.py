"""Rescoring and semantic sets: hand-computed, and what must hold for all numbers."""

from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.qa.settings import Sunar
from quit.qa.sunar.asu import asu, half_contradictions, rescored, semantic_sets
from quit.qa.sunar.entailment import EquivalentAnswers

ONE_WAY = SimpleNamespace(  # an equivalence model for which only longer answers mean shorter ones
    identity="one way",
    probability=lambda pairs: np.array([float(len(pair.candidate) >= len(pair.reference)) for pair in pairs]),
)


def entailment(*pairs: str) -> Mock:
    """An entailment that knows its pairs."""
    equal = {frozenset(pair) for pair in pairs}
    return Mock(
        identity="pairs",
        mutual=Mock(side_effect=lambda _, *answers: frozenset(answers) in equal),
        contradicts=Mock(side_effect=lambda _, *answers: frozenset(answers) not in equal),
    )


def reader(*answers: str) -> Mock:
    """A reader that samples the same answers."""
    return Mock(identity="fixed", samples=Mock(side_effect=lambda question, texts, m: [*answers[:m]]))


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
    model = entailment("ab", "bc")
    assert semantic_sets("q", ["The Nile", "nile.", "Nile"], model) == [[0, 1, 2]] and not model.mutual.called
    assert semantic_sets("q", ["a", "b", "c", "b"], model) == [[0, 1, 3], [2]]
    pairs_compared = [call.args for call in model.mutual.call_args_list]
    assert ("q", "a", "c") in pairs_compared and ("q", "b", "c") not in pairs_compared


@given(st.lists(st.sampled_from("abcdef"), max_size=10), st.sets(st.sampled_from(["ab", "bc", "cd", "ef"])))
def test_sets_are_a_partition_of_one_to_m(answers: list[str], pairs: set[str]) -> None:
    sets = semantic_sets("q", answers, entailment(*pairs))
    assert sorted(place for each in sets for place in each) == list(range(len(answers)))
    assert len(sets) <= len(set(answers))
    assert bool(sets) == bool(answers)


def test_entailment_in_one_direction_is_not_enough() -> None:
    assert not EquivalentAnswers(ONE_WAY).mutual("q", "Paris", "Paris, France")
    assert EquivalentAnswers(ONE_WAY).mutual("q", "Paris", "Milan")


def test_a_batch_is_read_best_first_and_divided_by_its_sets() -> None:
    fixed = reader("1990", "1991", "1990.", "unknown")
    rescore = asu("when?", lambda rows: [f"text {row}" for row in rows], fixed, entailment(), Sunar(m=4))
    batch = rescore([7, 3], np.array([0.0, np.log(1 / 3)]))
    assert [tuple(call.args[1]) for call in fixed.samples.call_args_list] == [("text 7", "text 3")]
    assert batch.trace == {"s": 3, "sets": [["1990", "1990."], ["1991"], ["unknown"]]}
    assert batch.scores == pytest.approx([0.5 / 3, 0.25 / 3])
    unsampled = asu("q", lambda rows: [""], reader(), entailment(), Sunar())([1], np.array([0.0]))
    assert unsampled.trace["s"] == 1 and unsampled.scores == pytest.approx([0.5]), "nothing is punished"


@pytest.mark.parametrize(
    ("answers", "divisor"),
    [("", 0.5), ("aaa", 0.5), ("ab", 0.5), ("ac", 0.5), ("acd", 1.5), ("abcc", 0.5), ("abcd", 2)],
)
def test_the_authors_code_divides_by_half_the_contradicting_pairs(answers: str, divisor: float) -> None:
    """a and b, b and c do not contradict each other; all other pairs do."""
    assert half_contradictions("q", answers, entailment("ab", "bc")) == divisor
    settings = Sunar(literal=True, divisor="contradictions")
    batch = asu("q", lambda rows: [""], reader(*answers), entailment("ab", "bc"), settings)([1], np.array([-3.0]))
    assert batch.scores == pytest.approx([-3 / divisor]) and batch.trace["s"] == divisor
