"""How rare a word is, from the vocabulary of MiniLM."""

from __future__ import annotations

import math
from functools import cache, lru_cache

from quit.models.minilm.encoder import word_pieces

_FIRST_WORD, _LAST_WORD = 1996, 30_522
_tokenizer = cache(word_pieces)


@lru_cache(maxsize=50_000)
def rarity(word: str) -> float:
    """Return how rare a lower-case word is, in [0, 1]: its rank in MiniLM's vocabulary, which is ordered by frequency.

    The commonest words are near 0, *university* is 0.27, words the vocabulary lacks are 1.
    """
    rank = _tokenizer().token_to_id(word)
    if rank is None or rank < _FIRST_WORD:
        return 0.5 if word.isdigit() else 1.0
    return math.log1p((rank - _FIRST_WORD) / 20) / math.log1p((_LAST_WORD - _FIRST_WORD) / 20)
