"""MiniLM layers over texts of any length, with little padding: a text's result is the same bits in any company.

The tokens of many texts are laid end to end. Linear layers and norms run over chunks of exactly CHUNK tokens, wherever
texts begin and end. Attention runs over blocks of several texts of like length. All sums of products are of whole
numbers, so exact in any order (:mod:`quit.models.linear`). So neither neighbours, nor the offset in a chunk, nor the
number of threads, nor the processor reach a result.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from torch.nn import functional

from quit.common.arithmetic import ARITHMETIC, OWN, arithmetic
from quit.common.progress import advance
from quit.errors import SettingsError
from quit.models.linear import linear, tanh
from quit.models.minilm.layers import HEADS, WIDTH, Body, Layer, Pieces

CHUNK = 128
"""Tokens of a matrix product on a CPU: few, so that a small call pads little, but enough for full speed."""
CHUNK_GPU = 8192
"""The same on a GPU."""
BLOCK = 2**14
"""Scores of a head whose attention is computed together on a CPU; a longer text is alone."""
BLOCK_GPU = 2**20
"""The same on a GPU."""
_SCALE = math.log2(math.e) / math.sqrt(WIDTH // HEADS)
_LEVELS, _WEIGHTS, _SHARES = 511, 2**16, 2**13
"""Highest whole query, key and value; weight before the softmax's division; sum of a row of weights behind it."""
_DIGEST = "9fb4066fe8af9903"
"""What :func:`check` computes, on every x86-64 processor with AVX2."""
PASS = 2048
"""Tokens that a thread computes at a time: what a pass holds in memory is about 12 kB a token."""


def run(body: Body, texts: Sequence[Pieces], reduce: Callable[[np.ndarray], Any], doing: str = "") -> list[Any]:
    """Return ``reduce(states)`` of each text; ``states`` are its hidden states, shape (tokens, WIDTH), float32.

    ``doing``: what the progress bar says (nothing: no progress is shown).
    """
    on_cpu = body.words.device.type == "cpu"
    if on_cpu:
        check()
    results: list[Any] = [None] * len(texts)
    passes = list(_passes([len(pieces[0]) for pieces in texts]))

    def work(rows: list[int]) -> list[Any]:
        return [reduce(states) for states in _states(body, [texts[row] for row in rows])]

    values_of_passes = _pool().map(work, passes) if on_cpu else map(work, passes)
    for rows, values in zip(passes, values_of_passes, strict=True):
        for row, value in zip(rows, values, strict=True):
            results[row] = value
        if doing:
            advance(doing, len(rows), len(texts))
    return results


def logits(body: Body, texts: Sequence[Pieces]) -> np.ndarray:
    """Return ``body.head_of`` of each text's first and mean state, shape (texts, ...), float32."""
    if not texts:
        return np.zeros((0,), dtype=np.float32)
    vectors = np.stack(run(body, texts, lambda states: np.concatenate([states[0], states.mean(axis=0)])))
    chunks = functional.pad(torch.from_numpy(vectors), (0, 0, 0, -len(vectors) % CHUNK))

    @torch.inference_mode()
    def head() -> np.ndarray:
        return torch.cat([body.head_of(chunk) for chunk in chunks.split(CHUNK)])[: len(vectors)].numpy()

    return _pool().submit(head).result()  # there with one thread: a product's last bits can vary with their number


@cache
def check() -> None:
    """Raise :class:`SettingsError` where this machine's arithmetic has the common name but gives other bits.

    The proof is a layer with given weights, over three texts of given states.
    """
    if arithmetic() != ARITHMETIC:
        return
    layer = Layer().eval().requires_grad_(False)
    numbers = np.random.default_rng(0)
    for parameter in layer.parameters():
        parameter.copy_(torch.from_numpy(numbers.integers(-50, 50, parameter.shape).astype(np.float32) / 512))
    x = torch.from_numpy(numbers.integers(-500, 500, (CHUNK, WIDTH)).astype(np.float32) / 256)

    @torch.inference_mode()
    def digest() -> str:
        states = tanh(_layer(layer, x.clone(), x.repeat(1, 3), list(_blocks([5, 40, 80], BLOCK, x)), CHUNK))
        return hashlib.sha256(states.numpy().tobytes()).hexdigest()[:16]

    if (result := _pool().submit(digest).result()) != _DIGEST:
        raise SettingsError(
            f"torch {torch.__version__} does not compute MiniLM here as it does on other x86-64 processors with AVX2 "
            f"({result}, expected {_DIGEST}): labels may differ. Install the versions of constraints.txt, or set "
            f"{OWN} to a name for this machine's arithmetic: its results are then kept apart."
        )


def _layer(layer: Layer, x: torch.Tensor, qkv: torch.Tensor, blocks: Sequence[_Block], size: int) -> torch.Tensor:
    """Return the states after ``layer``, in the place of those before, ``x``, shape (rows, WIDTH).

    ``qkv``: space for queries, keys and values, shape (rows, 3 * WIDTH).
    """
    for chunk, rows in zip(x.split(size), qkv.split(size), strict=True):
        rows.copy_(linear(layer.qkv, chunk))
    outputs = qkv[:, :WIDTH]  # a block's queries are needed by itself alone
    for block in blocks:
        qkv[-1] = 0  # what is no token has no say in a text's steps
        outputs.index_copy_(0, block.rows, _attention(qkv, block))
    for chunk, rows in zip(x.split(size), outputs.split(size), strict=True):
        chunk.copy_(layer.after_attention(chunk, rows))
    return x


