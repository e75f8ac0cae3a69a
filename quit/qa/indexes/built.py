"""A built corpus on disk: documents memory-mapped, queries, qrels and origins as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from quit.common.files import read_json
from quit.common.manifests import fault
from quit.common.parquet import rows_of
from quit.common.rows import grouped, tuples
from quit.errors import InputError, refuse_newer
from quit.qa.contracts.corpora import CORPUS_TABLES
from quit.qa.folders import is_own
from quit.qa.settings import Corpora
from quit.retrieval.records import whole
from quit.settings.section import set_options
from quit.text.words import shell_word

MANIFEST = "manifest.json"
ARROW = "documents.arrow"
MADE_BY = "QUIT builder corpus"
LAYOUT = 1
"""Version of a corpus's layout. A program refuses a corpus whose number is higher than its own."""
_TEXTS_AT_ONCE = 4096


class SourceFile(TypedDict):
    """A source of a corpus."""

    kind: str
    file: str
    checksum: str


class SourceTerms(TypedDict):
    """None where nothing is stated."""

    licence: str | None
    citation: str | None


class SourceFacts(SourceFile, SourceTerms):
    """What a source has given."""

    counts: dict[str, Any]


class CorpusManifest(TypedDict):
    """A corpus's ``manifest.json``, with its files and a checksum beside these. ``counts``: by name, and the parts that
    were ``rejected`` by reason; ``datasets``: the sizes of each query set."""

    made_by: str
    layout: int
    program_version: str
    identity: str
    fingerprint: str
    settings: dict[str, Any]
    counts: dict[str, Any]
    sources: list[SourceFacts]
    datasets: dict[str, dict[str, int]]


