"""Dense retrieval: exact search over the vectors of all passages, which are streamed from files and never held together.

Word order changes a vector, so every permutation is encoded (``granularity = "permutation"``). At the paper's size that is 2.4 million
texts; ``subset`` encodes each subset once, in rank order, and gives all its permutations that score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from quit.corpora.protocols import Ranking
from quit.errors import InputError
from quit.files import replacing, writing
from quit.ids import content_hash
from quit.models.encoders.minilm import model_folder
from quit.models.generation.base import ModelOptions
from quit.systems.benchmark.plugins import Context
from quit.systems.benchmark.task import expand, subset_texts

BLOCK = 64
"""Queries a matrix product takes, padded: a product of one fixed shape treats each query alike."""
VERSION = 1


class Tower(Protocol):
    """Encoders of queries and passages; relevance is the inner product of their vectors."""

    identity: str

    def queries(self, texts: Sequence[str]) -> np.ndarray: ...

    def passages(self, texts: Sequence[str]) -> np.ndarray: ...


class DenseRetriever:
    """Exact nearest neighbours by inner product. Subclasses name the encoders."""

    def __init__(self, context: Context, tower: Tower) -> None:
        settings = context.settings.benchmark
        self._passages, self._tower = context.passages, tower
        self._chunk = settings.chunk
        self._granularity = settings.granularity if context.passages.size > 1 else "permutation"
        self.identity = f"dense/{VERSION}/{tower.identity}/{self._granularity}"
        self._folder = context.cache / content_hash(self.identity, context.passages.identity, self._chunk)

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return the ``depth`` passages with the highest inner products, a query each."""
        asked = self._tower.queries(queries)
        made: list[Ranking] = []
        for start in range(0, len(asked), BLOCK):
            block = np.zeros((BLOCK, asked.shape[1]), dtype=np.float32)
            real = min(BLOCK, len(asked) - start)
            block[:real] = asked[start : start + real]
            made += self._nearest(block, real, depth)
        return made

    def _nearest(self, block: np.ndarray, real: int, depth: int) -> list[Ranking]:
        scores = np.zeros((real, 0), dtype=np.float32)
        units = np.zeros((real, 0), dtype=np.int64)
        first = 0
        for vectors in self._vectors():
            found = (block @ vectors.T)[:real]
            scores = np.concatenate([scores, found], axis=1)
            places = np.arange(first, first + len(vectors), dtype=np.int64)
            units = np.concatenate([units, np.broadcast_to(places, (real, len(vectors)))], axis=1)
            kept = np.argsort(-scores, axis=1, kind="stable")[:, :depth]  # ties go to the earlier unit
            scores, units = np.take_along_axis(scores, kept, 1), np.take_along_axis(units, kept, 1)
            first += len(vectors)
        if self._granularity == "subset":
            return [expand(self._passages, *pair, depth) for pair in zip(units, scores, strict=True)]
        return [Ranking(rows, values) for rows, values in zip(units, scores, strict=True)]

    def _vectors(self) -> Iterator[np.ndarray]:
        for number, texts in enumerate(self._chunks()):
            target = self._folder / f"{number:06d}.npy"
            if not target.is_file():
                with writing(target), replacing(target) as temporary, temporary.open("wb") as file:
                    np.save(file, self._tower.passages(list(texts())))
            yield np.load(target, mmap_mode="r")

    def _chunks(self) -> Iterator[Any]:
        """Yield functions that make a chunk's texts: where the vectors are on disk, no text is made."""
        passages, size = self._passages, self._chunk
        if self._granularity == "subset":
            width = len(passages.subsets)
            step = max(1, size // width)
            for start in range(0, passages.groups, step):
                yield lambda start=start: subset_texts(passages, range(start, min(start + step, passages.groups)))
        else:
            for start in range(0, len(passages), size):
                yield lambda start=start: iter(passages.texts(range(start, min(start + size, len(passages)))))


class MiniLMRetriever(DenseRetriever):
    """all-MiniLM-L6-v2 as it ships with the program."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, _MiniLMTower())


class SentenceRetriever(DenseRetriever):
    """Any sentence-transformers model, ``dense:MODEL``; two towers such as DPR are ``dense:QUERY_MODEL,PASSAGE_MODEL``.

    Raises ``InputError`` where no model is named or it cannot be loaded.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context, SentenceTower(context))


class _MiniLMTower:
    def __init__(self) -> None:
        from quit.models.encoders.minilm import MiniLM

        self.identity = MiniLM.identity
        self._made: Any = None

    def passages(self, texts: Sequence[str]) -> np.ndarray:
        from quit.models.encoders.minilm import MiniLM

        if self._made is None:
            self._made = MiniLM()  # not the run's caching one: millions of passages would only push hints out
        return self._made.encode(texts)

    queries = passages


class SentenceTower:
    """One or two sentence-transformers models; vectors have unit length where a model compares by cosine."""

    def __init__(self, context: Context) -> None:
        settings = context.settings.benchmark
        names = [name.strip() for name in context.argument.split(",") if name.strip()]
        if not 1 <= len(names) <= 2:
            raise InputError("Name the model of a dense retriever: dense:MODEL, or dense:QUERY_MODEL,PASSAGE_MODEL.")
        self._names = names
        self._batch, self._device = settings.batch, settings.device
        self._prompt = settings.query_prompts.get(names[0])
        self._made: dict[str, Any] = {}
        models = "+".join(model_identity(name) for name in names)
        self.identity = f"{models}/batch={self._batch}" + (
            f"/{content_hash(self._prompt, size=4)}" if self._prompt else ""
        )

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Return vectors of queries, shape (len(texts), dimension), float32."""
        prompt = {"prompt": self._prompt} if self._prompt else {}
        return self._encode(self._names[0], "encode_query", texts, prompt)

    def passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return vectors of passages, shape (len(texts), dimension), float32."""
        return self._encode(self._names[-1], "encode_document", texts, {})

    def _encode(self, name: str, method: str, texts: Sequence[str], more: dict[str, Any]) -> np.ndarray:
        model = self._load(name)
        vectors = getattr(model, method)(
            list(texts),
            batch_size=self._batch,
            show_progress_bar=False,
            convert_to_numpy=True,
            normalize_embeddings=model.similarity_fn_name == "cosine",
            **more,
        )
        return np.asarray(vectors, dtype=np.float32)

    def _load(self, name: str) -> Any:
        if name not in self._made:
            from sentence_transformers import SentenceTransformer

            self._made[name] = loaded(name, lambda: SentenceTransformer(model_place(name), device=self._device))
        return self._made[name]


def model_place(name: str) -> str:
    """Return where a model is: the folder of ``minilm``, which comes with the program; any other name is a folder or a hub name."""
    return str(model_folder()) if name == "minilm" else name


def model_identity(name: str) -> str:
    """Return what a model's vectors or scores depend on: a folder's name and content, else the hub's name."""
    return ModelOptions(model_place(name)).identity


def loaded(name: str, make: Any) -> Any:
    """Return the model that ``make`` loads. Raises ``InputError`` in one line where it cannot be loaded."""
    if Path(name).is_absolute() and not Path(name).is_dir():
        raise InputError(f"There is no model folder {name}.")
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        return make()
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            f"The model {name!r} cannot be loaded: {str(error).strip().splitlines()[0]} "
            "Give a hub name that this machine can reach, or a folder of weights."
        ) from error


def batches(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    """Yield texts ``size`` at a time."""
    source = iter(texts)
    while part := list(islice(source, size)):
        yield part
