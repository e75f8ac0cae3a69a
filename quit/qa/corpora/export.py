"""A corpus in the layouts of other tools: BEIR, TREC, Pyserini. Streamed, document by document.

Each query set (``musique``, ``musique/sub-questions``) has its own topics and qrels; all share the documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from quit.common.rows import tuples
from quit.common.safe import TEXT_RULE, json_text, one_line, safe_id
from quit.export.files import ExportFolder, Manifest, Publication, requested_formats
from quit.export.lines import write_texts
from quit.qa.indexes.built import BuiltCorpus, query_set
from quit.retrieval.records import whole
from quit.retrieval.trec import qrels_line

VERSION = 2
Row = dict[str, Any]


def export_corpus(corpus: BuiltCorpus, formats: Sequence[str], out: Path, *, overwrite: bool = False) -> list[Manifest]:
    """Write each format into ``out/<format>``; return the manifests. The same corpus gives the same bytes.

    ``facts`` of a manifest: ``counts``, ``datasets`` and ``sources`` of the corpus, with their licences. Raises as
    :func:`quit.export.files.export` does for the same faults.
    """
    names = requested_formats(formats, FORMATS)
    publication = Publication(out, corpus.identity, overwrite=overwrite)
    publication.check(names)

    def write(name: str, folder: ExportFolder) -> Row:
        about = {key: corpus.manifest[key] for key in ("counts", "datasets", "sources")}
        return about | FORMATS[name](corpus, folder)

    return publication.write(names, write, dict.fromkeys(names, VERSION))


# What all formats read.


def _documents(corpus: BuiltCorpus) -> Iterator[tuple[str, str, str]]:
    """Yield (id, title, text)."""
    for batch in corpus.batches():
        yield from tuples(batch, "doc_id", "title", "text")


def _sets(corpus: BuiltCorpus) -> dict[str, tuple[list[Row], list[Row]]]:
    """Return query set (a dash for the slash of its name) -> its queries and qrels, in the corpus's order, with ids
    that are safe in every format: those of a release may hold white space."""
    sets: dict[str, tuple[list[Row], list[Row]]] = {name: ([], []) for name in corpus.manifest["datasets"]}
    queries = corpus.queries.to_pylist()
    set_of = {row["query_id"]: query_set(row) for row in queries}
    for column, rows in enumerate((queries, corpus.qrels.to_pylist())):
        for row in rows:
            sets[set_of[row["query_id"]]][column].append(row | {"query_id": safe_id(row["query_id"])})
    return {name.replace("/", "-"): tables for name, tables in sets.items()}


def _beir(corpus: BuiltCorpus, folder: ExportFolder) -> Row:
    """``corpus.jsonl``, ``queries.jsonl``, ``qrels/<set>.tsv``."""

    def metadata(query: Row) -> Row:
        return {key: query[key] for key in ("answers", "parent_id", "hop", "kind") if query[key] not in (None, [])}

    documents = ({"_id": document_id, "title": title, "text": text} for document_id, title, text in _documents(corpus))
    write_texts(folder, "corpus.jsonl", (json_text(row) + "\n" for row in documents))
    sets = _sets(corpus)
    every = (query for queries, _ in sets.values() for query in queries)
    rows = ({"_id": query["query_id"], "text": query["text"], "metadata": metadata(query)} for query in every)
    write_texts(folder, "queries.jsonl", (json_text(row) + "\n" for row in rows))
    for name, (_, qrels) in sets.items():
        lines = (f"{row['query_id']}\t{row['doc_id']}\t{row['relevance']}\n" for row in qrels)
        write_texts(folder, f"qrels/{name}.tsv", lines, "query-id\tcorpus-id\tscore\n")
    return {}


def _topics(corpus: BuiltCorpus, folder: ExportFolder) -> Row:
    changed_texts = 0
    for name, (queries, qrels) in _sets(corpus).items():
        changed_texts += sum(one_line(row["text"]) != row["text"] for row in queries)
        topics = (f"{row['query_id']}\t{one_line(row['text'])}\n" for row in queries)
        write_texts(folder, f"topics.{name}.tsv", topics)
        relevant = (qrels_line(row["query_id"], row["doc_id"], row["relevance"]) for row in qrels)
        write_texts(folder, f"qrels.{name}.txt", relevant)
    return {"texts_changed": changed_texts, "text_rule": TEXT_RULE}


def _trec(corpus: BuiltCorpus, folder: ExportFolder) -> Row:
    """``collection.tsv`` (id, title and text), ``topics.<set>.tsv``, ``qrels.<set>.txt``."""
    lines = (f"{document_id}\t{one_line(whole(title, text))}\n" for document_id, title, text in _documents(corpus))
    write_texts(folder, "collection.tsv", lines)
    return _topics(corpus, folder)


def _pyserini(corpus: BuiltCorpus, folder: ExportFolder) -> Row:
    """``corpus/docs.jsonl`` of {id, contents}: the title, a line end, the text; topics and qrels as TREC's."""
    rows = (
        {"id": document_id, "contents": f"{title}\n{text}" if title else text}
        for document_id, title, text in _documents(corpus)
    )
    write_texts(folder, "corpus/docs.jsonl", (json_text(row) + "\n" for row in rows))
    return _topics(corpus, folder)


FORMATS: dict[str, Callable[[BuiltCorpus, ExportFolder], Row]] = {
    "beir": _beir,
    "trec": _trec,
    "pyserini": _pyserini,
}
