"""Pointwise rerankers: cross-encoders and MonoT5. Both read (question, passage) and give one number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quit.errors import InputError
from quit.systems.benchmark.dense import batches, loaded, model_identity, model_place
from quit.systems.benchmark.plugins import Context


class CrossEncoderReranker:
    """Any sentence-transformers cross-encoder with one output, ``cross-encoder:MODEL``; scores are its logits.

    Raises ``InputError`` where no model is named, it cannot be loaded, or it has more than one output.
    """

    def __init__(self, context: Context) -> None:
        settings = context.settings.benchmark
        if not context.argument:
            raise InputError("Name the model of the reranker: cross-encoder:MODEL.")
        self._name, self._batch, self._device = context.argument, settings.batch, settings.device
        self._max_length = settings.max_length
        self._model: Any = None
        self.identity = f"cross-encoder/{model_identity(self._name)}/{self._max_length} tokens/batch={self._batch}"

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return one logit a text, float64, shape (len(texts),). Raises ``InputError`` for a model that is no cross-encoder."""
        import torch

        if self._model is None:
            from sentence_transformers import CrossEncoder

            if not has_head(model_place(self._name)):
                raise InputError(
                    f"{self._name!r} is no cross-encoder: it has no trained head, so its scores would be noise. "
                    "Make one of it with: quit benchmark finetune --kind cross-encoder"
                )
            self._model = loaded(
                self._name,
                lambda: CrossEncoder(model_place(self._name), device=self._device, max_length=self._max_length),
            )
        if not texts:
            return np.zeros(0)
        found = self._model.predict(
            [(query, text) for text in texts],
            batch_size=self._batch,
            show_progress_bar=False,
            activation_fn=torch.nn.Identity(),
        )
        found = np.asarray(found, dtype=np.float64)
        if found.shape not in ((len(texts),), (len(texts), 1)):
            raise InputError(f"The cross-encoder {self._name!r} has {found.shape[1]} outputs; a reranker needs one.")
        return found.reshape(len(texts))


class MonoT5:
    """MonoT5 (Nogueira et al. 2020), ``monot5:MODEL``: the log-probability of ``true`` against ``false`` as first word of T5's reply to
    ``Query: ... Document: ... Relevant:``.

    Raises ``InputError`` where no model is named, it cannot be loaded, or its vocabulary has not both words as single pieces.
    """

    def __init__(self, context: Context) -> None:
        settings = context.settings.benchmark
        if not context.argument:
            raise InputError("Name the model of the reranker: monot5:MODEL.")
        self._name, self._batch, self._device = context.argument, settings.batch, settings.device
        self._max_length = settings.max_length
        self._loaded: tuple[Any, Any, list[int]] | None = None
        self.identity = f"monot5/{model_identity(self._name)}/{self._max_length} tokens/batch={self._batch}"

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return log p(true), float64, shape (len(texts),)."""
        import torch

        model, tokenizer, words = self._load()
        made = []
        for batch in batches(texts, self._batch):
            given = tokenizer(
                [f"Query: {query} Document: {text} Relevant:" for text in batch],
                padding=True,
                truncation=True,
                max_length=self._max_length,
                return_tensors="pt",
            ).to(self._device)
            start = torch.full((len(batch), 1), model.config.decoder_start_token_id, device=self._device)
            with torch.inference_mode():
                logits = model(**given, decoder_input_ids=start).logits[:, 0, words]
            made.append(torch.log_softmax(logits.double(), dim=1)[:, 0].cpu().numpy())
        return np.concatenate(made) if made else np.zeros(0)

    def _load(self) -> tuple[Any, Any, list[int]]:
        if self._loaded is None:
            from transformers import AutoTokenizer, T5ForConditionalGeneration

            tokenizer = loaded(self._name, lambda: AutoTokenizer.from_pretrained(self._name))
            model = loaded(self._name, lambda: T5ForConditionalGeneration.from_pretrained(self._name))
            words = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in ("true", "false")]
            if any(len(one) != 1 for one in words) or words[0] == words[1]:
                raise InputError(f"{self._name!r} has no single pieces for 'true' and 'false': it is no MonoT5 model.")
            self._loaded = (model.to(self._device).eval(), tokenizer, [one[0] for one in words])
        return self._loaded


def has_head(name: str) -> bool:
    """Whether a model is a cross-encoder already. A hub name is taken at its word; a folder is looked into."""
    config = Path(name) / "config.json"
    return not config.is_file() or "ForSequenceClassification" in config.read_text(encoding="utf-8")
