"""A corpus in the layouts of other tools: BEIR, TREC, Pyserini (:mod:`quit.export.retrieval_formats`). Streamed,
document by document.

Each query set (``musique``, ``musique/sub-questions``) has its own topics and qrels; all share the documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from quit.common.rows import grouped, tuples
from quit.common.safe import TEXT_RULE, one_line, safe_id
from quit.export.files import ExportFolder, Manifest, Publication
from quit.export.formats import requested_formats
from quit.export.lines import PassageLayout, QrelsLayout, write_texts
from quit.export.retrieval_formats import beir, pyserini, trec
from quit.qa.indexes.built import BuiltCorpus, query_set

VERSION = 2
FORMATS = {"beir": beir, "trec": trec, "pyserini": pyserini}


def export_corpus(corpus: BuiltCorpus, formats: Sequence[str], out: Path, *, overwrite: bool = False) -> list[Manifest]:
    """Write each format into ``out/<format>``; return the manifests. The same corpus gives the same bytes.

    ``facts`` of a manifest: ``counts``, ``datasets`` and ``sources`` of the corpus, with their licences. Raises as
    :func:`quit.export.formats.export` does for the same faults.
    """
    names = requested_formats(formats, FORMATS)
    publication = Publication(out, corpus.identity, overwrite=overwrite)

    def write(name: str, folder: ExportFolder) -> dict[str, Any]:
        about = {key: corpus.manifest[key] for key in ("counts", "datasets", "sources")}
        return about | FORMATS[name](_Sets(corpus), folder)["escaped"]

    return publication.write(names, write, dict.fromkeys(names, VERSION))


class _Sets:
    """Implements :class:`quit.export.retrieval_formats.Collection`. Sets are in the corpus's order, with a dash for the
    slash of their names; ids are safe in every format: those of a release may hold white space."""

    def __init__(self, corpus: BuiltCorpus) -> None:
        self.corpus, self.sets = corpus, [name.replace("/", "-") for name in corpus.manifest["datasets"]]
        rows = corpus.queries.to_pylist()
        self._queries = grouped((query_set(row).replace("/", "-"), row) for row in rows)
        set_of = {row["query_id"]: name for name, queries in self._queries.items() for row in queries}
        self._qrels = grouped((set_of[row["query_id"]], row) for row in corpus.qrels.to_pylist())

    def queries(self, name: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
        names = [name] if name else self.sets
        for row in (row for each in names for row in self._queries.get(each, ())):
            about = {key: row[key] for key in ("answers", "parent_id", "hop", "kind") if row[key] not in (None, [])}
            yield safe_id(row["query_id"]), row["text"], about

    def shards(self, file: str, ending: str) -> list[tuple[str, None]]:
        return [(file + ending, None)]

    def write_passages(self, folder: ExportFolder, file: str, layout: PassageLayout, part: None = None) -> int:
        documents = (row for batch in self.corpus.batches() for row in tuples(batch, "doc_id", "title", "text"))
        escaped = (map(layout.escape, document) for document in documents)
        lines = (
            f"{layout.before}{name}{layout.between}{layout.join(title, text)}{layout.after}\n"
            for name, title, text in escaped
        )
        return write_texts(folder, file, lines)

    def write_qrels(self, folder: ExportFolder, layout: QrelsLayout, name: str) -> int:
        rows = ((safe_id(row["query_id"]), row["doc_id"], row["relevance"]) for row in self._qrels.get(name, ()))
        lines = (f"{query}{layout.between}{document}{layout.before_grade}{grade}\n" for query, document, grade in rows)
        return write_texts(folder, layout.file.format(name), lines, layout.head)

    def escapes(self, texts: bool) -> dict[str, Any]:
        changed = sum(one_line(text) != text for _, text, _ in self.queries())
        return {"texts_changed": changed, "text_rule": TEXT_RULE} if texts else {}
