"""Probabilities kept on disk: the model's own values, each paid for once, by however many at a time."""

from pathlib import Path

import numpy as np
import pytest

from quit.common.cache import ContentStore
from quit.models.equivalence.cache import CachedEquivalence
from quit.models.protocols import Pair


class Counting:
    """A model whose values are long fractions of what it is asked, and which counts."""

    def __init__(self, identity: str = "counting") -> None:
        self.identity, self.note = identity, None
        self.asked = 0

    def probability(self, pairs):
        self.asked += len(pairs)
        return np.array([1 / (3 + len(pair.question + pair.reference) + 7 * len(pair.candidate)) for pair in pairs])


PAIRS = [Pair("who?", "a" * (number % 5), "b" * number) for number in range(50)]


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "deep" / "kept.sqlite", "probabilities", "Probabilities")


def test_a_second_process_asks_nothing_and_gets_the_same_bits(store: ContentStore) -> None:
    first, second = Counting(), Counting()
    computed = CachedEquivalence(first, store).probability(PAIRS + PAIRS[:9])
    again = CachedEquivalence(second, store).probability(PAIRS + PAIRS[:9])
    assert (first.asked, second.asked) == (50, 0)
    assert computed.tobytes() == again.tobytes() == Counting().probability(PAIRS + PAIRS[:9]).tobytes()
    assert CachedEquivalence(first, store).probability([]).shape == (0,)


def test_no_two_pairs_and_no_two_models_share_a_key(store: ContentStore) -> None:
    parts = [("q", "r", "c"), ("q", "r", "c "), ("q", "rc", ""), ("qr", "", "c"), ("q", "c", "r"), ("Q", "r", "c")]
    for model in (Counting(), Counting("another")):
        for asked, texts in enumerate(parts, start=1):
            CachedEquivalence(model, store).probability([Pair(*texts)])
            assert model.asked == asked, texts


def test_a_fault_of_the_model_is_not_taken_for_one_of_the_file(store: ContentStore) -> None:
    broken = Counting()
    broken.probability = lambda pairs: Path("/no/such/GPU").read_bytes()
    with pytest.raises(OSError, match="GPU"):
        CachedEquivalence(broken, store).probability(PAIRS)
