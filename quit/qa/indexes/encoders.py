"""Encoders by name: MiniLM (embedded), and sentence-transformers' dense, sparse and late-interaction models.

``minilm``; ``NAME`` or a folder (one vector per text); ``sparse:NAME`` (as SPLADE); ``late:NAME`` (as ColBERT, one
vector per token; ``late:minilm`` are MiniLM's token vectors). An encoder is loaded at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from quit.common.ids import content_hash
from quit.errors import InputError, SettingsError
from quit.models.encoders.sentence import Pooling, Similarity, load_encoder
from quit.models.loading import load_sentence_model, located, model_identity, usable_device
from quit.models.minilm.encoder import DIMENSION, MiniLM, minilm_identity
from quit.models.protocols import Encoder
from quit.qa.settings import FirstStages

EMBEDDED = "minilm"
Vectors = TypeVar("Vectors", covariant=True)
Encode = Callable[..., Any]
"""A method of a model of sentence-transformers: texts to vectors."""


class TextEncoder(Protocol[Vectors]):
    """Documents and queries to vectors."""

    name: str

    @property
    def identity(self) -> str:
        """Changes with all that its vectors depend on."""

    @property
    def dimension(self) -> int:
        """Numbers a vector, or entries of the vocabulary."""

    def documents(self, texts: Sequence[str]) -> Vectors: ...

    def queries(self, texts: Sequence[str]) -> Vectors: ...


class DenseEncoder(TextEncoder[np.ndarray], Protocol):
    """One vector per text: shape (len(texts), dimension), float32."""


class SparseEncoder(TextEncoder[list[tuple[np.ndarray, np.ndarray]]], Protocol):
    """A weight per vocabulary entry, most of them 0: (entries ascending, int32; their weights, float32) per text."""


class LateEncoder(TextEncoder[list[np.ndarray]], Protocol):
    """One unit vector per token: shapes (tokens, dimension), float32."""


def encoder_kind(name: str) -> Literal["bm25", "sparse", "late", "dense"]:
    """Return what an encoder's name asks for."""
    if name.startswith("sparse:"):
        return "sparse"
    if name.startswith("late:"):
        return "late"
    return "bm25" if name == "bm25" else "dense"


def dense_encoder(name: str, settings: FirstStages) -> DenseEncoder:
    """Return a dense encoder by name. Raises ``SettingsError`` for the name of another kind."""
    if encoder_kind(name) != "dense":
        raise SettingsError(f"{name!r} is not a dense encoder: name {EMBEDDED}, or one of sentence-transformers'.")
    return EmbeddedEncoder(settings) if name == EMBEDDED else SentenceEncoder(name, settings)


def sparse_encoder(name: str, settings: FirstStages) -> SparseEncoder:
    """Return a sparse encoder, ``sparse:NAME``."""
    return SpladeEncoder(name.removeprefix("sparse:"), settings)


def late_encoder(name: str, settings: FirstStages) -> LateEncoder:
    """Return a late-interaction encoder, ``late:NAME``."""
    if name == f"late:{EMBEDDED}":
        encoder = MiniLM(settings.precision, device_of(settings))
        return TokenVectors(encoder, name, f"late:{encoder.identity}")
    return ColbertEncoder(name.removeprefix("late:"), settings)


def device_of(settings: FirstStages) -> str:
    """Return the device to run on. Raises ``SettingsError`` for one that is not there."""
    return usable_device(settings.device, "first_stages.device")


class EmbeddedEncoder:
    """MiniLM, loaded when it is first asked. Implements :class:`DenseEncoder`."""

    name, dimension = EMBEDDED, DIMENSION

    def __init__(self, settings: FirstStages) -> None:
        self._settings = settings

    @cached_property
    def identity(self) -> str:
        """MiniLM's, on the device that the settings name."""
        return minilm_identity(self._settings.precision, device_of(self._settings))

    @cached_property
    def _model(self) -> MiniLM:
        return MiniLM(self._settings.precision, device_of(self._settings))

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        """See :class:`DenseEncoder`."""
        return self._model.encode(texts)

    queries = documents


class TokenVectors:
    """The token vectors of an encoder of the pipeline, queries and documents alike. Implements :class:`LateEncoder`."""

    def __init__(self, encoder: Encoder, name: str = "late", identity: str = "") -> None:
        self.name, self.identity, self.dimension = name, identity or encoder.identity, encoder.dimension
        self.documents = self.queries = encoder.encode_tokens


