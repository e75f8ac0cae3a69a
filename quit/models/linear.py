"""Matrix products with the same bits on every x86-64 processor with AVX2, Intel's and AMD's.

MKL and OpenBLAS choose an order of addition by processor, so their results differ between processors. oneDNN's kernels
for float32 all add a product's terms one after the other, each by a fused multiply-add, where a row has no more than
BLOCK numbers; longer rows are added up from blocks of that size. Its AVX2 and AVX-512 kernels then differ in speed
alone.
"""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn import functional

BLOCK = 384
"""Terms that oneDNN is given to add at a time: with 1536, its order differs between processors."""

_AVAILABLE = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
_AVX512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
_blocks_of: WeakKeyDictionary[nn.Linear, tuple[int, list[torch.Tensor]]] = WeakKeyDictionary()


def linear(layer: nn.Linear, rows: torch.Tensor) -> torch.Tensor:
    """Return the output of ``layer``, shape (tokens, out), for ``rows``, shape (tokens, in).

    Inference in float32 on a CPU is by oneDNN, all else as torch does it.
    """
    if not _by_onednn(rows):
        return functional.linear(rows, layer.weight, layer.bias)
    first, *others = zip(rows.split(BLOCK, dim=-1), _blocks(layer), strict=True)
    output = _onednn(first[0].contiguous(), first[1], layer.bias)
    for part, weight in others:
        output += _onednn(part.contiguous(), weight)
    return output


def fast_linear(layer: nn.Linear, rows: torch.Tensor) -> torch.Tensor:
    """Return the output of a layer of any width: as :func:`linear`, but its last bits depend on the processor.

    By oneDNN where there is AVX-512: on AMD's processors it is twice as fast there as torch's choice, MKL.
    """
    if _AVX512 and _by_onednn(rows):
        return _onednn(rows, layer.weight, layer.bias)
    return functional.linear(rows, layer.weight, layer.bias)


def products(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the product of each matrix of ``left``, shape (n, rows, terms), with the transpose of its counterpart in
    ``right``, shape (n, columns, terms): shape (n, rows, columns). ``terms``: BLOCK at most.
    """
    if not _by_onednn(left):
        return left @ right.mT
    return torch.stack([_onednn(one, other) for one, other in zip(left, right, strict=True)])


def gelu(rows: torch.Tensor) -> torch.Tensor:
    """Return the GELU of each number, same shape, (tokens, width).

    Of the transpose, because torch gives one that lies in order to oneDNN, whose GELU depends on the instruction set.
    """
    return functional.gelu(rows.mT).mT


def tanh(rows: torch.Tensor) -> torch.Tensor:
    """Return the hyperbolic tangent of each number, by powers of two: torch leaves its own to MKL."""
    return 1 - 2 / (torch.exp2(rows * (2 * math.log2(math.e))) + 1)


def _by_onednn(rows: torch.Tensor) -> bool:
    on_cpu = rows.dtype == torch.float32 and rows.device.type == "cpu"
    return _AVAILABLE and on_cpu and torch.is_inference_mode_enabled()


def _onednn(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")


def _blocks(layer: nn.Linear) -> list[torch.Tensor]:
    """Return the layer's weights in blocks of BLOCK columns, laid out once as oneDNN's kernels read them."""
    weight = layer.weight
    version, blocks = _blocks_of.get(layer, (-1, []))
    if version != weight._version:
        parts = [part.contiguous() for part in weight.detach().split(BLOCK, dim=1)]
        blocks = [torch.ops.mkldnn._reorder_linear_weight(part) for part in parts]
        _blocks_of[layer] = (weight._version, blocks)
    return blocks
