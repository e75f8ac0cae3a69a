"""Products of unit vectors, exponentials and logarithms with the same bits on every x86-64 processor with AVX2.

BLAS adds up in an order that depends on the processor and the number of threads, and numpy takes another library's
exponential where there is AVX-512. So vectors are rounded to a grid on which sums are exact in any order, and functions
are computed from additions, multiplications and divisions alone, which IEEE 754 defines to the last bit.
"""

from __future__ import annotations

import math
import operator
import os
import platform
from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

ARITHMETIC = "whole-1"
"""Name of the arithmetic of the embedded models; rises whenever the same weights give other bits."""
OWN = "QUIT_ARITHMETIC"
"""Environment variable: name of a machine's own arithmetic, where it is not the common one."""

_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""ln 2 in two parts: the first has so few bits that a multiple of it is exact (Cody and Waite 1980)."""
_TAYLOR = [1.0 / math.factorial(power) for power in range(13, -1, -1)]


def sum_in_order(values: Iterable[float]) -> float:
    """Return the sum of floats, added one after the other: the builtin does that up to Python 3.11 only."""
    return reduce(operator.add, values, 0.0)


def arithmetic(device: str = "cpu") -> str:
    """Return the name of the embedded models' arithmetic on a device, a part of what their results depend on.

    :data:`ARITHMETIC` on every x86-64 processor with AVX2 (:func:`quit.models.minilm.packed.check` is the proof);
    others, and GPUs, have a name of their own, so that their vectors and verdicts never mix with these.
    """
    machine = platform.machine().lower()
    common = machine in ("x86_64", "amd64") and _features().get("AVX2", False) and _features().get("FMA3", False)
    suffix = os.environ.get(OWN, "") or ("" if common else machine)
    if device != "cpu":
        suffix = device.partition(":")[0]
    return f"{ARITHMETIC}-{suffix}" if suffix else ARITHMETIC


def _features() -> dict[str, bool]:
    """Return numpy's list of instruction sets: whether this processor has each."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    return _multiarray_umath.__cpu_features__


def on_grid(numbers: np.ndarray, bits: int = 24) -> np.ndarray:
    """Return floats rounded to multiples of 2^-``bits``, same shape and type; with 24, as float32 is just below 1.

    Sums of products of two such numbers are exact in float64 up to 2^(53 - their bits together).
    """
    steps = numbers.dtype.type(2**bits)
    return np.rint(numbers * steps) / steps


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return float32 vectors, shape (..., dimension), divided by their length, on the grid; zeros stay zeros."""
    lengths = np.sqrt(np.sum(vectors * vectors, axis=-1, keepdims=True))
    return on_grid(vectors / np.maximum(lengths, np.float32(1e-12)))


def products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the dot product of each row of ``left`` with each row of ``right``, float32; either may be one vector.

    Exact before it is rounded, where all numbers are on the grid of :func:`unit` and no vector is longer than 5.
    """
    return (left.astype(np.float64) @ right.astype(np.float64).T).astype(np.float32)


def exp(values: np.ndarray) -> np.ndarray:
    """Return e to the power of each number, float64, same shape."""
    values = np.clip(np.asarray(values, dtype=np.float64), -800.0, 800.0)
    exponents = np.rint(values * (1 / math.log(2)))
    rests = (values - exponents * _LN2_HIGH) - exponents * _LN2_LOW
    total = np.full_like(rests, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        total = total * rests + coefficient
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(total, exponents.astype(np.int32))


def log(values: np.ndarray) -> np.ndarray:
    """Return the natural logarithm of each positive number, float64, same shape."""
    logarithms, exponents = _log_parts(values)
    return exponents * _LN2_HIGH + (logarithms + exponents * _LN2_LOW)


def log2(values: np.ndarray) -> np.ndarray:
    """Return the logarithm to base 2 of each positive number, float64, same shape."""
    logarithms, exponents = _log_parts(values)
    return logarithms / math.log(2) + exponents


def _log_parts(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return natural logarithms of the numbers divided by powers of two, and these powers."""
    mantissas, exponents = np.frexp(np.asarray(values, dtype=np.float64))
    near = np.log(mantissas.astype(np.float32)).astype(np.float64)  # float32's is numpy's own on all these processors
    power = exp(near)
    return near + 2.0 * (mantissas - power) / (mantissas + power), exponents


def maxsim(query: np.ndarray, texts: Sequence[np.ndarray]) -> np.ndarray:
    """Return for each token of a query the highest cosine with a token of each text, float32, shape (len(texts),
    len(query)).

    ``query`` and each text: unit vectors, shape (tokens, dimension). A text without tokens has 0 (Khattab and Zaharia
    2020: MaxSim).
    """
    highest = np.zeros((len(texts), len(query)), dtype=np.float32)
    for row, tokens in enumerate(texts):
        if len(tokens) and len(query):
            highest[row] = products(query, tokens).max(axis=1)
    return highest
