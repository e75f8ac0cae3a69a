"""Build a corpus: merge the records of its sources, step by step, each step on disk before the next begins.

::

    C/partial/plan.json            what is being built: another plan throws the steps away
    C/partial/00003/               documents, queries, qrels, origins and rejects that a step of records added
    C/documents.parquet, ...       the finished tables (``quit/qa/contracts/corpora.py``)
    C/documents.arrow              the documents again, uncompressed: memory-mapped by everything that reads texts
    C/manifest.json                written last: what lacks it is no corpus

Memory holds one step of records and 20 bytes or so a known document and query.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from quit.common.files import read_json, remove_leftovers, replacing, write_json
from quit.common.ids import content_hash, question_id
from quit.common.manifests import fault, write_manifest
from quit.common.parquet import parquet_writer, rows_of, write_parquet
from quit.common.progress import note
from quit.common.rows import grouped
from quit.common.steps import Steps, remove_steps
from quit.errors import InputError, SettingsError
from quit.qa.contracts.corpora import CORPUS_TABLES
from quit.qa.corpora.sources import CorpusRef
from quit.qa.indexes.built import ARROW, LAYOUT, MADE_BY, MANIFEST, BuiltCorpus, building, check_target, query_set
from quit.qa.settings import Corpora
from quit.retrieval.records import STAGE, CorpusRecord, RawQuery
from quit.sources.fields import plain
from quit.sources.records import Reject
from quit.version import __version__

VERSION = 7
"""Raised when the same sources would give another corpus."""
PARTIAL = "partial"
BLOCK = 2000
"""Source records per step: a killed build resumes after its last whole step."""
ROWS = 16_384
"""Documents per row group and a batch of the memory-mapped file."""
Rows = dict[str, list[dict[str, Any]]]


def build(refs: Sequence[CorpusRef], out: Path, settings: Corpora) -> tuple[BuiltCorpus, bool]:
    """Build the corpus of some sources in the folder ``out``; return it, and whether anything had to be done.

    Exact duplicates of (title, text) are merged, the first occurrence wins. A killed build resumes after its last whole
    step. Raises :class:`InputError` as the sources' readers do, and at the first reject if ``settings.strict``;
    :class:`SettingsError` for no sources, or a folder that holds something else, such as a corpus of a source that is
    none of these; :class:`WorkspaceError` when the disk refuses or another build is at work in the folder.
    """
    if not refs:
        raise SettingsError("A corpus needs at least one --source KIND:PATH.")
    _check_target(out, refs)
    # Hashed once: a file that changes while it is read is the user's to answer for.
    sources = [{"kind": ref.kind, "file": plain(ref.path.name), "checksum": ref.checksum()} for ref in refs]
    made_of = settings.model_dump(exclude={"strict"})
    plan = {"version": VERSION, "sources": sources, "settings": made_of}
    fingerprint = content_hash("corpus", plan)
    with building(out, "corpus"):
        manifest = BuiltCorpus.read_manifest(out) or {}
        if manifest.get("fingerprint") == fingerprint and not (settings.strict and manifest["counts"]["rejected"]):
            if (problem := fault(out / MANIFEST)) is None:
                remove_steps(out / PARTIAL)
                remove_leftovers(out, "*")
                return BuiltCorpus.open(out), False
            note(f"{problem}: the corpus is built again")
        work = _Work(out / PARTIAL, {**plan, "block": BLOCK, "strict": settings.strict}, refs, settings)
        work.run()
        _finish(out, work, fingerprint, sources, made_of)
    return BuiltCorpus.open(out), True


def _check_target(out: Path, refs: Sequence[CorpusRef]) -> None:
    check_target(out, "corpus")
    manifest = BuiltCorpus.read_manifest(out) or {}
    names = {f"{ref.kind}:{plain(ref.path.name)}" for ref in refs}
    earlier = {f"{source.get('kind')}:{source.get('file')}" for source in manifest.get("sources", ())}
    if absent := sorted(earlier - names):
        raise SettingsError(
            f"{out} holds a corpus of {', '.join(absent)}, which this one would replace: choose another "
            "--out, name that source too, or remove the folder first."
        )


class _Work:
    """The steps of one build."""

    def __init__(self, folder: Path, plan: dict[str, Any], refs: Sequence[CorpusRef], settings: Corpora) -> None:
        self.refs, self.settings = refs, settings
        self.documents: set[bytes] = set()
        self.queries: dict[bytes, bytes] = {}
        self.parents: dict[bytes, str] = {}  # of each record: the id of its whole question
        self.folders = Steps(folder, plan)
        self.steps: list[dict[str, Any]] = []
        for number in range(self.folders.finished()):
            self.steps.append(read_json(self.folders[number] / "step.json"))
            self._remember(self.folders[number])

    def _remember(self, step: Path) -> None:
        ids = rows_of(step / "documents.parquet", ["doc_id"])["doc_id"].to_pylist()
        self.documents.update(map(bytes.fromhex, ids))
        qrels = rows_of(step / "qrels.parquet").to_pylist()
        judged = grouped((row["query_id"], (row["doc_id"], row["relevance"])) for row in qrels)
        for row in rows_of(step / "queries.parquet").to_pylist():
            self.queries[_key(row["query_id"])] = _query_digest(row, dict(judged.get(row["query_id"], ())))
            self.parents[_key(row["source"], row["record_id"])] = row["parent_id"] or row["query_id"]

    def run(self) -> None:
        """Do the steps that are missing; the records of finished ones are read and skipped."""
        for number, ref in enumerate(self.refs):
            count = sum(step["records"] for step in self.steps if step["source"] == number)
            if count:
                note(f"{ref.kind}: resuming after {count:,} records")
            records = islice(ref.read(self.settings), count, None)
            while block := list(islice(records, BLOCK)):
                self._step(number, block)
                count += len(block)
                note(f"{ref.kind}: {count:,} records")

    def _step(self, source: int, records: list[CorpusRecord]) -> None:
        rows: Rows = {name: [] for name in CORPUS_TABLES}
        counts: Counter[str] = Counter(records=len(records))
        for record in records:
            self._add(record, rows, counts)
        if self.settings.strict and rows["rejects"]:
            first = rows["rejects"][0]
            raise InputError(f"{first['file']}, {first['detail']} (corpora.strict is on)")
        step = {"source": source, "records": len(records), "counts": dict(counts)}
        with self.folders.adding(len(self.steps)) as folder:
            for name, table_rows in rows.items():
                write_parquet(folder / f"{name}.parquet", CORPUS_TABLES[name].from_rows(table_rows))
            write_json(folder / "step.json", step)
        self.steps.append(step)

    def _add(self, record: CorpusRecord, rows: Rows, counts: Counter[str]) -> None:
        ids = [raw.doc_id for raw in record.documents]
        for raw, document_id in zip(record.documents, ids, strict=True):
            key = bytes.fromhex(document_id)
            if not raw.is_repeated:
                counts["paragraphs"] += 1
            if key not in self.documents:
                self.documents.add(key)
                counts["documents"] += 1
                document = {"doc_id": document_id, "title": raw.title, "text": raw.text, "source": record.source}
                rows["documents"].append(document)
            origin = {name: getattr(record, name) for name in ("source", "file", "record_id")}
            rows["origins"].append({"doc_id": document_id, **origin, "place": raw.place})
        rejects = [*record.rejects, *self._add_queries(record, ids, rows, counts)]
        counts.update(f"rejected:{reject.reason}" for reject in rejects)
        rows["rejects"] += [asdict(reject) for reject in rejects]

    def _add_queries(self, record: CorpusRecord, ids: list[str], rows: Rows, counts: Counter[str]) -> list[Reject]:
        record_queries = record.queries if self.settings.sub_questions else record.queries[:1]
        key = _key(record.source, record.record_id)
        is_repeated = key in self.parents
        parent = self.parents[key] if is_repeated else self._new_parent(record, record_queries)
        query_rows = [_query_row(parent, query, record) for query in record_queries]
        relevance = [_relevance(query, ids) for query in record_queries]
        digests = list(map(_query_digest, query_rows, relevance))
        if is_repeated:
            if [self.queries.get(_key(row["query_id"])) for row in query_rows] == digests:
                counts["repeated_queries"] += len(query_rows)
                return []
            detail = f"record {record.position + 1}: an earlier question has the id {record.record_id!r} and other "
            detail += "words, answers, kind or relevant documents"
            where = (record.source, record.file, record.position, record.record_id)
            return [Reject(STAGE, "record", "duplicate_id", detail, *where)]
        if query_rows:
            self.parents[key] = parent
        for row, best, digest in zip(query_rows, relevance, digests, strict=True):
            self.queries[_key(row["query_id"])] = digest
            rows["queries"].append(row)
            counts["questions" if row["hop"] is None else "sub_questions"] += 1
            if row["hop"] is not None and not best:
                counts["sub_questions_without_support"] += 1
            counts["qrels"] += len(best)
            rows["qrels"] += [
                {"query_id": row["query_id"], "doc_id": document_id, "relevance": grade}
                for document_id, grade in best.items()
            ]
        return []

    def _new_parent(self, record: CorpusRecord, queries: Sequence[RawQuery]) -> str:
        """Return the id of a record's whole question; it ends in a hash where another id of the source, which differs
        in punctuation alone, would give the same one."""
        parent = record.record_id if record.source == "quit" else question_id(record.source, record.record_id)
        if any(_key(_query_row(parent, query, record)["query_id"]) in self.queries for query in queries):
            return f"{parent}-{content_hash(record.record_id, size=8)}"
        return parent

    def tables(self, name: str) -> Iterator[pa.Table]:
        """Yield a table, one piece per step."""
        for number in range(len(self.steps)):
            yield rows_of(self.folders[number] / f"{name}.parquet")

    def counts(self, source: int | None = None) -> dict[str, Any]:
        """Return the counts of one source, or of all."""
        total: Counter[str] = Counter()
        for step in self.steps:
            if source in (None, step["source"]):
                total.update(step["counts"])
        rejected = {key.partition(":")[2]: total[key] for key in sorted(total) if key.startswith("rejected:")}
        names = ("records", "paragraphs", "documents", "questions", "sub_questions", "qrels")
        extra = ("sub_questions_without_support", "repeated_queries")
        return {
            **{name: total[name] for name in names},
            **{n: total[n] for n in extra if total[n]},
            "rejected": rejected,
        }


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


def _query_digest(row: dict[str, Any], relevance: dict[str, int]) -> bytes:
    return bytes.fromhex(content_hash(row["text"], row["answers"], row["kind"], row["source"], relevance, size=8))


def _finish(out: Path, work: _Work, fingerprint: str, sources: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Put the steps together. The manifest of an earlier corpus goes first: files of two corpora never pass for one."""
    (out / MANIFEST).unlink(missing_ok=True)
    remove_leftovers(out, "*")
    identity = hashlib.blake2b(f"corpus/{VERSION}".encode(), digest_size=16)
    for name in CORPUS_TABLES:
        if name == "documents":
            with replacing(out / "documents.parquet") as parquet, replacing(out / ARROW) as arrow:
                _write_documents(work, parquet, arrow, identity)
        else:
            with replacing(out / f"{name}.parquet") as parquet:
                _write(work.tables(name), parquet, name)
    manifest: dict[str, Any] = {
        "made_by": MADE_BY,
        "layout": LAYOUT,
        "program_version": __version__,
        "identity": identity.hexdigest(),
        "fingerprint": fingerprint,
        "settings": settings,
        "counts": {**work.counts(), "documents": pq.read_metadata((out / "documents.parquet").absolute()).num_rows},
        "sources": [
            {**source, **ref.terms(), "counts": work.counts(number)}
            for number, (source, ref) in enumerate(zip(sources, work.refs, strict=True))
        ],
        "datasets": _datasets(out),
    }
    write_manifest(out / MANIFEST, manifest, [out / ARROW, *(out / f"{name}.parquet" for name in CORPUS_TABLES)])
    remove_steps(out / PARTIAL)


