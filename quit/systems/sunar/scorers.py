"""Relevance of documents to a question: late interaction over MiniLM's tokens (embedded), or any cross-encoder.

Both give log odds, so that the sigmoid which answer uncertainty divides (:mod:`.asu`) is a probability of relevance.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from quit.errors import InputError, MissingDependency
from quit.models.folders import folder_checksum
from quit.models.protocols import Encoder


class LateInteraction:
    """MaxSim (Khattab and Zaharia 2020): for each token of the query its nearest token of the text, averaged over the query.

    ``slope`` and ``centre`` make log odds of the average, slope * (MaxSim - centre): they change no order.
    """

    def __init__(self, encoder: Encoder, *, slope: float, centre: float) -> None:
        self.identity = f"late-interaction-2({slope:g}, {centre:g})/{encoder.identity}"
        self._encoder = encoder
        self._slope = slope
        self._centre = centre

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return log odds, float64, shape (len(texts),). A query or text without tokens has MaxSim 0."""
        query_tokens, *tokens_of_texts = self._encoder.encode_tokens([query, *texts])
        similar = np.zeros(len(texts), dtype=np.float64)
        for row, tokens in enumerate(tokens_of_texts):
            if len(tokens) and len(query_tokens):
                similar[row] = float((query_tokens @ tokens.T).max(axis=1).mean())
        return self._slope * (similar - self._centre)


class CrossEncoderScorer:
    """A cross-encoder through sentence-transformers: its raw logits, whatever activation its configuration names.

    ``model``: a hub name or a folder. Raises :class:`MissingDependency` without the package, :class:`InputError` for a model that
    cannot be loaded or gives more than one logit.
    """

    def __init__(self, model: str, *, revision: str = "", device: str = "cpu", batch: int = 16) -> None:
        folder = Path(model).expanduser()
        named = f"{folder.name}#{folder_checksum(folder)}" if folder.is_dir() else model
        self.identity = f"cross-encoder/{named}" + (f"@{revision}" if revision else "")
        self._model = str(folder) if folder.is_dir() else model
        self._revision = revision or None
        self._device = device
        self._batch = batch
        self._loaded: Any = None
        self._lock = Lock()

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return one logit a text, float64, shape (len(texts),)."""
        if not texts:
            return np.zeros(0, dtype=np.float64)
        with self._lock:
            model = self._load()
            import torch

            made = model.predict(
                [(query, text) for text in texts],
                batch_size=self._batch,
                activation_fn=torch.nn.Identity(),
                show_progress_bar=False,
            )
        return np.asarray(made, dtype=np.float64).reshape(len(texts))

    def _load(self) -> Any:
        if self._loaded is None:
            try:
                from sentence_transformers import CrossEncoder
            except ImportError as error:
                raise MissingDependency(
                    "A cross-encoder needs sentence-transformers. Run: pip install sentence-transformers"
                ) from error
            try:
                model = CrossEncoder(self._model, revision=self._revision, device=self._device)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"The cross-encoder {self._model!r} cannot be loaded: {str(error).splitlines()[0]} "
                    "Give a hub name that this machine can reach, or a folder."
                ) from error
            if model.num_labels != 1:
                raise InputError(
                    f"The cross-encoder {self._model!r} gives {model.num_labels} values a pair; a scorer gives one."
                )
            self._loaded = model
        return self._loaded
