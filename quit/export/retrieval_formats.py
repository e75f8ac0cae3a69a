"""Passages, queries and relevance labels for retrieval tools: BEIR, TREC, Pyserini."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from quit.common.safe import json_inside, json_text, one_line
from quit.dataset.dataset import Dataset
from quit.export.files import ExportFolder, FormatFacts
from quit.export.formats import Options
from quit.export.lines import Lines, PassageIds, PassageLayout, QrelsLayout, write_texts
from quit.retrieval.records import whole

COLLECTION = PassageLayout("", "\t", "", whole, one_line)
"""A passage per line of a TSV file: its id, its title and text."""


class Collection(Protocol):
    """What the layouts write: a dataset (:class:`quit.export.lines.Lines`), a corpus. ``sets``: names of the query
    sets, a dataset's splits."""

    @property
    def sets(self) -> Sequence[str]: ...

    def queries(self, name: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield (id, text, metadata) of a set, or of all."""

    def write_passages(self, folder: ExportFolder, file: str, layout: PassageLayout, part: Any = None) -> int:
        """Write a line per passage. ``part``: of :meth:`shards`."""

    def shards(self, file: str, ending: str) -> Sequence[tuple[str, Any]]:
        """Return the files that hold the passages together, each with its part."""

    def write_qrels(self, folder: ExportFolder, layout: QrelsLayout, name: str) -> int:
        """Write the labels of a set."""

    def escapes(self, texts: bool) -> FormatFacts:
        """Return what was escaped."""


def write_beir(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write the layout :func:`beir`; return rows and what was escaped.

    Titles are empty: BEIR's models read title and text together, and anything that names the question would give the
    relevant passages away.
    """
    return beir(Lines(PassageIds(dataset)), folder)


def beir(collection: Collection, folder: ExportFolder) -> FormatFacts:
    """Write ``corpus.jsonl``, ``queries.jsonl`` and, of each set with labels, ``qrels/<set>.tsv`` (Thakur et al.
    2021)."""
    layout = PassageLayout('{"_id": "', '", "title": "', '"}', '{}", "text": "{}'.format, json_inside)
    passages = collection.write_passages(folder, "corpus.jsonl", layout)
    queries = ({"_id": name, "text": text, "metadata": about} for name, text, about in collection.queries())
    count = write_texts(folder, "queries.jsonl", (json_text(query) + "\n" for query in queries))
    qrels_layout = QrelsLayout("qrels/{}.tsv", "\t", "\t", "query-id\tcorpus-id\tscore\n")
    qrels = {name: collection.write_qrels(folder, qrels_layout, name) for name in collection.sets}
    return {"passages": passages, "queries": count, "qrels": qrels, "escaped": collection.escapes(texts=False)}


def write_trec(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write the layout :func:`trec`; return rows and what was escaped."""
    return trec(Lines(PassageIds(dataset)), folder)


def trec(collection: Collection, folder: ExportFolder) -> FormatFacts:
    """Write ``collection.tsv`` (``docid <tab> title and text``), and of each set ``topics.<set>.tsv`` (``qid <tab>
    question``) and ``qrels.<set>.txt`` (``qid 0 docid label``)."""
    passages = collection.write_passages(folder, "collection.tsv", COLLECTION)
    return {"passages": passages, **_topics_and_qrels(collection, folder)}


def write_pyserini(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write the layout :func:`pyserini`; return rows and what was escaped."""
    return pyserini(Lines(PassageIds(dataset)), folder)


def pyserini(collection: Collection, folder: ExportFolder) -> FormatFacts:
    """Write the collection ``corpus/docs*.jsonl`` of ``{"id", "contents"}``, ``topics.<set>.tsv`` and
    ``qrels.<set>.txt`` for Pyserini and Anserini. A title is the first line of ``contents``.

    The folder ``corpus`` is what ``pyserini.index.lucene --collection JsonCollection --input`` takes.
    """
    layout = PassageLayout(
        '{"id": "', '", "contents": "', '"}', lambda *texts: "\\n".join(filter(None, texts)), json_inside
    )
    files = collection.shards("corpus/docs", ".jsonl")
    passages = sum(collection.write_passages(folder, file, layout, part) for file, part in files)
    return {"passages": passages, **_topics_and_qrels(collection, folder)}


def _topics_and_qrels(collection: Collection, folder: ExportFolder) -> FormatFacts:
    topics, qrels, layout = {}, {}, QrelsLayout("qrels.{}.txt", " 0 ", " ")
    for name in collection.sets:
        lines = (f"{query_id}\t{one_line(text)}\n" for query_id, text, _ in collection.queries(name))
        topics[name] = write_texts(folder, f"topics.{name}.tsv", lines)
        qrels[name] = collection.write_qrels(folder, layout, name)
    return {"topics": topics, "qrels": qrels, "escaped": collection.escapes(texts=True)}
