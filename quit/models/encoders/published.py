"""The vectors of all-MiniLM-L6-v2 as published: sentence-transformers computes them, in floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from quit.models.folders import PUBLISHED, SHA256
from quit.models.loading import load_sentence_model, once
from quit.models.minilm.encoder import DIMENSION, token_vectors


class PublishedMiniLM:
    """Implements :class:`quit.models.protocols.Encoder`, except that a vector's last bits depend on the processor, the
    number of threads and the texts it is computed with."""

    identity, dimension = f"{PUBLISHED}@{SHA256[:12]}/sentence-transformers", DIMENSION

    @once
    def _model(self) -> Any:
        return load_sentence_model("SentenceTransformer", PUBLISHED, device="cpu", what="The encoder")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, shape (len(texts), 384), float32."""
        return self._model.encode(list(texts), show_progress_bar=False)

    def encode_tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the unit vectors of each text's tokens, shapes (tokens, 384), float32 of half precision."""
        states = self._model.encode(list(texts), output_value="token_embeddings", show_progress_bar=False)
        return [token_vectors(of_text.numpy()) for of_text in states]
