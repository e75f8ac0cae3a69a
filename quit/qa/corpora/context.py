"""Shared by readers of multi-hop question files: a record's paragraphs and questions, each fault with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quit.retrieval.records import STAGE, CorpusRecord, RawDocument, RawQuery, clean
from quit.sources.drafts import as_record, reject, unusable
from quit.sources.fields import BadRecord
from quit.sources.files import plain_name
from quit.sources.items import line_items
from quit.sources.lines import once_each
from quit.sources.records import Reject


@dataclass
class Draft:
    """A record being read. ``rows``: number in the source -> index in ``documents``."""

    record_id: str
    documents: list[RawDocument] = field(default_factory=list)
    rows: dict[int, int] = field(default_factory=dict)
    queries: list[RawQuery] = field(default_factory=list)
    faults: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, number: int, title: str, text: str) -> None:
        """Take a paragraph; one without title and text is a fault that leaves the rest of the record alone."""
        title, text = clean(title), clean(text)
        if not title and not text:
            self.faults.append(("document", "no_text", f"The paragraph {number} has no text and no title."))
            return
        self.rows[number] = len(self.documents)
        self.documents.append(RawDocument(title, text, str(number)))

    def relevant(self, numbers: list[int]) -> tuple[tuple[int, int], ...]:
        """Return the paragraphs of these numbers with relevance 1. Raises ``BadRecord`` for one that was left out."""
        for number in numbers:
            if number not in self.rows:
                raise BadRecord("no_support", f"The supporting paragraph {number} is missing or empty.")
        return tuple((self.rows[number], 1) for number in dict.fromkeys(numbers))


def corpus_records(
    path: Path,
    source: str,
    expected: str,
    identify: Callable[[dict[str, Any]], str],
    parse: Callable[[dict[str, Any], Draft], None],
    documents: bool = True,
) -> Iterator[CorpusRecord]:
    """Yield one ``CorpusRecord`` per item of a file: ``identify(value)`` is its id, ``parse(value, draft)`` fills it.

    ``expected``: what the file should be, in words; ``documents``: whether it has any. A ``BadRecord`` from ``parse``
    rejects the questions and keeps the documents read so far. Raises ``InputError`` for a file that cannot be read, and
    after the last item when no record gave a document, or a question where there are no documents.
    """
    usable = 0
    reasons: Counter[str] = Counter()
    first: dict[str, str] = {}
    for item in line_items(path, expected, once_each):
        draft: Draft | None = None
        rejects: list[Reject] = []
        try:
            record = as_record(item)
            draft = Draft(identify(record))
            parse(record, draft)
        except BadRecord as fault:
            reasons[fault.reason] += 1
            first.setdefault(fault.reason, f"{item.where}: {fault.detail}")
            if draft:
                draft.queries.clear()
            name = draft.record_id if draft else None
            rejects.append(reject(item, source, STAGE, "record", fault.reason, fault.detail, name))
        if draft:
            rejects += [reject(item, source, STAGE, *fault, draft.record_id) for fault in draft.faults]
        filled = draft or Draft("")
        usable += bool(filled.documents if documents else filled.queries)
        yield CorpusRecord(
            source,
            plain_name(item.file),
            item.position,
            filled.record_id,
            tuple(filled.documents),
            tuple(filled.queries),
            tuple(rejects),
        )
    if not usable:
        raise unusable(path, expected, reasons, first.values())
