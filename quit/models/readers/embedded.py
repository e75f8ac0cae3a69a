"""The embedded readers by name: no server, no download, the same replies on every machine with the same library
builds.
"""

from __future__ import annotations

from quit.errors import SettingsError, did_you_mean
from quit.models.protocols import Encoder
from quit.models.readers.closed_set import ClosedSetReader
from quit.models.readers.methods import (
    ContrastReader,
    EvidenceReader,
    LateReader,
    NamesReader,
    StatementReader,
    VectorReader,
)
from quit.models.readers.pool import AnswerPool

EMBEDDED_READERS: dict[str, type[ClosedSetReader]] = {
    reader.method: reader
    for reader in (VectorReader, LateReader, EvidenceReader, StatementReader, ContrastReader, NamesReader)
}


def embedded_reader(name: str, encoder: Encoder, pool: AnswerPool, **settings: float) -> ClosedSetReader:
    """Return the embedded reader called ``name``, with its documented defaults unless ``settings`` say otherwise."""
    if name not in EMBEDDED_READERS:
        raise SettingsError(f"There is no embedded reader {name!r}." + did_you_mean(name, list(EMBEDDED_READERS)))
    return EMBEDDED_READERS[name](encoder, pool, **settings)
