"""Readers: models that answer a question from a passage.

The embedded ones pick from a closed set of answers (:class:`AnswerPool`) with MiniLM. They are not language models.
"""

from quit.models.readers.embedded import embedded_reader
from quit.models.readers.methods import EMBEDDED_READERS, embedded_method
from quit.models.readers.pool import AnswerPool

__all__ = ["EMBEDDED_READERS", "AnswerPool", "embedded_method", "embedded_reader"]
