"""Linear layers in whole numbers: the same bits on every processor, and fast.

A sum of floats depends on the order of additions, which MKL and oneDNN choose by processor. A sum of whole numbers is
exact in any order. So each row and each output's weights are rounded to whole multiples of a step of their own, the
products are added up in whole numbers, and the rest is multiplications and additions of single numbers, which IEEE 754
defines to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn import functional

LEVELS = 63
"""Highest whole weight. Processors without VNNI add two products of 8 bits in 16 bits: higher ones would overflow."""

_ONEDNN = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512"
_whole_of: WeakKeyDictionary[nn.Linear, tuple[int, _Whole]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Rounding:
    """How a layer's weights are rounded better than each to its nearest (``training/rounding.py``)."""

    scale: torch.Tensor
    """What each input is divided by and its weights are multiplied by, shape (in,)."""
    changes: torch.Tensor
    """What is added to the nearest whole weights, int8, shape (out, in)."""
    shift: torch.Tensor
    """What is added to the bias, shape (out,)."""


@dataclass(frozen=True, slots=True)
class _Whole:
    weights: torch.Tensor  # int8, shape (in, out)
    steps: torch.Tensor  # each output's
    sums: torch.Tensor  # each output's, of its weights
    bias: torch.Tensor
    per_scale: torch.Tensor | None


@cache
def exact() -> bool:
    """Return whether torch multiplies matrices of whole numbers exactly here."""
    numbers = torch.Generator().manual_seed(0)
    for terms, outputs in ((384, 1152), (1536, 384)):
        rows = torch.randint(-128, 128, (128, terms), dtype=torch.int8, generator=numbers)
        weights = torch.randint(-LEVELS, LEVELS + 1, (outputs, terms), dtype=torch.int8, generator=numbers)
        rows[0], weights[0] = -128, LEVELS  # the highest sum
        try:
            product = torch._int_mm(rows, weights.t())
        except (AttributeError, RuntimeError):
            return False
        if not torch.equal(product.double(), rows.double() @ weights.double().t()):
            return False
    return True


def linear(layer: nn.Linear, rows: torch.Tensor) -> torch.Tensor:
    """Return the output of ``layer``, shape (tokens, out), for ``rows``, shape (tokens, in).

    Inference in float32 on a CPU is in whole numbers, all else as torch does it.
    """
    if not (_in_float32_on_cpu(rows) and exact()):
        return functional.linear(rows, layer.weight, layer.bias)
    whole = _whole(layer)
    if whole.per_scale is not None:
        rows = rows * whole.per_scale
    low = rows.amin(dim=1, keepdim=True).clamp_(max=0)
    step = rows.amax(dim=1, keepdim=True).clamp_(min=0).sub_(low).clamp_(min=1e-30).mul_(1 / 254)
    per_step = 1 / step
    middle = low.mul_(per_step).round_().add_(128)
    product = torch._int_mm(rows.mul(per_step).round_().sub_(middle).to(torch.int8), whole.weights)
    return product.float().addcmul_(middle, whole.sums).mul_(step).mul_(whole.steps).add_(whole.bias)


def exact_linear(layer: nn.Linear, rows: torch.Tensor) -> torch.Tensor:
    """Return the output of a small layer, a head: inference in float32 on a CPU rounds to whole multiples of 2^-16, not
    to 8 bits, and adds up in float64."""
    if not _in_float32_on_cpu(rows):
        return functional.linear(rows, layer.weight, layer.bias)
    whole = ((numbers.double() * 2.0**16).round_() for numbers in (rows, layer.weight))
    return functional.linear(*whole).mul_(2.0**-32).add_(layer.bias).float()


def fast_linear(layer: nn.Linear, rows: torch.Tensor) -> torch.Tensor:
    """Return the output of a layer of any width as torch computes it: its last bits depend on the processor.

    By oneDNN where there is AVX-512: on AMD's processors it is twice as fast there as torch's choice, MKL.
    """
    if _ONEDNN and _in_float32_on_cpu(rows):
        return torch.ops.mkldnn._linear_pointwise(rows, layer.weight, layer.bias, "none", [], "")
    return functional.linear(rows, layer.weight, layer.bias)


def gelu(rows: torch.Tensor) -> torch.Tensor:
    """Return the GELU of each number, same shape, (tokens, width).

    Of the transpose, because torch gives one that lies in order to oneDNN, whose GELU depends on the instruction set.
    """
    return functional.gelu(rows.mT).mT


def tanh(rows: torch.Tensor) -> torch.Tensor:
    """Return the hyperbolic tangent of each number, by powers of two: torch leaves its own to MKL."""
    return 1 - 2 / (torch.exp2(rows * (2 * math.log2(math.e))) + 1)


def _in_float32_on_cpu(rows: torch.Tensor) -> bool:
    return rows.dtype == torch.float32 and rows.device.type == "cpu" and torch.is_inference_mode_enabled()


def steps_of(weights: torch.Tensor) -> torch.Tensor:
    """Return each output's step, shape (out,), for weights of shape (out, in)."""
    return weights.abs().amax(dim=1).clamp_(min=1e-30).mul_(1 / LEVELS)


def _whole(layer: nn.Linear) -> _Whole:
    version, whole = _whole_of.get(layer, (-1, None))
    if whole is None or version != layer.weight._version:
        rounding: Rounding | None = getattr(layer, "rounding", None)
        weights = layer.weight * rounding.scale if rounding else layer.weight
        steps = steps_of(weights)
        numbers = (weights / steps[:, None]).round_().to(torch.int8)
        bias = layer.bias + rounding.shift if rounding else layer.bias
        if rounding:
            numbers += rounding.changes
        per_scale = 1 / rounding.scale if rounding else None
        whole = _Whole(numbers.t(), steps, numbers.sum(dim=1, dtype=torch.float32), bias, per_scale)
        _whole_of[layer] = (layer.weight._version, whole)
    return whole
