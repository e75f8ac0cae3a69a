"""A folder in BEIR's layout as a corpus with questions: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/*.tsv``, also in
gzip or zstd; the first two as Parquet too.

A line of ``queries.jsonl`` is {_id, text}; beside these or in ``metadata``: ``answers`` (a list, or one text; also
``answer``), ``kind``, and of a sub-question ``parent_id`` and ``hop``, as ``quit corpus export`` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from quit.common.opening import PACKED
from quit.errors import InputError
from quit.retrieval import corpus
from quit.retrieval.records import STAGE, CorpusRecord, RawDocument, RawQuery, clean, clean_id
from quit.sources.files import plain_name, read_text
from quit.sources.lines import json_lines
from quit.sources.records import Reject

HOPS = range(1, 1 << 15)
"""Places of a sub-question that the table of queries can hold."""
MAX_RELEVANCE = 2**15 - 1
"""Highest relevance that the table of judgements can hold."""
EXPECTED = "a folder with corpus.jsonl, queries.jsonl and qrels/*.tsv (query-id, corpus-id, score)"
_HEADING = (
    ("query", "queryid", "qid"),
    ("corpus", "corpusid", "doc", "docid", "docno", "pid"),
    ("score", "relevance", "rel", "label", "grade"),
)
"""Words for the columns of qrels in a heading, letters alone."""


class _Judged(NamedTuple):
    """A line of qrels: its file and number, the document's id and its relevance."""

    file: str
    line: int
    document: str
    relevance: int


class _Query(NamedTuple):
    """A line of queries, by its number: its fields and those of its ``metadata``, with its cleaned ``id``."""

    line: int
    fields: dict[str, Any]


def read(folder: Path) -> Iterator[CorpusRecord]:
    """Yield one record per document, then one per whole question with its sub-questions and their relevant documents.

    What has relevance 0 or less is not relevant. Rejects name file and line: lines without id or text, a sub-question
    without its question or hop, another relevance of a pair, relevance of an unknown query or document. Raises
    :class:`InputError` for a file that is missing or cannot be read, and for relevance above :data:`MAX_RELEVANCE`,
    naming the line.
    """
    _, queries_file, *_ = files(folder)
    judged, rejects = _qrels(folder)
    yield from rejects
    relevant_ids = {pair.document for pairs in judged.values() for pair in pairs}
    documents: dict[str, RawDocument] = {}
    for record in corpus.read(folder, "beir"):
        if record.documents and record.record_id in relevant_ids:
            documents.setdefault(record.record_id, record.documents[0])
        yield record
    whole, steps, rejects = _queries(queries_file)
    yield from rejects
    for identity, query in whole.items():
        own_steps = sorted((step.fields for step in steps.pop(identity, [])), key=itemgetter("hop"))
        yield _record(queries_file.name, query.line, identity, [query.fields, *own_steps], judged, documents)
    for parent, orphans in steps.items():
        for line, row in orphans:
            judged.pop(row["id"], None)
            yield _rejected(queries_file.name, line, "no_question", f"there is no query {parent!r}", row["id"])
    for name, pairs in judged.items():
        for pair in pairs:
            yield _rejected(pair.file, pair.line, "no_question", f"there is no query {name!r}", name)


def _queries(path: Path) -> tuple[dict[str, _Query], dict[str, list[_Query]], list[CorpusRecord]]:
    """Return the whole questions by id, sub-questions by the id of theirs, and the lines that are neither."""
    whole: dict[str, _Query] = {}
    steps: dict[str, list[_Query]] = {}
    rejects: list[CorpusRecord] = []
    ids: set[str | tuple[str, int]] = set()
    for line, row in json_lines(path, "JSON Lines of queries"):
        metadata = row.get("metadata")
        fields = {**metadata, **row} if isinstance(metadata, dict) else row
        name = next((row[key] for key in ("_id", "id") if row.get(key) is not None), None)
        identity = clean_id(str(name)) if isinstance(name, str | int) else ""
        parent = fields.get("parent_id")
        parent = parent if parent is None else clean_id(str(parent))
        if fault := _fault(identity, row.get("text"), parent, fields.get("hop"), ids):
            rejects.append(_rejected(path.name, line, *fault, identity))
            continue
        ids.add(identity)
        query = _Query(line, {**fields, "id": identity})
        if parent is None:
            whole[identity] = query
        else:
            ids.add((parent, fields["hop"]))
            steps.setdefault(parent, []).append(query)
    return whole, steps, rejects


