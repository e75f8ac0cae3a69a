"""Encoders by name: MiniLM (embedded), and sentence-transformers' dense, sparse and late-interaction models.

``minilm``; ``NAME`` or a folder (one vector per text); ``sparse:NAME`` (as SPLADE); ``late:NAME`` (as ColBERT, one
vector per token; ``late:minilm`` are MiniLM's token vectors). An encoder is loaded at its first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from quit.errors import InputError, SettingsError
from quit.models.encoders.sentence import load_encoder
from quit.models.folders import folder_checksum
from quit.models.loading import load_sentence_model, located, usable_device
from quit.models.minilm.encoder import DIMENSION, MiniLM, minilm_identity
from quit.models.protocols import Encoder
from quit.qa.settings import FirstStages

EMBEDDED = "minilm"


Vectors = TypeVar("Vectors", covariant=True)


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


@runtime_checkable
class DenseEncoder(TextEncoder[np.ndarray], Protocol):
    """One vector per text: shape (len(texts), dimension), float32."""


@runtime_checkable
class SparseEncoder(TextEncoder[list[tuple[np.ndarray, np.ndarray]]], Protocol):
    """A weight per vocabulary entry, most of them 0: (entries ascending, int32; their weights, float32) per text."""


@runtime_checkable
class LateEncoder(TextEncoder[list[np.ndarray]], Protocol):
    """One unit vector per token: shapes (tokens, dimension), float32."""


def dense_encoder(name: str, settings: FirstStages) -> DenseEncoder:
    """Return a dense encoder by name. Raises ``SettingsError`` for a sparse or late one."""
    if name.startswith(("sparse:", "late:")):
        raise SettingsError(f"{name!r} is not a dense encoder: name {EMBEDDED}, or one of sentence-transformers'.")
    return EmbeddedEncoder(settings) if name == EMBEDDED else SentenceEncoder(name, settings)


def sparse_encoder(name: str, settings: FirstStages) -> SparseEncoder:
    """Return a sparse encoder, ``sparse:NAME``."""
    return SpladeEncoder(name.removeprefix("sparse:"), settings)


def late_encoder(name: str, settings: FirstStages) -> LateEncoder:
    """Return a late-interaction encoder, ``late:NAME``."""
    bare = name.removeprefix("late:")
    if bare == EMBEDDED:
        encoder = MiniLM(settings.precision, device_of(settings))
        return TokenVectors(encoder, name, f"late:{encoder.identity}")
    return ColbertEncoder(bare, settings)


def device_of(settings: FirstStages) -> str:
    """Return the device to run on, and set the threads. Raises ``SettingsError`` for one that is not there."""
    if settings.threads:
        import torch

        torch.set_num_threads(settings.threads)
    return usable_device(settings.device, "first_stages.device")


def model_identity(name: str, model: Any, settings: FirstStages) -> str:
    """Return what a model's vectors depend on: a folder's content, or its name and commit on the hub; and its
    arithmetic.

    ``model``: called for the loaded model where the name is the hub's.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return f"{path.name}@{folder_checksum(path)}/{settings.precision}"
    config = getattr(getattr(model()[0], "auto_model", None), "config", None)
    return f"{name}@{(getattr(config, '_commit_hash', None) or 'main')[:12]}/{settings.precision}"


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

    ``kind``: its class there. ``identity``: what it is known by, where that is not :func:`model_identity`. ``prompt``:
    what a query begins with, where the model itself does not say. ``unit``: whether token vectors are brought to unit
    length once more.
    """

    kind, prefix = "", ""

    def __init__(
        self, name: str, settings: FirstStages, identity: str = "", prompt: str | None = None, unit: bool = False
    ) -> None:
        self.name = f"{self.prefix}{name}"
        self._source, self._settings, self._identity = name, settings, identity
        self._prompt = {"prompt": prompt} if prompt else {}
        self._unit = unit

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
        """Changes with all that its vectors depend on."""
        return self._identity or self.prefix + model_identity(self._source, lambda: self.model, self._settings)

    def documents(self, texts: Sequence[str]) -> Any:
        """See the protocol that the subclass implements."""
        return self._encode("encode_document", texts)

    def queries(self, texts: Sequence[str]) -> Any:
        """See the protocol that the subclass implements."""
        return self._encode("encode_query", texts, **self._prompt)

    def _encode(self, method: str, texts: Sequence[str], **options: Any) -> Any:
        raise NotImplementedError

    def _run(self, method: str, texts: Sequence[str], **options: Any) -> Any:
        return getattr(self.model, method)(
            list(texts), batch_size=self._settings.batch, show_progress_bar=False, **options
        )


class SentenceEncoder(_SentenceModel):
    """One vector per text, of unit length except where the model takes inner products, which rank by length too.

    ``pooling``, ``similarity``: see :func:`quit.models.encoders.sentence.load_encoder`.
    """

    def __init__(
        self,
        name: str,
        settings: FirstStages,
        identity: str = "",
        prompt: str | None = None,
        pooling: str = "auto",
        similarity: str = "cosine",
    ) -> None:
        super().__init__(name, settings, identity, prompt)
        self._pooling, self._similarity = pooling, similarity

    def _loaded(self, device: str) -> Any:
        return load_encoder(self._source, device=device, pooling=self._pooling, similarity=self._similarity)

    @cached_property
    def dimension(self) -> int:
        """Numbers a vector."""
        return int(self.documents(["dimension"]).shape[1])

    def _encode(self, method: str, texts: Sequence[str], **options: Any) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        unit = str(getattr(self.model, "similarity_fn_name", "cosine")) != "dot"
        vectors = self._run(method, texts, normalize_embeddings=unit, convert_to_tensor=True, **options)
        return vectors.float().cpu().numpy()


class SpladeEncoder(_SentenceModel):
    """A weight per vocabulary entry, most of them 0 (as SPLADE); of unit length where the settings say ``cosine``."""

    kind, prefix = "SparseEncoder", "sparse:"

    @cached_property
    def identity(self) -> str:
        """Changes with all that its vectors depend on."""
        return super().identity + ("/cosine" if self._cosine else "")

    @property
    def _cosine(self) -> bool:
        return self._settings.sparse_similarity == "cosine"

    @cached_property
    def dimension(self) -> int:
        """Entries of the vocabulary, by what the model returns: it may name the width of its hidden states instead."""
        return int(self._run("encode_document", ["dimension"], convert_to_sparse_tensor=False).shape[1])

    def _encode(self, method: str, texts: Sequence[str], **options: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        pairs = []
        for start in range(0, len(texts), self._settings.batch):
            batch = texts[start : start + self._settings.batch]
            dense = self._run(method, batch, convert_to_sparse_tensor=False, convert_to_tensor=True, **options)
            if self._cosine:
                dense = dense / dense.norm(dim=1, keepdim=True).clamp_min(1e-12)
            for row in dense.float().cpu().numpy():
                entries = np.flatnonzero(row).astype(np.int32)  # NaN counts as non-zero: it is found, not lost
                pairs.append((entries, row[entries]))
        return pairs


class ColbertEncoder(_SentenceModel):
    """One unit vector per token, by a multi-vector model of sentence-transformers (as ColBERT)."""

    kind, prefix = "MultiVectorEncoder", "late:"

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

    def _encode(self, method: str, texts: Sequence[str], **options: Any) -> list[np.ndarray]:
        if not texts:
            return []
        tokens = self._run(method, texts, normalize_embeddings=self._unit, **options)
        return [
            np.asarray(vectors.float().cpu() if hasattr(vectors, "cpu") else vectors, dtype=np.float32)
            for vectors in tokens
        ]


def is_multi_vector(path: str) -> bool:
    """Whether a model has one vector per token. A hub name is not checked; a folder is."""
    modules = Path(path) / "modules.json"
    return not modules.is_file() or "multi_vector" in modules.read_text(encoding="utf-8")
