"""Token heads of retrieval complexity that need a model: late-interaction checkpoints and query likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from quit.common.arithmetic import maxsim
from quit.errors import SettingsError
from quit.models.loading import load_pretrained, model_identity
from quit.models.protocols import Encoder
from quit.qa.indexes.encoders import ColbertEncoder, device_of
from quit.qa.settings.corpora import FirstStages
from quit.retrieval.complexity import LateInteraction, TokenHead

MAX_TOKENS = 512
"""Tokens of a document that a sequence-to-sequence head reads: T5 was trained on as many."""


class Colbert:
    """Rel(d, t) by a late-interaction checkpoint, such as ColBERT: the largest cosine of token t with a token of d, 0
    where that is negative.

    Tokens are the checkpoint's own for a query, its marks included, without the masks that pad a query.
    """

    def __init__(self, encoder: ColbertEncoder) -> None:
        self._encoder = encoder
        self._tokens: dict[str, np.ndarray] = {}
        self.identity = f"colbert+{encoder.identity}"

    def prepare(self, texts: Sequence[str]) -> None:
        """Forget documents that are not among the texts."""
        self._tokens = {text: self._tokens[text] for text in texts if text in self._tokens}

    def relevance(self, question: str, texts: Sequence[str]) -> np.ndarray:
        """See :class:`TokenHead`."""
        for module in self._encoder.model:
            if hasattr(module, "query_expansion"):
                module.query_expansion = None
        for text in texts:
            if text not in self._tokens:  # one at a time: padding would change the last bits
                [self._tokens[text]] = self._encoder.documents([text])
        [query] = self._encoder.queries([question])
        return np.clip(maxsim(query, [self._tokens[text] for text in texts]), 0.0, None)


class TokenLikelihood:
    """Rel(d, t) by a sequence-to-sequence model of transformers: the probability of token t, given the document and the
    question's tokens before it (query likelihood; Sachan et al. 2022).

    ``model``: a hub name or a folder. Raises :class:`InputError` where it cannot be loaded.
    """

    def __init__(self, model: str, *, device: str = "cpu") -> None:
        self.identity = f"token-likelihood/{model_identity(model)}"
        self._model, self._device = model, device

    def prepare(self, texts: Sequence[str]) -> None:
        """Do nothing."""

    def relevance(self, question: str, texts: Sequence[str]) -> np.ndarray:
        """See :class:`TokenHead`."""
        import torch

        model, tokenizer = self._loaded
        query = tokenizer(question, add_special_tokens=False, return_tensors="pt")["input_ids"].to(self._device)
        relevance = np.zeros((len(texts), query.shape[1]))
        for row, text in enumerate(texts if query.shape[1] else ()):
            document = tokenizer(text, truncation=True, max_length=MAX_TOKENS, return_tensors="pt").to(self._device)
            with torch.inference_mode():
                shares = model(**document, labels=query).logits[0].double().softmax(dim=-1)
            relevance[row] = shares.gather(1, query[0, :, None])[:, 0].cpu().numpy()
        return relevance

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        return load_pretrained("AutoModelForSeq2SeqLM", self._model, device=self._device, what="The token head")


def token_head(kind: str, model: str, encoder: Encoder, stages: FirstStages) -> TokenHead:
    """Return the token head that ``complexity.token_head`` names.

    Raises :class:`SettingsError` where a model is needed and not named, or named and not used.
    """
    if bool(model) == (kind == "minilm"):
        needs = "uses the profile's encoder: leave out" if model else "needs"
        raise SettingsError(f"complexity.token_head {kind!r} {needs} complexity.token_model.")
    if kind == "late":
        return Colbert(ColbertEncoder(model.removeprefix("late:"), stages))
    return TokenLikelihood(model, device=device_of(stages)) if kind == "seq2seq" else LateInteraction(encoder)
