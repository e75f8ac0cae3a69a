"""Texts as the leakage rules read them: as words with their place, their case and their plain form."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from quit.text.normalize import stem, strip_accents, word_spans

FUNCTION_WORDS = frozenset("a an the of and for in on at by to from with about de la le".split())
"""Words that a name may lack or have more of."""
TITLES = frozenset(
    """mount mountain lake river sea ocean island islands city town county state republic kingdom house palace
    castle church university college school company band team club saint sir lord lady king queen prince
    princess president emperor pope doctor great new old north south east west northern southern eastern
    western upper lower big little red white black blue green world war battle day days first second third
    united national international royal grand prime minister high street park square bridge tower desert bay
    gulf cape fort port san santa los las""".split()
)
"""Capitalised words that name a kind, not a thing: alone they give nothing away."""
AMBIGUOUS = frozenset(
    """april august bath bill bush chad chase china cook cork dick frank grant guy hope hunter jack jersey job
    jordan march mark mason may miller mobile nice orange page pat polish pope prince queen reading rice rob
    rose rush split summer sue turkey turner wall ward west will winter wood young""".split()
)
"""Names that are common words too: in lower case they give nothing away."""
GIVEN_NAMES = frozenset(
    """adam alan albert alexander alfred alice andrew angela anna anne anthony antonio arthur barbara benjamin
    bernard bill bob brian bruce carl carlos carol caroline catherine charles charlie charlotte chris
    christian christopher claude daniel david deborah dennis diana dick donald dorothy douglas edgar edith
    edmund edward edwin elizabeth ellen emily emma eric ernest eugene eva evelyn florence frances francis
    frank franz fred frederick friedrich gary geoffrey george gerald gilbert giovanni gordon grace graham
    hans harold harriet harry heinrich helen henri henry herbert herman howard hugh isaac isabella ivan jack
    jackie jacob jacques james jane janet jason jean jeff jeffrey jennifer jerry jessica jim jimmy joan
    johann john johnny jon jonathan jose joseph juan judith julia julie karen karl kate katherine keith
    kenneth kevin larry laura lawrence leonard leon lewis linda lisa louis louise lucy ludwig luke marcus
    margaret maria marie mark martha martin mary matthew michael michel michelle mike nancy neil nicholas
    nick nicolas norman oliver oscar otto patricia patrick paul peter philip pierre rachel ralph raymond
    rebecca richard robert roger roland ronald rose roy russell ruth samuel sandra sarah scott sharon sidney
    simon sophia stanley stephen steve steven stuart susan theodore teresa thomas timothy tommy tony victor
    victoria vincent virginia walter wayne wilhelm william wolfgang""".split()
)
"""Lower-case English and western European given names, so common that sharing one gives nobody away (John Ruskin says
nothing of John Millais)."""


class Word(NamedTuple):
    """A word of a text; ``start`` and ``end`` are offsets in characters."""

    text: str
    plain: str
    start: int
    end: int

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()


@lru_cache(maxsize=1024)  # more objects alive would cost Python's garbage collection more than they spare
def read(text: str) -> tuple[Word, ...]:
    """Return the words of a text in order."""
    return tuple(Word(text[start:end], plain(text[start:end]), start, end) for start, end in word_spans(text))


@lru_cache(maxsize=65536)
def plain(word: str) -> str:
    """Return a word in lower case, without accents and possessive."""
    return strip_accents(word).casefold().replace("’", "'").removesuffix("'s")


@lru_cache(maxsize=1024)
def answer_words(answer: str) -> tuple[Word, ...]:
    """Return an answer's words without articles, unless it is one."""
    return tuple(word for word in read(answer) if word.plain not in ("a", "an", "the")) or read(answer)


@lru_cache(maxsize=1024)
def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words."""
    return frozenset(stem(word.plain) for word in read(text))


def runs(hint: tuple[Word, ...], target: list[str], keys: list[str]) -> Iterator[tuple[Word, Word]]:
    """Yield the first and last word of each run of a hint whose keys are the wanted ones."""
    if target[0] in keys:
        for start in range(len(hint) - len(target) + 1):
            if keys[start : start + len(target)] == target:
                yield hint[start], hint[start + len(target) - 1]
