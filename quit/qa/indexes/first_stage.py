"""First stages over a built corpus: BM25, sparse and dense encoders, each an index on disk that is opened
memory-mapped.

::

    I/manifest.json        written last: kind, encoder, corpus, settings
    I/...                  bm25s's arrays, or vectors, or postings

All implement :class:`quit.retrieval.protocols.FirstStage`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.files import read_json, remove_leftovers
from quit.common.ids import content_hash
from quit.common.manifests import fault, write_manifest
from quit.common.progress import note
from quit.common.steps import remove_steps
from quit.errors import InputError
from quit.qa.folders import building
from quit.qa.indexes import vectors
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.encoders import DenseEncoder, SparseEncoder, dense_encoder, device_of, encoder_kind, sparse_encoder
from quit.qa.indexes.vectors import Vectors, check_finite, checkpointed_batches, encode_corpus, id_of, open_vectors
from quit.qa.settings import FirstStages
from quit.retrieval.hybrid import Bm25Stage
from quit.retrieval.lexical import Bm25, Postings
from quit.retrieval.protocols import FirstStage, Ranking
from quit.retrieval.search import best, nearest
from quit.settings.section import set_options
from quit.text.words import shell_word

VERSION = 2
MANIFEST = "index.json"
QUERY_ROWS, CORPUS_ROWS = 16, 65_536
"""Queries and documents of one product of a search: few queries come at a time."""


class SparseStage:
    """A sparse encoder's postings: the score is the dot product of the weights."""

    def __init__(self, postings: Postings, encoder: SparseEncoder, identity: str) -> None:
        self.identity = identity
        self._postings, self._encoder = postings, encoder

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` documents per query, those with a score above 0. Raises ``InputError`` for NaN."""
        rankings = []
        for query, (entries, weights) in zip(queries, self._encoder.queries(queries), strict=True):
            check_finite(weights[None, :], self._encoder.name, [query].__getitem__)
            scores = self._postings.scores(entries, weights)
            rows = best(scores, depth)
            rows = rows[scores[rows] > 0]
            rankings.append(Ranking(rows.astype(np.int64), scores[rows]))
        return rankings


class DenseStage:
    """A dense encoder's vectors, searched exactly; a GPU holds them all."""

    def __init__(self, vectors: Vectors, encoder: DenseEncoder, settings: FirstStages, identity: str) -> None:
        self.identity = identity
        self.vectors = vectors
        self._encoder = encoder
        self._matrix: Any = vectors.matrix
        self._device = device_of(settings)

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return the ``depth`` nearest documents of each query. Raises ``InputError`` when the encoder returns NaN."""
        if not queries:
            return []
        query_vectors = self._encoder.queries(queries)
        check_finite(query_vectors, self._encoder.name, lambda row: queries[row])
        return [Ranking(*pair) for pair in nearest(query_vectors, self._pieces, depth, QUERY_ROWS)]

    def _pieces(self) -> Iterator[Any]:
        if self._device != "cpu" and isinstance(self._matrix, np.ndarray):
            import torch

            self._matrix = torch.from_numpy(np.array(self._matrix)).to(self._device)
        for low in range(0, len(self._matrix), CORPUS_ROWS):
            yield self._matrix[low : low + CORPUS_ROWS]


def build_first_stage(corpus: BuiltCorpus, name: str, folder: Path, settings: FirstStages) -> FirstStage:
    """Build the index of ``bm25``, ``sparse:NAME`` or a dense encoder, and open it; an index that is up to date is just
    opened.

    A killed run of an encoder resumes after its last whole step, and documents that an earlier index of the folder
    knows are not encoded again by the same dense encoder. Raises what :mod:`quit.qa.indexes.encoders` raises,
    :class:`InputError` for NaN, :class:`WorkspaceError` when the disk refuses or another build is at work in the
    folder.
    """
    facts = _facts(corpus, name, settings)
    with building(folder, "index"):
        earlier = read_json(folder / MANIFEST) or {}
        current = all(earlier.get(key) == value for key, value in facts.items())
        if not current or (problem := fault(folder / MANIFEST)):
            if current:
                note(f"{problem}: the index is built again")
            _build(corpus, name, folder, settings)
            write_manifest(folder / MANIFEST, facts, _files(folder))
    return open_first_stage(folder, corpus, settings)


def _build(corpus: BuiltCorpus, name: str, folder: Path, settings: FirstStages) -> None:
    remove_leftovers(folder, "*")
    (folder / MANIFEST).unlink(missing_ok=True)
    if encoder_kind(name) == "bm25":
        shutil.rmtree(folder / "bm25", ignore_errors=True)
        Bm25.of(corpus.iter_texts(), k1=settings.bm25_k1, b=settings.bm25_b).save(folder / "bm25")
    elif encoder_kind(name) == "sparse":
        _encode_sparse(corpus, sparse_encoder(name, settings), folder / "postings")
    else:
        encode_corpus(corpus, dense_encoder(name, settings), folder / "vectors")


def _encode_sparse(corpus: BuiltCorpus, encoder: SparseEncoder, folder: Path) -> None:
    """Encode a corpus in steps, each on disk before the next, then turn documents into postings."""

    def make(start: int, stop: int) -> list[np.ndarray]:
        rows = encoder.documents(corpus.text_range(start, stop))
        for row, (_, weights) in enumerate(rows, start=start):
            check_finite(weights[None, :], encoder.name, id_of(corpus, row))
        lengths = np.array([len(terms) for terms, _ in rows], dtype=np.int32)
        return [*(np.concatenate(column) for column in zip(*rows, strict=True)), lengths]

    plan = {"corpus": corpus.identity, "identity": encoder.identity}
    names, partial = ("entries", "weights", "lengths"), folder / vectors.PARTIAL
    steps = checkpointed_batches(partial, plan, names, len(corpus), vectors.BLOCK, make, "sparse vectors")
    terms, weights, lengths = (np.concatenate(arrays) for arrays in zip(*steps, strict=True))
    bounds = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    Postings.of(weights, terms, bounds, (len(corpus), encoder.dimension)).save(folder)
    remove_steps(partial)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*/*") if not path.name.startswith(".")]


def _facts(corpus: BuiltCorpus, name: str, settings: FirstStages) -> dict[str, Any]:
    by_kind = {"bm25": {"bm25_k1", "bm25_b"}, "sparse": {"precision", "sparse_similarity"}}
    values = settings.model_dump(include=by_kind.get(encoder_kind(name), {"precision"}))
    facts = {"version": VERSION, "encoder": name, "corpus": corpus.identity, "documents": len(corpus)}
    return {**facts, "identity": encoder_identity(name, settings), "settings": values}


def encoder_identity(name: str, settings: FirstStages) -> str:
    """Return the identity of the encoder that a first stage has; empty for BM25."""
    kind = encoder_kind(name)
    encoder = sparse_encoder if kind == "sparse" else dense_encoder
    return "" if kind == "bm25" else encoder(name, settings).identity


def index_encoder(folder: Path) -> str:
    """Return the name of the encoder of an index that can be opened."""
    return read_json(folder / MANIFEST)["encoder"]


def open_first_stage(folder: str | Path, corpus: BuiltCorpus, settings: FirstStages) -> FirstStage:
    """Open an index, memory-mapped.

    Raises :class:`InputError` where there is none, an unfinished one, one of another corpus, or files that have not the
    checksums of its manifest.
    """
    folder = Path(folder)
    facts, corpus_word = read_json(folder / MANIFEST), shell_word(corpus.path)
    if facts is None:
        raise InputError(
            f"{folder} holds no finished index. Make one: quit index build --corpus {corpus_word} --encoder ENCODER "
            f"--out {shell_word(folder)}"
        )
    options = set_options("first_stages", FirstStages, facts.get("settings", {}))
    encoder_word = shell_word(facts.get("encoder"))
    again = f"quit index build --corpus {corpus_word} --encoder {encoder_word} --out {shell_word(folder)}{options}"
    if problem := fault(folder / MANIFEST):
        raise InputError(f"{problem}. Make the index again: {again}")
    if facts["corpus"] != corpus.identity:
        raise InputError(
            f"The index {folder} was made of another corpus than {corpus.path} now is. Make it again (a dense encoder "
            f"encodes new documents alone): {again}"
        )
    name, kind = facts["encoder"], encoder_kind(facts["encoder"])
    encoder_settings = settings.model_copy(update=facts["settings"])
    if kind == "bm25":
        k1, b = encoder_settings.bm25_k1, encoder_settings.bm25_b
        return Bm25Stage(Bm25.load(folder / "bm25"), f"bm25/{VERSION}/k1={k1}/b={b}@{corpus.identity[:12]}")
    encoder = encoder_identity(name, encoder_settings)
    stored = open_vectors(folder / "vectors")
    if facts.get("identity") != encoder or (kind == "dense" and stored is None):
        raise InputError(f"The vectors of {folder} are not those of {encoder}. Run: {again}")
    if stored is None:
        identity = content_hash("sparse", encoder, corpus.identity, size=8)
        return SparseStage(Postings.load(folder / "postings"), sparse_encoder(name, encoder_settings), identity)
    identity = f"dense:{encoder}@{corpus.identity[:12]}"
    return DenseStage(stored, dense_encoder(name, encoder_settings), encoder_settings, identity)