def _write_documents(work: _Work, parquet: Path, arrow: Path, identity: Any) -> None:
    schema = CORPUS_TABLES["documents"].schema
    with (
        parquet_writer(parquet, schema) as whole,
        pa.OSFile(str(arrow), "wb") as file,
        ipc.new_file(file, schema) as mapped,
    ):
        for piece in _even(work.tables("documents")):
            identity.update("".join(piece["doc_id"].to_pylist()).encode())
            whole.write_table(piece, row_group_size=ROWS)
            mapped.write_table(piece)


def _write(pieces: Iterator[pa.Table], target: Path, name: str) -> None:
    with parquet_writer(target, CORPUS_TABLES[name].schema) as file:
        for piece in _even(pieces):
            file.write_table(piece, row_group_size=ROWS)


def _even(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of ``pieces`` in batches of fixed size, so that files do not depend on the size of a step."""
    buffer: pa.Table | None = None
    for piece in pieces:
        buffer = piece if buffer is None else pa.concat_tables([buffer, piece])
        while len(buffer) >= ROWS:
            yield buffer.slice(0, ROWS).combine_chunks()
            buffer = buffer.slice(ROWS)
    if buffer is not None and len(buffer):
        yield buffer.combine_chunks()


def _datasets(out: Path) -> dict[str, dict[str, int]]:
    """Return the counts of each query set."""
    queries = rows_of(out / "queries.parquet", ["query_id", "parent_id", "source"])
    qrels = Counter(rows_of(out / "qrels.parquet", ["query_id"])["query_id"].to_pylist())
    counts: dict[str, dict[str, int]] = {}
    for row in queries.to_pylist():
        name = query_set(row)
        entry = counts.setdefault(name, {"queries": 0, "qrels": 0})
        entry["queries"] += 1
        entry["qrels"] += qrels[row["query_id"]]
    return counts
