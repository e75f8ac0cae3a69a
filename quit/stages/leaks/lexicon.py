"""Other names, word families and irregular forms from WordNet.

``lexicon.txt.gz`` is made from WordNet 3.0 by ``training/lexicon.py``; ``LEXICON.md`` has its licence.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from quit.text.normalize import strip_accents
from quit.text.tokens import stem, words


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """Names are keys as :func:`plain_name` writes them; forms keep WordNet's capitals (Au, Dutch)."""

    units: frozenset[str]
    """Words that in lower case are only a unit (newton)."""
    words: frozenset[str]
    """Words in lower case."""
    names: frozenset[str]
    """Single words that are written with capitals, in lower case."""
    given_names: frozenset[str]
    """First names of at least two people, lower case."""
    plurals: dict[str, str]
    """Irregular plural to singular."""
    verb_forms: dict[str, str]
    """Irregular verb form to its base."""
    relations: dict[str, str]

    def other_names(self, name: str) -> list[str]:
        """Return other names of the same thing (graveyard for cemetery)."""
        return self._forms(name, 0)

    def family(self, name: str) -> list[str]:
        """Return derived words, compounds, adjectives, inhabitants (lunar, moonlight for moon)."""
        return self._forms(name, 1)

    def _forms(self, name: str, column: int) -> list[str]:
        forms = self.relations.get(name, "\t").split("\t")[column]
        return forms.split("|") if forms else []

    @lru_cache(maxsize=65536)  # noqa: B019 (there is one lexicon)
    def has(self, word: str) -> bool:
        """Whether a lower-case word, or its base form, is in ``words``."""
        return not self.words.isdisjoint((*self.base_forms(word), word.removesuffix("s"), stem(word), stem(word) + "e"))

    @lru_cache(maxsize=65536)  # noqa: B019
    def base_stems(self, word: str) -> frozenset[str]:
        """Return the stems of a word's base forms."""
        return frozenset(map(stem, self.base_forms(word)))

    def base_forms(self, word: str) -> frozenset[str]:
        """Return a lower-case word and its possible base forms (geese: goose; swam: swim)."""
        return frozenset({word, self.plurals.get(word, word), self.verb_forms.get(word, word)})


def plain_name(text: str) -> str:
    """Return a name's words, lower case, without accents and possessives, one space between them."""
    return " ".join(word.casefold().removesuffix("'s") for word in words(strip_accents(text).replace("’", "'")))


@cache
def lexicon() -> Lexicon:
    """Return the lexicon, read once."""
    text = gzip.decompress(files(__package__).joinpath("lexicon.txt.gz").read_bytes()).decode()
    units, lower, names, given_names, plurals, verb_forms, *relations = text.split("\n")
    return Lexicon(
        units=frozenset(units.split()),
        words=frozenset(lower.split()),
        names=frozenset(names.split()),
        given_names=frozenset(given_names.split()),
        plurals=dict(pair.split("/") for pair in plurals.split()),
        verb_forms=dict(pair.split("/") for pair in verb_forms.split()),
        relations=dict(line.split("\t", 1) for line in relations),
    )
