"""Linear layers in whole numbers, against sums in Python's own."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from quit.models import linear

NUMBERS = np.random.default_rng(7)
AWKWARD = {
    "nothing": np.zeros(384),
    "all the same": np.full(384, 3.0),
    "all below zero": -1.0 - NUMBERS.random(384),
    "one far out": np.r_[NUMBERS.standard_normal(383), 400.0],
    "tiny": NUMBERS.standard_normal(384) * 1e-20,
    "as usual": NUMBERS.standard_normal(384),
}


def layer_of(terms: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(terms, outputs).requires_grad_(False)
    layer.weight.copy_(torch.from_numpy(NUMBERS.standard_normal((outputs, terms)) / 20))
    return layer


@torch.inference_mode()
def output(layer: nn.Linear, rows: np.ndarray) -> np.ndarray:
    return linear.linear(layer, torch.from_numpy(rows.astype(np.float32))).numpy()


def test_sums_are_those_of_whole_numbers() -> None:
    """The reference: each row and each output's weights as whole multiples of a step, added up in 64 bits."""
    layer, rows = layer_of(1536, 24), NUMBERS.gamma(0.3, size=(40, 1536)).astype(np.float32) - np.float32(0.1)
    weights, one = layer.weight.numpy(), np.float32(1)
    steps = np.abs(weights).max(axis=1) * np.float32(1 / 63)
    whole = np.rint(weights / steps[:, None]).astype(np.int64)
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    step = (high - low) * np.float32(1 / 254)
    middle = np.rint(low * (one / step))
    x = np.rint(rows * (one / step)) - middle
    assert np.abs(whole).max() == 63 and x.min() == 0 and x.max() <= 255
    sums = ((x + middle).astype(np.int64) @ whole.T).astype(np.float32)
    assert (output(layer, rows) == sums * step * steps + layer.bias.numpy()).all()


@pytest.mark.parametrize("row", AWKWARD.values(), ids=AWKWARD)
def test_outputs_are_near_those_of_floats_in_any_company(row: np.ndarray) -> None:
    layer, rows = layer_of(384, 24), np.stack([row, *NUMBERS.standard_normal((4, 384))])
    computed, floats = output(layer, rows), rows @ layer.weight.double().numpy().T + layer.bias.double().numpy()
    spread = np.abs(rows).max(axis=1, keepdims=True) * np.abs(layer.weight.numpy()).max()
    assert (np.abs(computed - floats) <= spread * 0.02 * np.sqrt(384) + 1e-6).all()
    assert output(layer, rows[:1]).tobytes() == computed[:1].tobytes()


def test_a_changed_layer_answers_with_its_new_weights() -> None:
    layer, rows = layer_of(384, 24), NUMBERS.standard_normal((3, 384))
    before = output(layer, rows) - layer.bias.numpy()
    layer.weight.mul_(2)
    assert (output(layer, rows) - layer.bias.numpy()) == pytest.approx(before * 2, rel=1e-4, abs=1e-4)


def test_heads_are_exact_sums_of_rounded_numbers() -> None:
    layer, rows = layer_of(768, 3), NUMBERS.standard_normal((4, 768)).astype(np.float32)
    with torch.inference_mode():
        computed = linear.exact_linear(layer, torch.from_numpy(rows)).numpy()
    whole = [np.rint(numbers.astype(float) * 2**16).astype(int) for numbers in (rows, layer.weight.numpy())]
    for at, value in np.ndenumerate(computed):
        exact = Fraction(int(whole[0][at[0]] @ whole[1][at[1]]), 2**32) + Fraction(layer.bias[at[1]].item())
        assert value == np.float32(float(exact))


@pytest.mark.parametrize("terms", [384, 1536])
def test_every_way_gives_the_same_bits(monkeypatch, terms: int) -> None:
    layer, rows = layer_of(terms, 24), NUMBERS.standard_normal((130, terms))
    outputs = set()
    for way in linear._WAYS:
        monkeypatch.setattr(linear, "_fastest", lambda way=way: way)
        linear._whole_of.clear()
        outputs.add(output(layer, rows).tobytes())
    linear._whole_of.clear()
    assert len(outputs) == 1


def test_a_way_that_is_not_exact_does_not_serve(monkeypatch) -> None:
    monkeypatch.setattr(torch, "_int_mm", lambda left, right: left.int() @ right.int() + 1)
    monkeypatch.setattr(linear, "_seconds", lambda product, rows: 0.0)  # the first that is exact
    assert linear._fastest.__wrapped__() is not linear._signed
    monkeypatch.delattr(torch, "_int_mm")
    assert linear._fastest.__wrapped__() is not linear._signed
