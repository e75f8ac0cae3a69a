"""Linear layers in whole numbers: the same bits on every processor, and fast.

A sum of floats depends on the order of additions, which MKL and oneDNN choose by processor. A sum of whole numbers is
exact in any order. So each row and each output's weights are rounded to whole multiples of a step of their own, the
products are added up in whole numbers, and the rest is multiplications and additions of single numbers, which IEEE 754
defines to the last bit. Of the ways to compute exact products (:data:`_WAYS`) the fastest on this machine serves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn import functional

LEVELS = 63
"""Highest whole weight. Processors without VNNI add two products of 8 bits in 16 bits: higher ones would overflow."""

TRIAL = (32, 384)
"""Rows and outputs of the product by which the ways to compute one are compared."""

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
    product: Callable[[torch.Tensor], torch.Tensor]  # of whole rows, -128 to 127, float32, shape (tokens, in)
    steps: torch.Tensor  # each output's
    sums: torch.Tensor  # each output's, of its weights
    bias: torch.Tensor
    per_scale: torch.Tensor | None


def _signed(weights: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the product with whole weights, int8, shape (out, in), of 8 bits with sign: for processors with VNNI."""
    columns = weights.t()
    return lambda rows: torch._int_mm(rows.to(torch.int8), columns).float()


def _unsigned(weights: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the same of rows without sign, by oneDNN's quantised layer: for processors with AVX2 alone."""
    ones, zeros = torch.ones(len(weights)), torch.zeros(len(weights), dtype=torch.int64)
    packed = torch.ops.onednn.qlinear_prepack(weights, None)

    def product(rows: torch.Tensor) -> torch.Tensor:
        positive = rows.to(torch.int8).view(torch.uint8).bitwise_xor_(128)  # 128 more
        layer = torch.ops.onednn.qlinear_pointwise
        return layer(positive, 1.0, 128, packed, ones, zeros, None, 1.0, 0, torch.float32, "none", [], "")

    return product


def _floats(weights: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the same in float32, which adds up whole numbers exactly below 2^24: for all other processors."""
    numbers = weights.float()
    return lambda rows: functional.linear(rows, numbers)


_WAYS = (_signed, _unsigned, _floats)


@cache
def _fastest() -> Callable[[torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]:
    """Return the way that takes the least time here among those whose products are exact."""
    numbers = torch.Generator().manual_seed(0)
    rows = torch.randint(-128, 128, (TRIAL[0], 1536), generator=numbers).float()
    weights = torch.randint(-LEVELS, LEVELS + 1, (TRIAL[1], 1536), dtype=torch.int8, generator=numbers)
    rows[0], weights[0] = -128, LEVELS  # the highest sum
    exact = rows.double() @ weights.double().t()
    seconds = {}
    for way in _WAYS:
        try:
            product = way(weights)
            if torch.equal(product(rows).double(), exact):
                seconds[way] = min(_seconds(product, rows) for _ in range(3))
        except (AttributeError, RuntimeError):  # this torch, or this processor, has no such operation
            continue
    return min(seconds, key=seconds.__getitem__)


def _seconds(product: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor) -> float:
    start = perf_counter()
    product(rows)
    return perf_counter() - start


def linear(layer: nn.Linear, rows: torch.Tensor) -> torch.Tensor:
    """Return the output of ``layer``, shape (tokens, out), for ``rows``, shape (tokens, in).

    Inference in float32 on a CPU is in whole numbers, all else as torch does it.
    """
    if not _in_float32_on_cpu(rows):
        return functional.linear(rows, layer.weight, layer.bias)
    whole = _whole(layer)
    if whole.per_scale is not None:
        rows = rows * whole.per_scale
    low = rows.amin(dim=1, keepdim=True).clamp_(max=0)
    step = rows.amax(dim=1, keepdim=True).clamp_(min=0).sub_(low).clamp_(min=1e-30).mul_(1 / 254)
    per_step = 1 / step
    middle = low.mul_(per_step).round_().add_(128)
    product = whole.product(rows.mul(per_step).round_().sub_(middle))
    return product.addcmul_(middle, whole.sums).mul_(step).mul_(whole.steps).add_(whole.bias)


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
        whole = _Whole(_fastest()(numbers), steps, numbers.sum(dim=1, dtype=torch.float32), bias, per_scale)
        _whole_of[layer] = (layer.weight._version, whole)
    return whole
