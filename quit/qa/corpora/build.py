"""A corpus from the records of its sources, merged step by step, each step on disk before the next begins.

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
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from quit.common.files import read_json, remove_leftovers, replacing, write_json
from quit.common.ids import content_hash
from quit.common.manifests import fault, write_manifest
from quit.common.parquet import parquet_writer, rows_of, write_parquet
from quit.common.progress import note
from quit.common.steps import Steps, remove_steps
from quit.errors import SettingsError
from quit.qa.contracts.corpora import CORPUS_TABLES
from quit.qa.corpora.merge import Additions, Known
from quit.qa.corpora.sources import CorpusRef
from quit.qa.folders import building, check_target
from quit.qa.indexes.built import ARROW, LAYOUT, MADE_BY, MANIFEST, BuiltCorpus, CorpusManifest, SourceFile, query_set
from quit.qa.settings import Corpora
from quit.retrieval.records import CorpusRecord
from quit.sources.files import plain_name
from quit.version import __version__

VERSION = 7
"""Raised when the same sources would give another corpus."""
PARTIAL = "partial"
BLOCK = 2000
"""Source records per step: a killed build resumes after its last whole step."""
ROWS = 16_384
"""Documents per row group and a batch of the memory-mapped file."""
RARE = ("sub_questions_without_support", "repeated_queries")
"""Counts that are left out where they are 0."""
COUNTS = ("records", "paragraphs", "documents", "questions", "sub_questions", "qrels", *RARE)


class StepFacts(TypedDict):
    """A step: the number of its source, its records, what they added (:attr:`Additions.counts`), and how many parts of
    them were rejected, by reason."""

    source: int
    records: int
    counts: dict[str, int]
    rejected: dict[str, int]


def build(refs: Sequence[CorpusRef], out: Path, settings: Corpora) -> tuple[BuiltCorpus, bool]:
    """Build the corpus of some sources in the folder ``out``; return it, and whether anything had to be done.

    Exact duplicates of (title, text) are merged, the first occurrence wins. A killed build resumes after its last whole
    step. Raises :class:`InputError` as the sources' readers do, :class:`SettingsError` for no sources, or a folder that
    holds something else, such as a corpus of a source that is none of these, and :class:`WorkspaceError` when the disk
    refuses or another build is at work in the folder.
    """
    if not refs:
        raise SettingsError("A corpus needs at least one --source KIND:PATH.")
    _check_target(out, refs)
    # Hashed once: a file that changes while it is read is the user's to answer for.
    sources: list[SourceFile] = [
        {"kind": ref.kind, "file": plain_name(ref.path.name), "checksum": ref.checksum()} for ref in refs
    ]
    made_of = settings.model_dump()
    plan = {"version": VERSION, "sources": sources, "settings": made_of}
    fingerprint = content_hash("corpus", plan)
    with building(out, "corpus"):
        manifest = BuiltCorpus.read_manifest(out)
        if manifest and manifest.get("fingerprint") == fingerprint:
            if (problem := fault(out / MANIFEST)) is None:
                remove_steps(out / PARTIAL)
                remove_leftovers(out, "*")
                return BuiltCorpus.open(out), False
            note(f"{problem}: the corpus is built again")
        work = _Work(out / PARTIAL, {**plan, "block": BLOCK}, refs, settings)
        work.run()
        _finish(out, work, fingerprint, sources, made_of)
    return BuiltCorpus.open(out), True


def _check_target(out: Path, refs: Sequence[CorpusRef]) -> None:
    check_target(out, "corpus")
    manifest = BuiltCorpus.read_manifest(out)
    names = {f"{ref.kind}:{plain_name(ref.path.name)}" for ref in refs}
    sources = manifest.get("sources", ()) if manifest else ()
    earlier = {f"{source.get('kind')}:{source.get('file')}" for source in sources}
    if absent := sorted(earlier - names):
        raise SettingsError(
            f"{out} holds a corpus of {', '.join(absent)}, which this one would replace: choose another "
            "--out, name that source too, or remove the folder first."
        )


class _Work:
    """The steps of one build."""

    def __init__(self, folder: Path, plan: Mapping[str, Any], refs: Sequence[CorpusRef], settings: Corpora) -> None:
        self.refs, self.settings = refs, settings
        self.known, self.folders = Known(), Steps(folder, plan)
        self.steps: list[StepFacts] = []
        for number in range(self.folders.finished()):
            self.steps.append(read_json(self.folders[number] / "step.json"))
            self.known.read(self.folders[number])

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
        additions = Additions(self.known, self.settings.sub_questions)
        for record in records:
            additions.add(record)
        rejected: Counter[str] = Counter(row["reason"] for row in additions.rows["rejects"])
        step: StepFacts = {"source": source, "records": len(records), "counts": additions.counts, "rejected": rejected}
        with self.folders.adding(len(self.steps)) as folder:
            for name, table_rows in additions.rows.items():
                write_parquet(folder / f"{name}.parquet", CORPUS_TABLES[name].from_rows(table_rows))
            write_json(folder / "step.json", step)
        self.steps.append(step)

    def tables(self, name: str) -> Iterator[pa.Table]:
        """Yield a table, one piece per step."""
        for number in range(len(self.steps)):
            yield rows_of(self.folders[number] / f"{name}.parquet")

    def counts(self, source: int | None = None) -> dict[str, Any]:
        """Return the counts of one source, or of all."""
        steps = [step for step in self.steps if source in (None, step["source"])]
        total = Counter(records=sum(step["records"] for step in steps))
        rejected = Counter[str]()
        for step in steps:
            total.update(step["counts"])
            rejected.update(step["rejected"])
        counts = {name: total[name] for name in COUNTS if total[name] or name not in RARE}
        return {**counts, "rejected": dict(sorted(rejected.items()))}


def _finish(out: Path, work: _Work, fingerprint: str, sources: list[SourceFile], settings: dict[str, Any]) -> None:
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
    manifest: CorpusManifest = {
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


def _write_documents(work: _Work, parquet: Path, arrow: Path, identity: hashlib.blake2b) -> None:
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