def _passes(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield rows of texts in passes of about PASS tokens, texts of like length together; at least one pass a core."""
    max_tokens = max(CHUNK, min(PASS, -(-sum(lengths) // _cores())))
    rows: list[int] = []
    tokens = 0
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if rows and tokens + lengths[row] > max_tokens:
            yield rows
            rows, tokens = [], 0
        rows.append(row)
        tokens += lengths[row]
    if rows:
        yield rows


@torch.inference_mode()
def _states(body: Body, texts: Sequence[Pieces]) -> list[np.ndarray]:
    """Return the hidden states of texts, ordered by length, each of shape (tokens, WIDTH), float32."""
    on_cpu = body.words.device.type == "cpu"
    size = CHUNK if on_cpu else CHUNK_GPU
    lengths = [len(pieces[0]) for pieces in texts]
    tokens = sum(lengths)
    pieces = np.zeros((4, tokens + size - tokens % size), dtype=np.int64)  # at least one row is no token
    start = 0
    for text, length in zip(texts, lengths, strict=True):
        pieces[: len(text), start : start + length] = text
        pieces[3, start : start + length] = np.arange(length)
        start += length
    ids, segments, matches, positions = torch.from_numpy(pieces).to(body.words.device)
    x = body.embedded(ids, segments, matches, positions)
    blocks = list(_blocks(lengths, BLOCK if on_cpu else BLOCK_GPU, x))
    qkv = x.new_empty(len(x), 3 * WIDTH)
    for layer in cast("Iterator[Layer]", iter(body.layers)):
        x = _layer(layer, x, qkv, blocks, size)
    states = x[:tokens].float().cpu().numpy()
    return np.split(states, np.cumsum(lengths)[:-1])


@dataclass(frozen=True, slots=True)
class _Block:
    """Texts whose attention is computed together, each in a slot as long as the longest of them."""

    rows: torch.Tensor
    """Where the tokens are, shape (slots * length,); where a slot's text has ended, the last row, which is no token."""
    mask: torch.Tensor | None
    """Shape (slots, 1, 1, length): minus infinity where a slot's text has ended, else 0. None: no text is shorter."""
    slots: int


def _blocks(lengths: Sequence[int], max_scores: int, x: torch.Tensor) -> Iterator[_Block]:
    """Yield the blocks of texts ordered by length, each with ``max_scores`` at most in a head; ``x``: the states."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    first = 0
    while first < len(lengths):
        stop = first + 1
        while stop < len(lengths) and (stop + 1 - first) * _slot(lengths[stop]) ** 2 <= max_scores:
            stop += 1
        slots, length = stop - first, _slot(lengths[stop - 1])
        at = np.arange(length)
        real = at < np.array(lengths[first:stop])[:, None]
        rows = np.where(real, starts[first:stop, None] + at, len(x) - 1).ravel()
        mask = None if real.all() else x.new_tensor(np.where(real, 0.0, -np.inf)[:, None, None])
        yield _Block(torch.from_numpy(rows).to(x.device), mask, slots)
        first = stop


def _slot(length: int) -> int:
    """Return ``length`` rounded up to a multiple of four: a block then has a multiple of 32 weights, and torch computes
    no last few of them by other means."""
    return length + -length % 4


def _attention(qkv: torch.Tensor, block: _Block) -> torch.Tensor:
    """Return what the heads attend to, shape (slots * length, WIDTH); ``qkv``: shape (rows, 3 * WIDTH).

    Queries, keys and values are rounded to whole multiples of a step of each text, weights to shares. No sum of
    products exceeds 2^24, so float32 adds it up exactly in any order. The softmax is of base 2.
    """
    parts = qkv.index_select(0, block.rows).float().view(block.slots, -1, 3, WIDTH)
    steps = parts.abs().amax(dim=3).amax(dim=1).clamp_(min=1e-30).mul_(1 / _LEVELS)
    whole = parts.mul_(1 / steps[:, None, :, None]).round_()
    q, k, v = whole.view(block.slots, -1, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    steps = steps[:, :, None, None, None]
    scores = (q @ k.mT).mul_(steps[:, 0] * steps[:, 1] * _SCALE)
    if block.mask is not None:
        scores = scores.add_(block.mask)
    weights = scores.sub_(scores.amax(dim=-1, keepdim=True)).exp2_().mul_(_WEIGHTS).round_()
    shares = weights.mul_(_SHARES / weights.sum(dim=-1, keepdim=True)).round_()
    outputs = (shares @ v).mul_(steps[:, 2] * (1 / _SHARES))
    return outputs.transpose(1, 2).reshape(-1, WIDTH).to(qkv.dtype)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    """Return this process's threads for passes: one a core, however many shards are worked on side by side.

    Each uses one thread of torch; other threads of the process keep their number.
    """
    before, cores = torch.get_num_threads(), _cores()
    ready = threading.Barrier(cores + 1)

    def settle() -> None:
        torch.get_num_threads()  # torch takes a new thread's number from the process once, at its first use
        torch.set_num_threads(1)
        ready.wait()

    pool = ThreadPoolExecutor(cores, thread_name_prefix="minilm")
    for _ in range(cores):
        pool.submit(settle)
    ready.wait()
    torch.set_num_threads(before)
    return pool


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
