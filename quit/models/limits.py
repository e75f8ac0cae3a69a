"""Notes on texts that an embedded model cannot read properly: in another language, or too long.

The embedded instruments were trained on English, and read a fixed number of word pieces of a text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

from quit.models.minilm.encoder import word_pieces
from quit.text.english import foreign_script, not_english

Part = tuple[str, str, int]
"""Name of a text (``hint``), the text, and the number of its word pieces that the model reads."""

ENCODER = 254
"""Word pieces of a text that the sentence encoder reads, beside [CLS] and [SEP]."""
QUESTION_TYPE = 62
"""The same of the fine-tuned half of the question type classifier."""
QUESTION, REFERENCE, CANDIDATE = 32, 24, 64
"""The same of each part of a pair in the neural half of the embedded equivalence."""


def note(language: str, parts: Iterable[Part]) -> str | None:
    """Return what is wrong with ``parts``, such as ``not English; hint cut to 254 word pieces``; None if nothing is.

    ``language``: the text whose words tell the language, as long as possible; a part only tells it by its script.
    """
    texts = list(parts)
    notes = ["not English"] if not_english(language) or any(foreign_script(text) for _, text, _ in texts) else []
    for name, text, window in texts:
        if not text.strip():
            notes.append(f"{name} empty")
        elif len(text) > window and _pieces(text) > window:  # a piece has at least one character
            notes.append(f"{name} cut to {window} word pieces")
    return "; ".join(dict.fromkeys(notes)) or None


@lru_cache(maxsize=10_000)
def _pieces(text: str) -> int:
    return len(_tokenizer().encode(text, add_special_tokens=False).ids)


_tokenizer = cache(word_pieces)
