"""MiniLM layers over texts of any length, without padding: a text's result is the same bits in any company.

The tokens of many texts are laid end to end. Linear layers and norms run over chunks of exactly CHUNK tokens, wherever
texts begin and end: a matrix product of one shape treats each of its rows alike. Attention runs within each text,
texts of one length at a time, with a separate matrix for each text. So neither neighbours, nor the offset in a chunk,
nor the number of threads reach a result.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from torch.nn import functional

from quit.common.progress import advance
from quit.models.linear import linear
from quit.models.minilm_layers import Body, Layer, Pieces

CHUNK = 128
"""Tokens of a matrix product on a CPU: few, so that a small call pads little, but enough for full speed."""
CHUNK_GPU = 8192
"""The same on a GPU."""
PASS = 4096
"""Tokens that a thread computes at a time: what a pass holds in memory is about 12 kB a token."""


def run(body: Body, texts: Sequence[Pieces], reduce: Callable[[np.ndarray], Any], doing: str = "") -> list[Any]:
    """Return ``reduce(states)`` of each text; ``states`` are its hidden states, shape (tokens, WIDTH), float32.

    ``doing``: what the progress bar says (nothing: no progress is shown).
    """
    results: list[Any] = [None] * len(texts)
    passes = list(_passes([len(pieces[0]) for pieces in texts]))

    def work(rows: list[int]) -> list[Any]:
        return [reduce(states) for states in _states(body, [texts[row] for row in rows])]

    on_cpu = body.words.device.type == "cpu"
    computed = _pool().map(work, passes) if on_cpu else map(work, passes)
    for rows, reduced in zip(passes, computed, strict=True):
        for row, value in zip(rows, reduced, strict=True):
            results[row] = value
        if doing:
            advance(doing, len(rows), len(texts))
    return results


def logits(body: Body, texts: Sequence[Pieces]) -> np.ndarray:
    """Return ``body.head_of`` of each text's first and mean state, shape (texts, ...), float32."""
    if not texts:
        return np.zeros((0,), dtype=np.float32)
    pooled = np.stack(run(body, texts, lambda states: np.concatenate([states[0], states.mean(axis=0)])))
    padded = functional.pad(torch.from_numpy(pooled), (0, 0, 0, -len(pooled) % CHUNK))

    @torch.inference_mode()
    def head() -> np.ndarray:
        return torch.cat([body.head_of(chunk) for chunk in padded.split(CHUNK)])[: len(pooled)].numpy()

    return _pool().submit(head).result()  # there with one thread: a product's last bits can vary with their number


def _passes(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield rows of texts in passes of about PASS tokens, texts of like length together; at least one pass a core."""
    most = max(CHUNK, min(PASS, -(-sum(lengths) // _cores())))
    rows: list[int] = []
    tokens = 0
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if rows and tokens + lengths[row] > most:
            yield rows
            rows, tokens = [], 0
        rows.append(row)
        tokens += lengths[row]
    if rows:
        yield rows


@torch.inference_mode()
def _states(body: Body, texts: Sequence[Pieces]) -> list[np.ndarray]:
    """Return the hidden states of texts, ordered by length, each of shape (tokens, WIDTH), float32."""
    device = body.words.device
    size = CHUNK if device.type == "cpu" else CHUNK_GPU
    lengths = [len(pieces[0]) for pieces in texts]
    tokens = sum(lengths)
    pieces = np.zeros((4, tokens + -tokens % size), dtype=np.int64)
    start = 0
    for text, length in zip(texts, lengths, strict=True):
        pieces[: len(text), start : start + length] = text
        pieces[3, start : start + length] = np.arange(length)
        start += length
    ids, segments, matches, positions = torch.from_numpy(pieces).to(device)
    x = body.embedded(ids, segments, matches, positions)
    groups = list(_same_lengths(lengths))
    attended = torch.zeros_like(x)
    for layer in cast("Iterator[Layer]", iter(body.layers)):
        _attend(layer, x, size, groups, attended)
        for chunk, rows in zip(x.split(size), attended.split(size), strict=True):
            chunk.copy_(layer.after_attention(chunk, rows))
    states = x[:tokens].float().cpu().numpy()
    return np.split(states, np.cumsum(lengths)[:-1])


def _attend(layer: Layer, x: torch.Tensor, size: int, groups: list[tuple[int, int, int]], out: torch.Tensor) -> None:
    qkv = torch.cat([linear(layer.qkv, chunk) for chunk in x.split(size)])
    for start, count, length in groups:
        rows = slice(start, start + count * length)
        attended = layer.attention(qkv[rows].view(count, length, -1))
        out[rows] = attended.reshape(count * length, -1)


def _same_lengths(lengths: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (first token, texts, tokens a text) of each run of texts of one length."""
    start = first = 0
    for stop, length in enumerate(lengths, start=1):
        if stop == len(lengths) or lengths[stop] != length:
            count = stop - first
            yield start, count, length
            start, first = start + count * length, stop


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
