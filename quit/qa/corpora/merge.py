"""Records merged into a corpus: what is new of each, and what it repeats."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from quit.common.ids import content_hash, question_id
from quit.common.parquet import rows_of
from quit.common.rows import grouped
from quit.qa.contracts.corpora import CORPUS_TABLES
from quit.retrieval.records import STAGE, CorpusRecord, RawQuery
from quit.sources.records import Reject


@dataclass(frozen=True, eq=False)
class Known:
    """A corpus so far, 20 bytes or so a document and query: documents by id, queries with a digest of their content,
    and of each record the id of its whole question."""

    documents: set[bytes] = field(default_factory=set)
    queries: dict[bytes, bytes] = field(default_factory=dict)
    parents: dict[bytes, str] = field(default_factory=dict)

    def read(self, step: Path) -> None:
        """Take over the tables of a finished step."""
        ids = rows_of(step / "documents.parquet", ["doc_id"])["doc_id"].to_pylist()
        self.documents.update(map(bytes.fromhex, ids))
        qrels = rows_of(step / "qrels.parquet").to_pylist()
        judged = grouped((row["query_id"], (row["doc_id"], row["relevance"])) for row in qrels)
        for row in rows_of(step / "queries.parquet").to_pylist():
            self.queries[_key(row["query_id"])] = _query_digest(row, dict(judged.get(row["query_id"], ())))
            self.parents[_key(row["source"], row["record_id"])] = row["parent_id"] or row["query_id"]


class Additions:
    """What records add to a corpus. ``rows``: by table; ``counts``: of ``paragraphs``, ``documents``, ``questions``,
    ``sub_questions``, ``qrels``, ``sub_questions_without_support`` and ``repeated_queries``."""

    def __init__(self, known: Known, sub_questions: bool) -> None:
        self._known, self._sub_questions = known, sub_questions
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in CORPUS_TABLES}
        self.counts: Counter[str] = Counter()

    def add(self, record: CorpusRecord) -> None:
        """Merge a record: exact duplicates of (title, text) are one document, the first occurrence wins."""
        ids = [raw.doc_id for raw in record.documents]
        for raw, document_id in zip(record.documents, ids, strict=True):
            key = bytes.fromhex(document_id)
            if not raw.is_repeated:
                self.counts["paragraphs"] += 1
            if key not in self._known.documents:
                self._known.documents.add(key)
                self.counts["documents"] += 1
                document = {"doc_id": document_id, "title": raw.title, "text": raw.text, "source": record.source}
                self.rows["documents"].append(document)
            origin = {"source": record.source, "file": record.file, "record_id": record.record_id}
            self.rows["origins"].append({"doc_id": document_id, **origin, "place": raw.place})
        rejects = [*record.rejects, *self._add_queries(record, ids)]
        self.rows["rejects"] += [asdict(reject) for reject in rejects]

    def _add_queries(self, record: CorpusRecord, ids: list[str]) -> list[Reject]:
        known = self._known
        record_queries = record.queries if self._sub_questions else record.queries[:1]
        key = _key(record.source, record.record_id)
        is_repeated = key in known.parents
        parent = known.parents[key] if is_repeated else self._new_parent(record, record_queries)
        query_rows = [_query_row(parent, query, record) for query in record_queries]
        relevance = [_relevance(query, ids) for query in record_queries]
        digests = list(map(_query_digest, query_rows, relevance))
        if is_repeated:
            if [known.queries.get(_key(row["query_id"])) for row in query_rows] == digests:
                self.counts["repeated_queries"] += len(query_rows)
                return []
            detail = f"record {record.position + 1}: an earlier question has the id {record.record_id!r} and other "
            detail += "words, answers, kind or relevant documents"
            where = (record.source, record.file, record.position, record.record_id)
            return [Reject(STAGE, "record", "duplicate_id", detail, *where)]
        if query_rows:
            known.parents[key] = parent
        for row, best, digest in zip(query_rows, relevance, digests, strict=True):
            known.queries[_key(row["query_id"])] = digest
            self.rows["queries"].append(row)
            self.counts["questions" if row["hop"] is None else "sub_questions"] += 1
            if row["hop"] is not None and not best:
                self.counts["sub_questions_without_support"] += 1
            self.counts["qrels"] += len(best)
            for name, value in best.items():
                self.rows["qrels"].append({"query_id": row["query_id"], "doc_id": name, "relevance": value})
        return []

    def _new_parent(self, record: CorpusRecord, queries: Sequence[RawQuery]) -> str:
        """Return the id of a record's whole question; it ends in a hash where another id of the source, which differs
        in punctuation alone, would give the same one."""
        parent = record.record_id if record.source == "quit" else question_id(record.source, record.record_id)
        if any(_key(_query_row(parent, query, record)["query_id"]) in self._known.queries for query in queries):
            return f"{parent}-{content_hash(record.record_id, size=8)}"
        return parent


def _query_row(parent: str, query: RawQuery, record: CorpusRecord) -> dict[str, Any]:
    return {
        "query_id": parent if query.hop is None else f"{parent}-s{query.hop}",
        "text": query.text,
        "answers": list(query.answers),
        "parent_id": None if query.hop is None else parent,
        "hop": query.hop,
        "kind": query.kind,
        "source": record.source,
        "record_id": record.record_id,
    }


def _key(*names: str) -> bytes:
    return hashlib.blake2b("\0".join(names).encode(), digest_size=12).digest()


def _relevance(query: RawQuery, ids: list[str]) -> dict[str, int]:
    """Return the highest relevance of each relevant document, by its id."""
    best: dict[str, int] = {}
    for position, grade in query.relevant:
        best[ids[position]] = max(grade, best.get(ids[position], 0))
    return best


def _query_digest(row: Mapping[str, Any], relevance: dict[str, int]) -> bytes:
    return bytes.fromhex(content_hash(row["text"], row["answers"], row["kind"], row["source"], relevance, size=8))
