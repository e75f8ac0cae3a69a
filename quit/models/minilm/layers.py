"""MiniLM as plain torch modules: to fine-tune it and to read what that changed. :mod:`quit.models.minilm.packed` runs
it.

A fine-tuned copy is kept as its difference from the published weights: a few bits a number, and nothing at all for the
word embeddings, which stay as published. Two classifiers of this project are stored so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import nn
from torch.nn import functional

from quit.models.folders import minilm_folder
from quit.models.linear import Rounding, exact_linear, gelu, linear

WIDTH, HEADS, INNER, EPSILON = 384, 12, 1536, 1e-12
POSITIONS = 256


Pieces = tuple[Sequence[int], ...]
"""A text: its word pieces, then optionally each one's segment and match (see :class:`Body`)."""


class _Linear(nn.Linear):
    """A linear layer whose weights are loaded: to draw random ones first takes as long."""

    def reset_parameters(self) -> None:
        """Leave the weights as memory is."""


class Layer(nn.Module):
    """One BERT layer (post-norm), with query, key and value in one matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = _Linear(WIDTH, 3 * WIDTH)
        self.out = _Linear(WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.up = _Linear(WIDTH, INNER)
        self.down = _Linear(INNER, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH, eps=EPSILON)

    def attention(self, qkv: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Return what the heads attend to, shape (rows, length, WIDTH); ``qkv``: shape (rows, length, 3 * WIDTH)."""
        rows, length, _ = qkv.shape
        q, k, v = qkv.view(rows, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return y.transpose(1, 2).reshape(rows, length, WIDTH)

    def after_attention(self, x: torch.Tensor, outputs: torch.Tensor, drop: float = 0.0) -> torch.Tensor:
        """Return the next hidden states, shape (..., WIDTH), from the states before and what attention brought."""
        x = self.norm1(x + functional.dropout(linear(self.out, outputs), drop, self.training))
        y = linear(self.down, gelu(linear(self.up, x)))
        return self.norm2(x + functional.dropout(y, drop, self.training))


@cache
def _published_weights() -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    pa.system_memory_pool().release_unused()  # what tables took before: the network needs about 0.5 GB
    state = load_file(str(minilm_folder() / "model.safetensors"))
    return {key.removeprefix("bert."): value for key, value in state.items()}


class Body(nn.Module):
    """MiniLM's embeddings (fixed) and some of its layers, as published until they are trained.

    ``layers`` are the numbers of the layers kept, in order. ``matches`` is an additional embedding of four kinds,
    zero at first; who has no use for it passes zeros.
    """

    words: torch.Tensor
    positions: torch.Tensor

    def __init__(self, layers: Sequence[int]) -> None:
        super().__init__()
        state = _published_weights()
        self.register_buffer("words", state["embeddings.word_embeddings.weight"], persistent=False)
        positions = state["embeddings.position_embeddings.weight"][:POSITIONS]
        self.register_buffer("positions", positions.clone(), persistent=False)
        self.segments = nn.Parameter(state["embeddings.token_type_embeddings.weight"].clone())
        self.matches = nn.Parameter(torch.zeros(4, WIDTH))
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.norm.weight.data.copy_(state["embeddings.LayerNorm.weight"])
        self.norm.bias.data.copy_(state["embeddings.LayerNorm.bias"])
        self.layers = nn.ModuleList(Layer() for _ in layers)
        for layer, number in zip(self.layers, layers, strict=True):
            at = f"encoder.layer.{number}."
            for kind in ("weight", "bias"):
                parts = [state[f"{at}attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
                getattr(layer.qkv, kind).data.copy_(torch.cat(parts))
                for ours, theirs in (
                    (layer.out, "attention.output.dense"),
                    (layer.norm1, "attention.output.LayerNorm"),
                    (layer.up, "intermediate.dense"),
                    (layer.down, "output.dense"),
                    (layer.norm2, "output.LayerNorm"),
                ):
                    getattr(ours, kind).data.copy_(state[f"{at}{theirs}.{kind}"])
        self.drop = 0.1

    def head_of(self, pooled: torch.Tensor) -> torch.Tensor:
        """Return the result for first and mean states, shape (rows, 2 * WIDTH); a subclass with a head has one."""
        raise NotImplementedError

    def embedded(
        self, ids: torch.Tensor, segments: torch.Tensor, matches: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        """Return the states before the first layer, shape (..., WIDTH), of pieces of shape (...)."""
        return self.norm(self.words[ids] + self.positions[positions] + self.segments[segments] + self.matches[matches])


class QuestionNet(Body):
    """MiniLM with a linear layer on its first and mean state: word pieces to one logit per label."""

    def __init__(self, labels: int) -> None:
        super().__init__(range(6))
        self.head = nn.Linear(2 * WIDTH, labels)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def head_of(self, pooled: torch.Tensor) -> torch.Tensor:
        """Return logits, shape (rows, labels), of first and mean states, shape (rows, 2 * WIDTH)."""
        return exact_linear(self.head, functional.dropout(pooled, self.drop, self.training))


def rounded(body: Body, path: Path) -> Body:
    """Return ``body`` with its weights rounded as the file says (``training/rounding.py``)."""
    arrays = {name: torch.from_numpy(array) for name, array in load(path).items()}
    for name, module in body.named_modules():
        if f"scale:{name}" in arrays:
            module.rounding = Rounding(*(arrays[f"{part}:{name}"] for part in ("scale", "changes", "shift")))
    return body


def restore(model: nn.Module, arrays: Mapping[str, np.ndarray]) -> nn.Module:
    """Load the arrays of ``training/differences.py`` into a model that is as published, and return it for inference."""
    state = model.state_dict()
    for key, array in arrays.items():
        kind, _, name = key.partition(":")
        if kind == "full":
            state[name] = torch.from_numpy(array.copy())
        elif kind == "int8":
            state[name] = state[name] + torch.from_numpy(array.astype(np.float32) * arrays[f"step:{name}"])
    model.load_state_dict(state)
    return model.eval().requires_grad_(False)


def load(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file that ``training/differences.py`` wrote."""
    with np.load(path, allow_pickle=False) as file:
        return {name.replace("!", ":"): file[name] for name in file.files}
