"""Pointwise rerankers: cross-encoders and MonoT5. Both read (question, passage) and give one number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from quit.corpora.scorers import CrossEncoderScorer
from quit.errors import InputError
from quit.models.folders import model_identity
from quit.models.loading import load_pretrained
from quit.systems.benchmark.plugins import Context


class CrossEncoderReranker(CrossEncoderScorer):
    """Any sentence-transformers cross-encoder with one output, ``cross-encoder:MODEL``; scores are its logits.

    Raises ``InputError`` where no model is named.
    """

    def __init__(self, context: Context) -> None:
        settings = context.settings.benchmark
        if not context.argument:
            raise InputError("Name the model of the reranker: cross-encoder:MODEL.")
        super().__init__(
            context.argument, device=context.running.device, batch=settings.batch, max_length=settings.max_length
        )
        self.identity += f"/{settings.max_length} tokens/batch={settings.batch}"


class MonoT5:
    """MonoT5 (Nogueira et al. 2020), ``monot5:MODEL``: the log-probability of ``true`` against ``false`` as first word
    of T5's reply to
    ``Query: ... Document: ... Relevant:``.

    Raises ``InputError`` where no model is named, it cannot be loaded, or its vocabulary has not both words as single
    pieces.
    """

    def __init__(self, context: Context) -> None:
        settings = context.settings.benchmark
        if not context.argument:
            raise InputError("Name the model of the reranker: monot5:MODEL.")
        self._name, self._batch, self._device = context.argument, settings.batch, context.running.device
        self._max_length = settings.max_length
        self.identity = f"monot5/{model_identity(self._name)}/{self._max_length} tokens/batch={self._batch}"

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return log p(true), float64, shape (len(texts),)."""
        import torch

        model, tokenizer, words = self._loaded
        scores = [np.zeros(0)]
        for first in range(0, len(texts), self._batch):
            batch = texts[first : first + self._batch]
            inputs = tokenizer(
                [f"Query: {query} Document: {text} Relevant:" for text in batch],
                padding=True,
                truncation=True,
                max_length=self._max_length,
                return_tensors="pt",
            ).to(self._device)
            start = torch.full((len(batch), 1), model.config.decoder_start_token_id, device=self._device)
            with torch.inference_mode():
                logits = model(**inputs, decoder_input_ids=start).logits[:, 0, words]
            scores.append(torch.log_softmax(logits.double(), dim=1)[:, 0].cpu().numpy())
        return np.concatenate(scores)

    @cached_property
    def _loaded(self) -> tuple[Any, Any, list[int]]:
        model, tokenizer = load_pretrained("T5ForConditionalGeneration", self._name, device=self._device)
        words = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in ("true", "false")]
        if any(len(pieces) != 1 for pieces in words) or words[0] == words[1]:
            raise InputError(f"{self._name!r} has no single pieces for 'true' and 'false': it is no MonoT5 model.")
        return model, tokenizer, [pieces[0] for pieces in words]
