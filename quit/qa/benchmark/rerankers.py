"""Pointwise rerankers: cross-encoders, MonoT5, RankT5 and UPR. Each reads (question, passage) and gives one number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from quit.common.ids import content_hash
from quit.errors import InputError
from quit.models.loading import load_pretrained, model_identity
from quit.qa.benchmark.plugins import PluginContext
from quit.qa.indexes.scorers import CrossEncoderScorer

if TYPE_CHECKING:
    from torch import Tensor

MONOT5_WORDS = ("true", "false")
"""MonoT5's words for a relevant passage and for another."""


def monot5_text(question: str, passage: str) -> str:
    """Return what MonoT5 reads (Nogueira et al. 2020)."""
    return f"Query: {question} Document: {passage} Relevant:"


class CrossEncoderReranker(CrossEncoderScorer):
    """Any sentence-transformers cross-encoder with one output, ``cross-encoder:MODEL``; scores are its logits.

    Raises ``InputError`` where no model is named.
    """

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings.benchmark
        if not context.argument:
            raise InputError("Name the model of the reranker: cross-encoder:MODEL.")
        super().__init__(
            context.argument, device=context.running.device, batch=settings.batch, max_length=settings.max_length
        )
        self.identity += f"/{settings.max_length} tokens/batch={settings.batch}"


class _LanguageModel:
    """A model of transformers that reads texts in batches. Raises ``InputError`` where no model is named."""

    name = ""

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings.benchmark
        if not context.argument:
            raise InputError(f"Name the model of the reranker: {self.name}:MODEL.")
        self._name, self._batch, self._device = context.argument, settings.batch, context.running.device
        self._max_length = settings.max_length
        self.identity = f"{self.name}/{model_identity(self._name)}/{self._max_length} tokens/batch={self._batch}"

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return a score per text, float64, shape (len(texts),). Raises ``InputError`` for a model that cannot be
        loaded."""
        import torch

        scores = [np.zeros(0)]
        with torch.inference_mode():
            for first in range(0, len(texts), self._batch):
                scores.append(self._scores(query, texts[first : first + self._batch]).cpu().numpy())
        return np.concatenate(scores)

    def _scores(self, query: str, texts: Sequence[str]) -> Tensor:
        raise NotImplementedError

    def _inputs(self, tokenizer: Any, texts: list[str]) -> Any:
        options = {"padding": True, "truncation": True, "max_length": self._max_length, "return_tensors": "pt"}
        return tokenizer(texts, **options).to(self._device)


class MonoT5(_LanguageModel):
    """MonoT5 (Nogueira et al. 2020), ``monot5:MODEL``: the log-probability of ``true`` against ``false`` as first word
    of T5's reply to ``Query: ... Document: ... Relevant:``.

    Raises ``InputError`` also where its vocabulary has not both words as single pieces.
    """

    name = "monot5"
    words: tuple[str, ...] = MONOT5_WORDS

    def _text(self, query: str, text: str) -> str:
        return monot5_text(query, text)

    def _score(self, logits: Tensor) -> Tensor:
        """Return a score per text from the logits of the words, (texts, words)."""
        return logits.log_softmax(dim=1)[:, 0]

    def _scores(self, query: str, texts: Sequence[str]) -> Tensor:
        import torch

        model, tokenizer, words = self._loaded
        inputs = self._inputs(tokenizer, [self._text(query, text) for text in texts])
        start = torch.full((len(texts), 1), model.config.decoder_start_token_id, device=self._device)
        return self._score(model(**inputs, decoder_input_ids=start).logits[:, 0, words].double())

    @cached_property
    def _loaded(self) -> tuple[Any, Any, list[int]]:
        model, tokenizer = load_pretrained("AutoModelForSeq2SeqLM", self._name, device=self._device)
        words = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in self.words]
        pieces = {piece for some in words for piece in some if piece != tokenizer.unk_token_id}
        if not len(pieces) == sum(map(len, words)) == len(words):
            word_list = " and ".join(map(repr, self.words))
            raise InputError(f"{self._name!r} has no single pieces for {word_list}: it is no model for {self.name}.")
        return model, tokenizer, [piece for [piece] in words]


class RankT5(MonoT5):
    """RankT5 (Zhuang et al. 2023), encoder and decoder, ``rankt5:MODEL``: the logit of ``<extra_id_10>`` as first token
    of T5's reply to ``Query: ... Document: ...``.

    Raises ``InputError`` also where its vocabulary has not this token.
    """

    name, words = "rankt5", ("<extra_id_10>",)

    def _text(self, query: str, text: str) -> str:
        return f"Query: {query} Document: {text}"

    def _score(self, logits: Tensor) -> Tensor:
        return logits[:, 0]


class Upr(_LanguageModel):
    """UPR (Sachan et al. 2022), ``upr:MODEL``: the mean log-probability of the question's tokens and the end token,
    given the passage, by an encoder-decoder (T0).
    """

    name = "upr"

    def __init__(self, context: PluginContext) -> None:
        super().__init__(context)
        self._prompt = context.settings.benchmark.upr_prompt
        self.identity += f"/{content_hash(self._prompt, size=4)}"

    def _scores(self, query: str, texts: Sequence[str]) -> Tensor:
        import torch

        model, tokenizer = self._loaded
        question_ids = tokenizer(query, add_special_tokens=False)["input_ids"]
        if tokenizer.eos_token_id is not None:
            question_ids = [*question_ids, tokenizer.eos_token_id]
        inputs = self._inputs(tokenizer, [self._prompt.replace("{passage}", text) for text in texts])
        question = torch.tensor([question_ids] * len(texts), device=self._device)
        logits = model(**inputs, labels=question).logits
        likelihoods = torch.log_softmax(logits.double(), dim=-1).gather(2, question[:, :, None])
        return likelihoods.mean(dim=(1, 2))

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        what = "The encoder-decoder of UPR"
        return load_pretrained("AutoModelForSeq2SeqLM", self._name, device=self._device, what=what)
