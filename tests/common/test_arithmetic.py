"""Products, exponentials and logarithms: against exact sums and Python's own functions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from quit.common.arithmetic import ARITHMETIC, OWN, arithmetic, exp, log, log2, on_grid, products, sum_in_order, unit

NUMBERS = np.random.default_rng(5)


def vectors(count: int) -> np.ndarray:
    return unit(NUMBERS.standard_normal((count, 384)).astype(np.float32))


def test_products_of_unit_vectors_are_exact_before_they_are_rounded() -> None:
    left, right = vectors(4), vectors(5)
    exact = [
        [sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y, strict=True)) for y in right] for x in left
    ]
    assert (products(left, right) == np.array([[float(value) for value in row] for row in exact], np.float32)).all()
    assert (products(left[0], right) == products(left, right)[0]).all()


def test_the_order_of_a_product_s_terms_changes_nothing() -> None:
    left, right = vectors(20), vectors(30)
    order = NUMBERS.permutation(384)
    assert (left.astype(float) @ right.T.astype(float) == left[:, order].astype(float) @ right[:, order].T).all()
    assert products(left[:, order], right[:, order]).tobytes() == products(left, right).tobytes()


def test_a_sum_is_the_same_on_every_python() -> None:
    assert sum_in_order([0.1] * 10) == 0.9999999999999999 and sum_in_order([]) == 0.0
    assert sum_in_order(iter([1e16, 1.0, -1e16])) == 0.0


def test_unit_vectors_have_length_1_and_lie_on_the_grid() -> None:
    rows = vectors(50)
    assert np.linalg.norm(rows.astype(np.float64), axis=1) == pytest.approx(1, abs=1e-6)
    assert (rows.astype(np.float64) * 2**24 == np.rint(rows.astype(np.float64) * 2**24)).all()
    assert not unit(np.zeros((1, 384), np.float32)).any()


def test_on_grid_rounds_to_the_nearest_multiple() -> None:
    assert on_grid(np.array([0.3, -0.3, 0.5]), 2).tolist() == [0.25, -0.25, 0.5]
    assert on_grid(np.array([0.3], np.float32)).dtype == np.float32


def test_functions_are_those_of_the_c_library_to_the_last_bits() -> None:
    powers = NUMBERS.uniform(-700, 700, 20_000)
    assert exp(powers) == pytest.approx([math.exp(power) for power in powers], rel=4e-16, abs=0)
    positive = np.concatenate([NUMBERS.uniform(0, 4, 20_000), exp(powers)])
    assert log(positive) == pytest.approx([math.log(value) for value in positive], rel=3e-16, abs=3e-16)
    assert log2(positive) == pytest.approx([math.log2(value) for value in positive], rel=6e-16, abs=6e-16)


def test_functions_at_their_limits() -> None:
    assert exp(np.array([-np.inf, -1000.0, 0.0, 1000.0])).tolist() == [0.0, 0.0, 1.0, math.inf]
    assert log2(2.0 ** np.arange(-5, 6)).tolist() == list(range(-5, 6))
    assert log(np.array(1.0)) == 0


def test_another_kind_of_machine_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OWN, raising=False)
    assert arithmetic("cuda:1") == f"{ARITHMETIC}-cuda"
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert arithmetic() == f"{ARITHMETIC}-arm64"
    monkeypatch.setenv(OWN, "mine")
    assert arithmetic() == f"{ARITHMETIC}-mine"
