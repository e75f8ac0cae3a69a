"""Probabilities kept on disk: the model's own values, each paid for once, by however many at a time."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from quit.models.equivalence.cache import CachedEquivalence
from quit.models.protocols import Equivalence, Pair


class Counting:
    """A model whose values are long fractions of what it is asked, and which counts."""

    def __init__(self, identity: str = "counting") -> None:
        self.identity = identity
        self.asked = 0

    def probability(self, pairs):
        self.asked += len(pairs)
        return np.array([1 / (3 + len(pair.question + pair.reference) + 7 * len(pair.candidate)) for pair in pairs])


PAIRS = [Pair("who?", "a" * (number % 5), "b" * number) for number in range(50)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "kept.sqlite"


def test_a_second_process_asks_nothing_and_gets_the_same_bits(path: Path) -> None:
    first, second = Counting(), Counting()
    made = CachedEquivalence(first, path).probability(PAIRS + PAIRS[:9])
    again = CachedEquivalence(second, path).probability(PAIRS + PAIRS[:9])
    assert (first.asked, second.asked) == (50, 0)
    assert made.tobytes() == again.tobytes() == Counting().probability(PAIRS + PAIRS[:9]).tobytes()
    assert isinstance(CachedEquivalence(first, path), Equivalence)
    assert CachedEquivalence(first, path).probability([]).shape == (0,)


def test_another_identity_is_another_model(path: Path) -> None:
    CachedEquivalence(Counting("one"), path).probability(PAIRS)
    other = Counting("two")
    CachedEquivalence(other, path).probability(PAIRS)
    assert other.asked == 50


@pytest.mark.parametrize(
    "other", [Pair("q", "r", "c "), Pair("q", "rc", ""), Pair("qr", "", "c"), Pair("q", "c", "r"), Pair("Q", "r", "c")]
)
def test_no_two_pairs_share_a_key(path: Path, other: Pair) -> None:
    CachedEquivalence(Counting(), path).probability([Pair("q", "r", "c")])
    model = Counting()
    CachedEquivalence(model, path).probability([other])
    assert model.asked == 1


def test_strange_texts_have_keys(path: Path) -> None:
    strange = [Pair("\x00", "\ud800", "'; DROP TABLE probability; --"), Pair("", "", "")]
    cached = CachedEquivalence(Counting(), path)
    assert cached.probability(strange).tolist() == cached.probability(strange).tolist()


def test_threads_and_processes_share_one_file(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tests.models.equivalence.test_cache import *;"
        "p = Path(sys.argv[1]);"
        "[CachedEquivalence(Counting(), p).probability(PAIRS[i:i + 3]) for i in range(50)]"
    )
    root = Path(__file__).parents[3]
    others = [subprocess.Popen([sys.executable, "-c", script, str(path)], cwd=root) for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: CachedEquivalence(Counting(), path).probability(PAIRS[i : i + 5]), range(50)))
    assert [other.wait(timeout=120) for other in others] == [0, 0, 0]
    last = Counting()
    values = CachedEquivalence(last, path).probability(PAIRS)
    assert last.asked == 0 and values.tobytes() == Counting().probability(PAIRS).tobytes()


@pytest.mark.parametrize("harm", ["damaged", "folder", "unwritable"])
def test_a_file_that_cannot_be_used_costs_time_only(path: Path, harm: str, caplog: pytest.LogCaptureFixture) -> None:
    if harm == "unwritable":
        path = Path("/proc/nowhere/kept.sqlite")
    else:
        path.parent.mkdir()
        path.mkdir() if harm == "folder" else path.write_bytes(b"no database at all" * 500)
    model = Counting()
    cached = CachedEquivalence(model, path)
    for _ in range(2):
        assert cached.probability(PAIRS).tobytes() == Counting().probability(PAIRS).tobytes()
    assert model.asked == 100
    assert sum("QUIT_CACHE" in record.message for record in caplog.records) == 1


def test_a_fault_of_the_model_is_not_taken_for_one_of_the_file(path: Path) -> None:
    class Broken(Counting):
        def probability(self, pairs):
            raise OSError("the GPU is gone")

    with pytest.raises(OSError, match="GPU"):
        CachedEquivalence(Broken(), path).probability(PAIRS)