def _fault(
    identity: str, text: Any, parent: str | None, hop: Any, ids: set[str | tuple[str, int]]
) -> tuple[str, str] | None:
    """Return reason and detail of why a query is left out, None where it is not. ``ids``: of earlier queries, and of
    sub-questions (parent, hop) too."""
    if not identity or not isinstance(text, str) or not clean(text):
        return "missing_field", "the query has no _id (a text or a whole number), or no text"
    if identity in ids:
        return "duplicate_id", f"an earlier query has the id {identity!r}"
    if parent is not None and (type(hop) is not int or hop not in HOPS):
        return "missing_field", f"the sub-question has no hop ({HOPS[0]} to {HOPS[-1]})"
    if parent is not None and (parent, hop) in ids:
        return "duplicate_id", f"an earlier sub-question of {parent!r} has the hop {hop}"
    return None


def files(folder: Path) -> list[Path]:
    """Return a folder's files: corpus, queries, qrels. Raises :class:`InputError` for those that are missing."""
    every = [corpus.one_of(folder, stem) or folder / f"{stem}.jsonl" for stem in ("corpus", "queries")]
    every += sorted(path for end in ("", *PACKED) for path in (folder / "qrels").glob(f"*.tsv{end}")) or [
        folder / "qrels" / "*.tsv"
    ]
    for path in every:
        if not path.is_file():
            raise InputError(f"There is no {path}; expected {EXPECTED}.")
    return every


def _qrels(folder: Path) -> tuple[dict[str, list[_Judged]], list[CorpusRecord]]:
    """Return query id -> its relevant documents, and the lines whose pair an earlier line grades otherwise.

    Raises :class:`InputError` for a line that is none of qrels.
    """
    judged: dict[str, list[_Judged]] = {}
    grades: dict[tuple[str, str], int] = {}
    rejects: list[CorpusRecord] = []
    for path in files(folder)[2:]:
        name, order = plain_name(path.name), [0, 1, 2]
        for number, line in enumerate(read_text(path, EXPECTED).split("\n"), start=1):
            columns = [column.strip() for column in line.split("\t")]
            if number == 1 and (heading := _order(columns)):
                order = heading
                continue
            if not line.strip():
                continue
            try:
                query, document, score = (text for _, text in sorted(zip(order, map(clean_id, columns), strict=True)))
                relevance = int(float(score))
                if relevance != float(score):
                    raise ValueError(score)
            except (ValueError, OverflowError):
                raise InputError(
                    f"{path}, line {number}: expected query-id, corpus-id and a whole number, with tabs between them, "
                    f"found {line[:60]!r}."
                ) from None
            if relevance > MAX_RELEVANCE:
                raise InputError(f"{path}, line {number}: relevance {relevance} is above {MAX_RELEVANCE:,}.")
            if (grade := grades.setdefault((query, document), relevance)) != relevance:
                detail = f"an earlier line grades {document!r} {grade} for {query!r}; that one is kept"
                rejects.append(_rejected(name, number, "duplicate_id", detail, query))
            elif relevance > 0:
                judged.setdefault(query, []).append(_Judged(name, number, document, relevance))
    return judged, rejects


def _order(heading: list[str]) -> list[int]:
    """Return for each column of a heading whether it is query (0), document (1) or score (2); nothing for others."""
    order = [kind for column in heading for kind, words in enumerate(_HEADING) if _letters(column) in words]
    return order if sorted(order) == [0, 1, 2] and len(heading) == 3 else []


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text.lower()))


def _record(
    file: str,
    line: int,
    identity: str,
    rows: list[dict[str, Any]],
    judged: dict[str, list[_Judged]],
    documents: dict[str, RawDocument],
) -> CorpusRecord:
    places: dict[str, int] = {}
    queries: list[RawQuery] = []
    rejects: list[Reject] = []
    for row in rows:
        relevant = []
        for pair in judged.pop(row["id"], []):
            if pair.document in documents:
                relevant.append((places.setdefault(pair.document, len(places)), pair.relevance))
            else:
                detail = f"the corpus has no usable document {pair.document!r}"
                rejects += _rejected(pair.file, pair.line, "no_document", detail, row["id"]).rejects
        answers = row.get("answers", row.get("answer", ()))
        answers = answers if isinstance(answers, list | tuple) else (answers,)
        texts = dict.fromkeys(clean(str(answer)) for answer in answers if type(answer) in (str, int, float))
        kind = row.get("kind") if isinstance(row.get("kind"), str) else None
        hop = row["hop"] if row is not rows[0] else None
        queries.append(RawQuery(clean(row["text"]), tuple(filter(None, texts)), tuple(relevant), hop, kind))
    record_documents = tuple(
        RawDocument(documents[name].title, documents[name].text, name, is_repeated=True) for name in places
    )
    return CorpusRecord("beir", file, line - 1, identity, record_documents, tuple(queries), tuple(rejects))


def _rejected(file: str, line: int, reason: str, detail: str, identity: str) -> CorpusRecord:
    reject = Reject(STAGE, "record", reason, f"line {line}: {detail}", "beir", file, line - 1, identity or None)
    return CorpusRecord("beir", file, line - 1, identity, rejects=(reject,))
