"""Arrow schemas of a built corpus's tables: what systems, first stages and graphs read."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from quit.contracts.columns import SMALL, TEXT, TEXTS
from quit.contracts.contract import Column, Nullable, TableContract
from quit.contracts.tables import table

_DOCUMENT = Column("doc_id", TEXT, "Id of the document: 20 hexadecimal digits that follow from title and text.")
_QUERY = Column("query_id", TEXT, "Id of the query, namespaced by source; sub-questions end in `-s1`, `-s2`, ...")
_SOURCE = Column("source", TEXT, "Kind of the source: `musique`, `2wiki`, `quit`, `beir`, `jsonl`.")

CORPUS_TABLES: dict[str, TableContract] = {
    table.name: table
    for table in (
        TableContract(
            "documents",
            stage="corpus",
            key=("doc_id",),
            doc="The documents, in the order of their first occurrence: a document's row is its place here.",
            columns=(
                _DOCUMENT,
                Column("title", TEXT, "The title; empty where there is none."),
                Column("text", TEXT, "The text, NFC, with single spaces; never empty."),
                Column("source", TEXT, "Kind of the source where it occurred first."),
            ),
        ),
        TableContract(
            "queries",
            stage="corpus",
            key=("query_id",),
            doc="Questions, each followed by its sub-questions.",
            columns=(
                _QUERY,
                Column("text", TEXT, "The question; in sub-questions, references are replaced by the earlier answers."),
                Column("answers", TEXTS, "Accepted answers, first the one the source names first; may be empty."),
                Nullable("parent_id", TEXT, "A sub-question's whole question; null for a whole question."),
                Nullable("hop", SMALL, "A sub-question's place in its decomposition, from 1."),
                Nullable("kind", TEXT, "The source's type of the whole question: `2hop`, `comparison`, ..."),
                _SOURCE,
                Column("record_id", TEXT, "The whole question's own id in its source."),
            ),
        ),
        TableContract(
            "qrels",
            stage="corpus",
            key=("query_id", "doc_id"),
            doc="Relevant documents; what is not here has relevance 0.",
            columns=(
                _QUERY,
                _DOCUMENT,
                Column("relevance", SMALL, "1 supports the answer; QUIT's own: 2 fully, 1 partially."),
            ),
        ),
        TableContract(
            "origins",
            stage="corpus",
            key=("doc_id", "source", "file", "record_id", "place"),
            doc="Where each document occurred: one row an occurrence, merged duplicates too.",
            columns=(
                _DOCUMENT,
                _SOURCE,
                Column("file", TEXT, "Name of the file, without its folder (a release: its name)."),
                Column("record_id", TEXT, "The record's own id; of a release, the question's."),
                Column("place", TEXT, "Place in the record: paragraph number, or the subset or permutation of hints."),
            ),
        ),
        replace(table("rejects"), stage="corpus", doc="Rejected records and their reasons."),
    )
}


EDGES = TableContract(
    "edges",
    stage="graph",
    key=("doc_id", "rank"),
    doc="The edges of a neighbourhood graph: each document's nearest others.",
    columns=(
        _DOCUMENT,
        Column("neighbour_id", TEXT, "The neighbour; never the document itself."),
        Column("rank", SMALL, "1 is nearest."),
        Column(
            "weight",
            pa.float32(),
            "The encoder's similarity (cosine, MaxSim or a sparse score; imported: the file's score, or 1 / rank), as "
            "float16 holds it.",
        ),
    ),
)