class _SentenceModel:
    """An encoder of sentence-transformers, loaded when it is first asked, which raises :class:`InputError` where it
    cannot be.

    ``kind``: its class there. ``prompt``: what a query begins with, where the model itself does not say. ``options``:
    the subclass's own.
    """

    kind, prefix = "", ""

    def __init__(self, name: str, settings: FirstStages, prompt: str | None = None, **options: Any) -> None:
        self.name = f"{self.prefix}{name}"
        self._source, self._settings, self._options = name, settings, options
        self._prompt = {"prompt": prompt} if prompt else {}

    @cached_property
    def model(self) -> Any:
        """The model of sentence-transformers."""
        device = device_of(self._settings)
        model = self._loaded(device)
        if self._settings.precision == "bf16":
            import torch

            model.to(torch.bfloat16)
        return model

    def _loaded(self, device: str) -> Any:
        return load_sentence_model(self.kind, self._source, device=device, what="The encoder")

    @cached_property
    def identity(self) -> str:
        """Changes with all that its vectors depend on, except the texts per batch."""
        prompt = {name: content_hash(text, size=4) for name, text in self._prompt.items()}
        options = {"precision": self._settings.precision, **prompt, **self._options}
        model = self.prefix + model_identity(self._source)
        return "/".join([model, *(f"{name}={value}" for name, value in options.items())])

    def documents(self, texts: Sequence[str]) -> Any:
        """See the protocol that the subclass implements."""
        return self._encode(self.model.encode_document, texts)

    def queries(self, texts: Sequence[str]) -> Any:
        """See the protocol that the subclass implements."""
        return self._encode(self.model.encode_query, texts, **self._prompt)

    def _encode(self, encode: Encode, texts: Sequence[str], **options: Any) -> Any:
        raise NotImplementedError

    def _run(self, encode: Encode, texts: Sequence[str], **options: Any) -> Any:
        return encode(list(texts), batch_size=self._settings.batch, show_progress_bar=False, **options)


class SentenceEncoder(_SentenceModel):
    """One vector per text, of unit length except where the model takes inner products, which rank by length too.

    ``pooling``, ``similarity``: see :func:`quit.models.encoders.sentence.load_encoder`.
    """

    def __init__(
        self,
        name: str,
        settings: FirstStages,
        prompt: str | None = None,
        pooling: Pooling = "auto",
        similarity: Similarity = "cosine",
    ) -> None:
        super().__init__(name, settings, prompt, pooling=pooling, similarity=similarity)

    def _loaded(self, device: str) -> Any:
        return load_encoder(self._source, device=device, **self._options)

    @cached_property
    def dimension(self) -> int:
        """Numbers a vector."""
        return int(self.documents(["dimension"]).shape[1])

    def _encode(self, encode: Encode, texts: Sequence[str], **options: Any) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        unit = self.model.similarity_fn_name != "dot"
        vectors = self._run(encode, texts, normalize_embeddings=unit, convert_to_tensor=True, **options)
        return vectors.float().cpu().numpy()


class SpladeEncoder(_SentenceModel):
    """A weight per vocabulary entry, most of them 0 (as SPLADE); of unit length where the settings say ``cosine``."""

    kind, prefix = "SparseEncoder", "sparse:"

    def __init__(self, name: str, settings: FirstStages) -> None:
        super().__init__(name, settings, similarity=settings.sparse_similarity)

    @cached_property
    def dimension(self) -> int:
        """Entries of the vocabulary, by what the model returns: it may name the width of its hidden states instead."""
        return int(self._run(self.model.encode_document, ["dimension"], convert_to_sparse_tensor=False).shape[1])

    def _encode(self, encode: Encode, texts: Sequence[str], **options: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        pairs = []
        for start in range(0, len(texts), self._settings.batch):
            batch = texts[start : start + self._settings.batch]
            dense = self._run(encode, batch, convert_to_sparse_tensor=False, convert_to_tensor=True, **options)
            if self._options["similarity"] == "cosine":
                dense = dense / dense.norm(dim=1, keepdim=True).clamp_min(1e-12)
            for row in dense.float().cpu().numpy():
                entries = np.flatnonzero(row).astype(np.int32)  # NaN counts as non-zero: it is found, not lost
                pairs.append((entries, row[entries]))
        return pairs


class ColbertEncoder(_SentenceModel):
    """One unit vector per token, by a multi-vector model of sentence-transformers (as ColBERT). ``unit``: whether
    vectors are brought to unit length once more."""

    kind, prefix = "MultiVectorEncoder", "late:"

    def __init__(self, name: str, settings: FirstStages, unit: bool = False) -> None:
        super().__init__(name, settings, unit=unit)

    @cached_property
    def model(self) -> Any:
        """The model. Raises :class:`InputError` for a folder with another kind of model."""
        if not is_multi_vector(located(self._source)):
            raise InputError(
                f"{self._source!r} is not a multi-vector model: its projection would be noise. "
                "Make one of it with: quit benchmark finetune --kind multi-vector"
            )
        return super().model

    @cached_property
    def dimension(self) -> int:
        """Numbers a vector."""
        return int(self.documents(["dimension"])[0].shape[1])

    def _encode(self, encode: Encode, texts: Sequence[str], **options: Any) -> list[np.ndarray]:
        if not texts:
            return []
        tokens = self._run(encode, texts, normalize_embeddings=self._options["unit"], **options)
        return [
            np.asarray(vectors.float().cpu() if hasattr(vectors, "cpu") else vectors, dtype=np.float32)
            for vectors in tokens
        ]


def is_multi_vector(path: str) -> bool:
    """Whether a model has one vector per token. A hub name is not checked; a folder is."""
    modules = Path(path) / "modules.json"
    return not modules.is_file() or "multi_vector" in modules.read_text(encoding="utf-8")
