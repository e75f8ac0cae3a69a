"""Records of a corpus source: documents and queries, cleaned, not yet merged with those of other records."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from quit.common.ids import content_hash
from quit.sources.files import plain_name
from quit.sources.records import Reject

STAGE = "corpus"
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class RawDocument:
    """One paragraph of a record, clean; title or text is not empty. ``place``: where in the record it was.
    ``is_repeated``: whether an earlier record of the source has it too, by its id."""

    title: str
    text: str
    place: str
    is_repeated: bool = False

    @property
    def doc_id(self) -> str:
        """The id that follows from title and text: 20 hexadecimal digits."""
        return content_hash("document", self.title, self.text, size=10)


@dataclass(frozen=True, slots=True)
class RawQuery:
    """One question of a record. ``hop`` is None for the whole question, else its place in the decomposition, from 1.

    ``relevant``: (place in the record's documents, relevance).
    """

    text: str
    answers: tuple[str, ...]
    relevant: tuple[tuple[int, int], ...]
    hop: int | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class CorpusRecord:
    """One record of a source. ``queries``: none, or the whole question followed by its sub-questions."""

    source: str
    file: str
    position: int
    record_id: str
    documents: tuple[RawDocument, ...] = ()
    queries: tuple[RawQuery, ...] = ()
    rejects: tuple[Reject, ...] = ()


def clean(text: str) -> str:
    """Return a text in NFC with single spaces, and a replacement character for each lone surrogate, which no table can
    hold.

    >>> clean(" Cafe\\u0301\\u00a0 bar\\n \\ud800")
    'Café bar \ufffd'
    """
    return " ".join(unicodedata.normalize("NFC", _SURROGATE.sub("\ufffd", text)).split())


def clean_id(text: str) -> str:
    """Return an id in NFC, in which all files compare, as tables can hold it."""
    return unicodedata.normalize("NFC", plain_name(text))


def whole(title: str, text: str) -> str:
    """Return what systems read of a document: title, one space and text; one alone where there is no other."""
    return " ".join(filter(None, (title, text)))
