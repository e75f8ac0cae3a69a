"""Readers: models that answer a question from a passage.

The embedded ones pick from a closed set of answers (:class:`AnswerPool`) with MiniLM; see ``docs/architecture.md``
for what such a reader can and cannot replace.
"""

from quit.models.readers.embedded import EMBEDDED_READERS, EVALUATION_READERS, LABELERS, embedded_reader
from quit.models.readers.pool import AnswerPool

__all__ = ["EMBEDDED_READERS", "EVALUATION_READERS", "LABELERS", "AnswerPool", "embedded_reader"]
