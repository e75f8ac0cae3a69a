"""The forward pass of a :class:`quit.models.minilm.layers.Body` over padded batches, with gradients and dropout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch.nn import functional

from quit.models.minilm.layers import Body, Layer, Pieces


def logits(body: Body, texts: Sequence[Pieces]) -> torch.Tensor:
    """Return the head's result of each text, shape (rows, ...)."""
    parts = torch.zeros(3, len(texts), max(len(text[0]) for text in texts), dtype=torch.long)
    mask = torch.zeros(parts.shape[1:], dtype=torch.bool)
    for row, text in enumerate(texts):
        parts[: len(text), row, : len(text[0])] = torch.tensor(text)
        mask[row, : len(text[0])] = True
    return body.head_of(pooled(body, parts[0], parts[1], parts[2], mask))


def pooled(
    body: Body, ids: torch.Tensor, segments: torch.Tensor, matches: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Return the first state and the mean state of each row, side by side, shape (rows, 2 * WIDTH).

    All inputs have shape (rows, length); ``mask`` is True at real pieces.
    """
    x = body.embedded(ids, segments, matches, torch.arange(ids.shape[1]))
    x = functional.dropout(x, body.drop, body.training)
    bias = torch.zeros(mask.shape, dtype=x.dtype).masked_fill(~mask, -1e9)[:, None, None, :]
    for layer in cast("Iterable[Layer]", body.layers):
        x = layer.after_attention(x, layer.attention(layer.qkv(x), bias), body.drop)
    weight = mask.to(x.dtype)[:, :, None]
    return torch.cat([x[:, 0], (x * weight).sum(1) / weight.sum(1)], dim=1)
