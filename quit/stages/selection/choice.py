"""Choose the passages to ask next: those with the most information per prompt token."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from quit.common.arithmetic import on_grid
from quit.stages.selection.predictor import ancestors, membership, similarity

_NEW = 0.03
"""Weight of a passage without evidence near it. Lower values favour the first passages of each question."""
_STEPS_PER_PASSAGE = 16
"""Questions per question that gets a passage in one step; then the values are compared again."""


def computed_tokens(in_cache: np.ndarray, prompt_tokens: np.ndarray | None, hints: int) -> np.ndarray:
    """Return the prompt tokens that a server computes for each passage with some passages in its prefix cache: float64,
    shape (questions, passages).

    A passage does not compute again the tokens that it shares with its nearest cached ancestor in the tree of
    permutations. ``in_cache``: bool, shape (questions, passages). ``prompt_tokens``: shape (questions, hints + 1), the
    tokens of each hint and last those after the hints; without them every passage costs 1.
    """
    if prompt_tokens is None:
        return np.ones(in_cache.shape)
    length = prompt_tokens[:, :hints] @ membership(hints).T
    cached = np.zeros(in_cache.shape)
    for column in ancestors(hints).T:
        cached = np.maximum(cached, np.where(in_cache[:, column] & (column >= 0), length[:, column], 0))
    return length - cached + prompt_tokens[:, hints:]


def choose(
    probability: np.ndarray, evidence: np.ndarray, count: int, prompt_tokens: np.ndarray | None, hints: int
) -> np.ndarray:
    """Return the evidence and ``count`` more passages, or all: bool, shape (questions, passages).

    The value of a passage is the uncertainty, min(p, 1 - p), of all passages without evidence, weighted by similarity,
    divided by the evidence near it and by its price (:func:`computed_tokens`). The best of each question compete;
    equals go to the first.
    """
    evidence = evidence.copy()
    uncertainty = np.minimum(probability, 1 - probability) * ~evidence
    alike = similarity(hints)
    step = max(1, len(evidence) // _STEPS_PER_PASSAGE)
    tokens = prompt_tokens
    with threadpool_limits(1):
        mass, near = on_grid(uncertainty, 20) @ alike, evidence @ alike
    price = computed_tokens(evidence, tokens, hints)
    value = np.where(evidence, -1.0, mass / (_NEW + near) / price)
    best = value.argmax(axis=1)
    best_value = np.take_along_axis(value, best[:, None], axis=1)[:, 0]
    while count > 0:
        rows = np.argsort(-best_value, kind="stable")[: min(step, count)]
        rows = rows[best_value[rows] >= 0]
        if not len(rows):
            break
        evidence[rows, best[rows]] = True
        near[rows] += alike[best[rows]]
        price = computed_tokens(evidence[rows], None if tokens is None else tokens[rows], hints)
        value = np.where(evidence[rows], -1.0, mass[rows] / (_NEW + near[rows]) / price)
        best[rows] = value.argmax(axis=1)
        best_value[rows] = value.max(axis=1)
        count -= len(rows)
    return evidence
