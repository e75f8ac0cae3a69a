"""all-MiniLM-L6-v2 from the Python package that carries its weights: no download, no hub, CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from quit.common.arithmetic import arithmetic, unit
from quit.common.checksums import known_checksum
from quit.models.folders import PUBLISHED, SHA256, minilm_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from quit.models.minilm.layers import Body

DIMENSION = 384
ROUNDING = Path(__file__).parents[1] / "weights" / "rounding.npz"
"""How the weights are rounded to whole numbers, by ``training/rounding.py``."""
MAX_PIECES = 256
"""Word pieces at which texts are cut: the model's own limit."""
Precision = Literal["fp32", "bf16"]


def minilm_identity(precision: Precision = "fp32", device: str = "cpu") -> str:
    """Return what MiniLM's vectors depend on: its weights, how they are rounded, and their arithmetic."""
    return f"{PUBLISHED}@{SHA256[:12]}-{known_checksum(ROUNDING)[:6]}/{arithmetic(device)}/{precision}"


def word_pieces(longest: int | None = None) -> Tokenizer:
    """Return MiniLM's tokenizer, without padding; it cuts texts at ``longest`` word pieces."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    if longest:
        tokenizer.enable_truncation(longest)
    else:
        tokenizer.no_truncation()
    return tokenizer


class MiniLM:
    """Encoder over all-MiniLM-L6-v2: mean pooling, unit length, texts cut at 256 word pieces.

    ``precision``: arithmetic of the network, ``fp32`` or ``bf16``; vectors are float32 either way. ``device``: where
    it runs, such as ``cpu`` or ``cuda``. ``body``: a network in place of the published one. A text's vectors are the
    same bits whatever is encoded with it (:mod:`quit.models.minilm.packed`).
    """

    dimension = DIMENSION

    def __init__(self, precision: Precision = "fp32", device: str = "cpu", body: Body | None = None) -> None:
        minilm_folder()  # its errors come before any work
        self._precision, self._device, self._body = precision, device, body
        self._lock = Lock()
        self._loaded: tuple[Tokenizer, Body] | None = None
        self.identity = minilm_identity(precision, device)

    def _tokenizer_and_body(self) -> tuple[Tokenizer, Body]:
        """Return tokenizer and network, loaded when the first text is encoded: cached vectors need none."""
        with self._lock:
            if self._loaded is None:
                import torch

                from quit.models.minilm.layers import Body, rounded

                body = self._body or rounded(Body(range(6)).eval().requires_grad_(False), ROUNDING)
                if self._precision != "fp32":
                    body.to(torch.bfloat16)
                self._loaded = word_pieces(MAX_PIECES), body.to(self._device)
            return self._loaded

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, shape (len(texts), 384), float32; equal texts are encoded once."""
        if not texts:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        return np.stack(self._read(texts, _sentence))

    def encode_tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the unit vectors of each text's tokens, shapes (tokens, 384), float32, without [CLS] and [SEP].

        They are rounded to half precision, so that keeping them takes half the space.
        """
        return self._read(texts, token_vectors)

    def encode_both(self, texts: Sequence[str]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return what :meth:`encode` and :meth:`encode_tokens` return, for the price of either."""
        both = self._read(texts, lambda states: (_sentence(states), token_vectors(states)))
        return [sentence for sentence, _ in both], [tokens for _, tokens in both]

    def _read(self, texts: Sequence[str], reduce: Callable[[np.ndarray], Any]) -> list[Any]:
        from quit.models.minilm import packed

        distinct = list(dict.fromkeys(texts))
        tokenizer, body = self._tokenizer_and_body()
        pieces = [(encoding.ids,) for encoding in tokenizer.encode_batch(distinct)]
        vectors = packed.run(body, pieces, reduce, "MiniLM reads texts")
        by_text = dict(zip(distinct, vectors, strict=True))
        return [by_text[text] for text in texts]


def _sentence(states: np.ndarray) -> np.ndarray:
    """Return the unit mean of a text's states, shape (384,)."""
    return unit(states.mean(axis=0))


def token_vectors(states: np.ndarray) -> np.ndarray:
    """Return the unit states of a text's own tokens, shape (tokens, 384)."""
    return unit(states[1:-1]).astype(np.float16).astype(np.float32)
