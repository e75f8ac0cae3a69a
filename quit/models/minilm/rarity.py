"""How rare a word is, from the vocabulary of MiniLM."""

from __future__ import annotations

import json
import math
from functools import lru_cache

from quit.models.folders import minilm_folder

_FIRST_WORD, _LAST_WORD = 1996, 30_522


@lru_cache(maxsize=1)
def _vocabulary() -> dict[str, int]:
    return json.loads((minilm_folder() / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]


@lru_cache(maxsize=50_000)
def rarity(word: str) -> float:
    """Return how rare a lower-case word is, in [0, 1]: its rank in MiniLM's vocabulary, which is ordered by frequency.

    The commonest words are near 0, *university* is 0.27, words the vocabulary lacks are 1.
    """
    rank = _vocabulary().get(word)
    if rank is None or rank < _FIRST_WORD:
        return 0.5 if word.isdigit() else 1.0
    return math.log1p((rank - _FIRST_WORD) / 20) / math.log1p((_LAST_WORD - _FIRST_WORD) / 20)
