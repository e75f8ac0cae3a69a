"""Encoders by name: MiniLM (embedded), and sentence-transformers' dense, sparse and late-interaction models.

``minilm``; ``NAME`` or a folder (one vector a text); ``sparse:NAME`` (SPLADE and its kin); ``late:NAME`` (ColBERT and its kin, one
vector a token; ``late:minilm`` are MiniLM's token vectors).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from quit.errors import InputError, MissingDependency, SettingsError
from quit.models.folders import folder_checksum
from quit.settings import FirstStages

EMBEDDED = "minilm"


@runtime_checkable
class DenseEncoder(Protocol):
    """One vector a text. ``identity`` changes whenever vectors could."""

    name: str
    identity: str
    dimension: int

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        """Return vectors, shape (len(texts), dimension), float32."""
        ...

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Return vectors, shape (len(texts), dimension), float32."""
        ...


@runtime_checkable
class SparseEncoder(Protocol):
    """A weight a vocabulary entry, most of them 0."""

    name: str
    identity: str
    dimension: int

    def documents(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return (entries ascending, int32; their weights, float32) a text."""
        ...

    def queries(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return (entries ascending, int32; their weights, float32) a text."""
        ...


@runtime_checkable
class LateEncoder(Protocol):
    """One unit vector a token."""

    name: str
    identity: str
    dimension: int

    def tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return shapes (tokens, dimension), float32."""
        ...


def dense_encoder(name: str, settings: FirstStages) -> DenseEncoder:
    """Return a dense encoder by name. Raises as :func:`load` does, ``SettingsError`` for a sparse or late one."""
    if name.startswith(("sparse:", "late:")):
        raise SettingsError(f"{name!r} is no dense encoder: name {EMBEDDED}, or one of sentence-transformers'.")
    return _MiniLM(settings) if name == EMBEDDED else _Dense(name, settings)


def sparse_encoder(name: str, settings: FirstStages) -> SparseEncoder:
    """Return a sparse encoder, ``sparse:NAME``. Raises as :func:`load` does."""
    return _Sparse(name.removeprefix("sparse:"), settings)


def late_encoder(name: str, settings: FirstStages) -> LateEncoder:
    """Return a late-interaction encoder, ``late:NAME``. Raises as :func:`load` does."""
    bare = name.removeprefix("late:")
    return _LateMiniLM(settings) if bare == EMBEDDED else _Late(bare, settings)


def device_of(settings: FirstStages) -> str:
    """Return the device to run on, and set the number of threads. Raises ``SettingsError`` for one that is not there."""
    import torch

    if settings.threads:
        torch.set_num_threads(settings.threads)
    name = settings.device
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        said = str(error).splitlines()[0][:120]
        raise SettingsError(
            f"first_stages.device is {name!r}, which is not usable here ({said}). Use cpu or auto."
        ) from None
    return name


def load(kind: str, name: str, settings: FirstStages) -> Any:
    """Return a model of sentence-transformers: ``kind`` names its class.

    Raises :class:`MissingDependency` without the package, :class:`InputError` for a name that is neither a folder with a
    model nor one that can be fetched from the hub.
    """
    try:
        import sentence_transformers
    except ImportError:
        raise MissingDependency(
            "This encoder needs sentence-transformers. Run: pip install -c constraints.txt -e ."
        ) from None
    import torch

    made = getattr(sentence_transformers, kind, None)
    if made is None:
        raise MissingDependency(
            f"{kind} needs a newer sentence-transformers. Run: pip install -U sentence-transformers"
        )
    path = Path(name).expanduser()
    try:
        model = made(
            str(path) if path.is_dir() else name,
            device=device_of(settings),
            **({"local_files_only": True} if path.is_dir() else {}),
        )
    except (OSError, ValueError, KeyError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"The encoder {name!r} cannot be loaded as {kind}: {said}. Name a folder or a model of the hub."
        ) from None
    if settings.precision == "bf16":
        model.to(torch.bfloat16)
    return model


def model_identity(name: str, model: Any, settings: FirstStages) -> str:
    """Return what a model's vectors depend on: a folder's content, or its name and commit on the hub; and its arithmetic."""
    path = Path(name).expanduser()
    if path.is_dir():
        return f"{path.name}@{folder_checksum(path)}/{settings.precision}"
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return f"{name}@{(getattr(config, '_commit_hash', None) or 'main')[:12]}/{settings.precision}"


class _MiniLM:
    name = EMBEDDED

    def __init__(self, settings: FirstStages) -> None:
        from quit.models.encoders.minilm import MiniLM

        self._model = MiniLM(settings.precision, device_of(settings))
        self.identity, self.dimension = self._model.identity, self._model.dimension

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        return self._model.encode(texts)

    queries = documents


class _LateMiniLM:
    name = f"late:{EMBEDDED}"

    def __init__(self, settings: FirstStages) -> None:
        from quit.models.encoders.minilm import MiniLM

        self._model = MiniLM(settings.precision, device_of(settings))
        self.identity, self.dimension = f"late:{self._model.identity}", self._model.dimension

    def tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        return self._model.encode_tokens(texts)


class _Dense:
    def __init__(self, name: str, settings: FirstStages) -> None:
        self.name = name
        self._model = load("SentenceTransformer", name, settings)
        self._batch = settings.batch
        # A model trained for dot products ranks by length too; all others are compared by cosine.
        self._unit = str(getattr(self._model, "similarity_fn_name", "cosine")) != "dot"
        self.identity = model_identity(name, self._model, settings)
        self.dimension = int(self.documents(["dimension"]).shape[1])

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        return self._encode(self._model.encode_document, texts)

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        return self._encode(self._model.encode_query, texts)

    def _encode(self, encode: Any, texts: Sequence[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        made = encode(
            list(texts),
            batch_size=self._batch,
            normalize_embeddings=self._unit,
            convert_to_tensor=True,
            show_progress_bar=False,
        )
        return made.float().cpu().numpy()


class _Sparse:
    def __init__(self, name: str, settings: FirstStages) -> None:
        self.name = f"sparse:{name}"
        self._model = load("SparseEncoder", name, settings)
        self._batch = settings.batch
        self.identity = f"sparse:{model_identity(name, self._model, settings)}"
        # A model may say the width of its hidden states instead: what it returns is what counts.
        probe = self._model.encode_document(["dimension"], convert_to_sparse_tensor=False, show_progress_bar=False)
        self.dimension = int(probe.shape[1])

    def documents(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        return self._encode(self._model.encode_document, texts)

    def queries(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        return self._encode(self._model.encode_query, texts)

    def _encode(self, encode: Any, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        made = []
        for start in range(0, len(texts), self._batch):
            some = list(texts[start : start + self._batch])
            dense = encode(
                some,
                batch_size=self._batch,
                convert_to_sparse_tensor=False,
                convert_to_tensor=True,
                show_progress_bar=False,
            )
            for row in dense.float().cpu().numpy():
                entries = np.flatnonzero(row).astype(np.int32)  # NaN counts as non-zero: it is found, not lost
                made.append((entries, row[entries]))
        return made


class _Late:
    """sentence-transformers' multi-vector models; where the installed release has none, PyLate's ColBERT."""

    def __init__(self, name: str, settings: FirstStages) -> None:
        self.name = f"late:{name}"
        self._batch = settings.batch
        try:
            self._model = load("MultiVectorEncoder", name, settings)
            self._encode = self._model.encode_document
        except MissingDependency:
            try:
                from pylate import models
            except ImportError:
                raise MissingDependency(
                    "Late interaction needs sentence-transformers 6, or PyLate in an environment of its own: pip install pylate"
                ) from None
            self._model = models.ColBERT(name, device=device_of(settings))
            self._encode = lambda texts, **rest: self._model.encode(texts, is_query=False, **rest)
        self.identity = f"late:{model_identity(name, self._model, settings)}"
        self.dimension = int(self.tokens(["dimension"])[0].shape[1])

    def tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        if not texts:
            return []
        made = self._encode(list(texts), batch_size=self._batch, show_progress_bar=False)
        return [np.asarray(one.float().cpu() if hasattr(one, "cpu") else one, dtype=np.float32) for one in made]