class BuiltCorpus:
    """The documents, queries and qrels of ``quit corpus build``. Implements
    :class:`quit.retrieval.protocols.Documents`.

    ``identity`` changes with any document or their order. Texts stay on disk until they are read.
    """

    def __init__(self, path: Path, manifest: CorpusManifest, documents: pa.Table) -> None:
        self.path = path
        self.manifest = manifest
        self.identity = manifest["identity"]
        self._documents = documents

    @classmethod
    def open(cls, path: str | Path) -> BuiltCorpus:
        """Return the corpus in a folder.

        Raises :class:`InputError` for a folder that holds none, an unfinished one, or files that have not the checksums
        of its manifest; :class:`WorkspaceError` for a newer layout.
        """
        path = Path(path)
        manifest = cls.read_manifest(path)
        if manifest is None:
            unfinished = " (an unfinished build is there: run it again)" if is_own(path, "corpus") else ""
            raise InputError(
                f"{path} holds no corpus{unfinished}. Make one: quit corpus build --source KIND:PATH --out "
                f"{shell_word(path)}"
            )
        refuse_newer(f"The corpus {path}", manifest.get("layout", 0), LAYOUT)
        if problem := fault(path / MANIFEST):
            options = set_options("corpora", Corpora, manifest.get("settings", {}))
            sources = [f"{each['kind']}:FOLDER/{each['file']}" for each in manifest.get("sources", ())]
            source_options = "".join(f"--source {shell_word(source)} " for source in sources)
            raise InputError(
                f"{problem}. Make the corpus again (FOLDER: where the source lies): quit corpus build {source_options}"
                f"--out {shell_word(path)}{options}"
            )
        documents = ipc.open_file(pa.memory_map(str(path / ARROW))).read_all()
        return cls(path, manifest, documents)

    @staticmethod
    def read_manifest(path: Path) -> CorpusManifest | None:
        """Return the manifest in a folder, or None where there is none of ours."""
        manifest: CorpusManifest | None = read_json(path / MANIFEST)
        return manifest if isinstance(manifest, dict) and manifest.get("made_by") == MADE_BY else None

    def __len__(self) -> int:
        return len(self._documents)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the documents' ids."""
        return self._taken("doc_id", rows).to_pylist()

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return what systems read: title, one space and text (the text alone where there is no title)."""
        return _texts(self._taken("title", rows), self._taken("text", rows))

    def bodies(self, rows: Sequence[int]) -> list[str]:
        """Return the documents' texts without titles."""
        return self._taken("text", rows).to_pylist()

    def titles(self, rows: Sequence[int]) -> list[str]:
        """Return the documents' titles, empty where there is none."""
        return self._taken("title", rows).to_pylist()

    def all_ids(self) -> list[str]:
        """Return the ids of all documents in row order."""
        return self._documents["doc_id"].to_pylist()

    def text_range(self, start: int, stop: int) -> list[str]:
        """Return the texts of the rows from ``start`` up to ``stop``, as :meth:`texts` does."""
        piece = self._documents.slice(start, stop - start)
        return _texts(piece["title"], piece["text"])

    def iter_texts(self) -> Iterator[str]:
        """Yield all texts in row order, some thousand of them in memory."""
        for start in range(0, len(self), _TEXTS_AT_ONCE):
            yield from self.text_range(start, min(start + _TEXTS_AT_ONCE, len(self)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the documents table piece by piece."""
        yield from self._documents.to_batches()

    def rows_of(self, ids: Sequence[str]) -> np.ndarray:
        """Return the rows of some documents, int64. Raises :class:`InputError` for an id that is none of them."""
        rows = pc.index_in(pa.array(ids, pa.string()), value_set=self._documents["doc_id"])
        if rows.null_count:
            raise InputError(f"The corpus {self.path} has no document {ids[rows.is_null().index(True).as_py()]!r}.")
        return rows.to_numpy().astype(np.int64)

    @cached_property
    def rows_by_id(self) -> dict[str, int]:
        """The row of each document by its id, and by its id in a source of documents (JSONL, BEIR), unless two
        documents have that."""
        rows = {identity: row for row, identity in enumerate(self.all_ids())}
        origins = self.origins.filter(pc.equal(self.origins["place"], ""))
        names: dict[str, int | None] = {}
        for name, identity in zip(origins["record_id"].to_pylist(), origins["doc_id"].to_pylist(), strict=True):
            row = rows[identity]
            names[name] = row if names.get(name, row) == row else None
        return {name: row for name, row in names.items() if row is not None} | rows

    @cached_property
    def queries(self) -> pa.Table:
        """Columns query_id, text, answers, parent_id, hop, kind, source (``quit/qa/contracts/corpora.py``)."""
        return self._read("queries")

    @cached_property
    def qrels(self) -> pa.Table:
        """Columns query_id, doc_id, relevance."""
        return self._read("qrels")

    @cached_property
    def origins(self) -> pa.Table:
        """Columns doc_id, source, file, record_id, place: every occurrence of every document."""
        return self._read("origins")

    @cached_property
    def rejects(self) -> pa.Table:
        """Records that were left out, with their reasons."""
        return self._read("rejects")

    def relevant_rows(self) -> dict[str, dict[int, int]]:
        """Return query id -> {row: relevance}."""
        relevant: dict[str, dict[int, int]] = {}
        queries, documents, grades = (self.qrels[name].to_pylist() for name in ("query_id", "doc_id", "relevance"))
        for query, row, grade in zip(queries, self.rows_of(documents).tolist(), grades, strict=True):
            relevant.setdefault(query, {})[row] = grade
        return relevant

    def groups(self) -> list[list[int]] | None:
        """Return the rows of each question of a QUIT release, ascending, or None where the corpus has no release.

        A hint that two questions share is one document, which belongs to both.
        """
        rows = self.origins.filter(pc.equal(self.origins["source"], "quit"))
        if not len(rows):
            return None
        questions, documents = tuples(rows, "file", "record_id"), self.rows_of(rows["doc_id"].to_pylist()).tolist()
        return [sorted({*group}) for group in grouped(zip(questions, documents, strict=True)).values()]

    def _read(self, name: str) -> pa.Table:
        return rows_of(self.path / f"{name}.parquet").cast(CORPUS_TABLES[name].schema)

    def _taken(self, name: str, rows: Sequence[int]) -> pa.ChunkedArray:
        positions = np.asarray(rows, dtype=np.int64)
        if positions.size and (positions.min() < 0 or positions.max() >= len(self)):
            raise InputError(
                f"The corpus {self.path} has {len(self):,} documents: there is no row {int(positions.max())}."
            )
        return self._documents[name].take(pa.array(positions))


def _texts(titles: pa.ChunkedArray, texts: pa.ChunkedArray) -> list[str]:
    return list(map(whole, titles.to_pylist(), texts.to_pylist()))


def query_set(query: dict[str, Any]) -> str:
    """Return the query set of a row of ``queries``, named like ir_datasets': ``musique``, ``musique/sub-questions``."""
    return query["source"] if query["parent_id"] is None else f"{query['source']}/sub-questions"
