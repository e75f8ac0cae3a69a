"""Relevance of texts to a query: late interaction over token vectors, or any cross-encoder. Implement
``quit.retrieval.protocols.Scorer``.

Both give log odds, so that the sigmoid which answer uncertainty divides (:mod:`quit.qa.sunar.asu`) is a
probability of relevance.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from quit.common.arithmetic import maxsim
from quit.errors import InputError
from quit.models.loading import load_sentence_model, located, model_identity
from quit.models.protocols import Encoder
from quit.qa.indexes.vectors import check_finite

SLOPE, CENTRE = 24.27, 0.63
"""Log odds of relevance a unit of MaxSim, and the MaxSim at which it is even: fitted on 150 questions of
2WikiMultihopQA with MiniLM's tokens."""


class LateScorer:
    """MaxSim averaged over the query's tokens, as log odds.

    They are SLOPE * (MaxSim - CENTRE), which changes no order.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.identity = f"late-interaction-2({SLOPE:g}, {CENTRE:g})/{encoder.identity}"
        self._encoder = encoder

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return log odds, float64, shape (len(texts),). A query or text without tokens has MaxSim 0."""
        query_tokens, *tokens = self._encoder.encode_tokens([query, *texts])
        rows = maxsim(query_tokens, tokens)
        similar = np.array([float(row.mean()) if row.size else 0.0 for row in rows], dtype=np.float64)
        return SLOPE * (similar - CENTRE)


class CrossEncoderScorer:
    """A cross-encoder through sentence-transformers: its raw logits, whatever activation its configuration names.

    ``model``: a hub name or a folder. ``max_length``: tokens of the longest pair (None: the model's own). Thread-safe;
    loaded when it is first asked, which raises :class:`InputError` for a model that cannot be loaded, is no
    cross-encoder or gives more than one logit.
    """

    def __init__(self, model: str, *, device: str = "cpu", batch: int = 16, max_length: int | None = None) -> None:
        self.identity = f"cross-encoder/{model_identity(model)}"
        self._name, self._device = model, device
        self._batch, self._max_length = batch, max_length
        self._lock = Lock()

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return one logit per text, float64, shape (len(texts),)."""
        if not texts:
            return np.zeros(0, dtype=np.float64)
        import torch

        with self._lock:
            logits = self._model.predict(
                [(query, text) for text in texts],
                batch_size=self._batch,
                activation_fn=torch.nn.Identity(),
                show_progress_bar=False,
            )
        check_finite(np.reshape(logits, (-1, 1)), self._name, texts.__getitem__)
        return np.asarray(logits, dtype=np.float64).reshape(len(texts))

    @cached_property
    def _model(self) -> Any:
        if not has_head(located(self._name)):
            raise InputError(
                f"{self._name!r} is not a cross-encoder: it has no trained head, so its scores would be noise. "
                "Make one of it with: quit benchmark finetune --kind cross-encoder"
            )
        model = load_sentence_model(
            "CrossEncoder", self._name, device=self._device, what="The cross-encoder", max_length=self._max_length
        )
        if model.num_labels != 1:
            raise InputError(
                f"The cross-encoder {self._name!r} gives {model.num_labels} values per pair; a scorer gives one."
            )
        return model


def has_head(path: str) -> bool:
    """Whether a model is a cross-encoder already. A hub name is not checked; a folder is."""
    config = Path(path) / "config.json"
    return not config.is_file() or "ForSequenceClassification" in config.read_text(encoding="utf-8")
