"""Texts as the leakage rules read them: without disguises (look-alike letters of other scripts, letters in boxes,
struck out or spelled out), and as words with their place, their case and their plain form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from quit.text.invisible import without_invisible
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
_LOOK_ALIKES = str.maketrans(
    # Cyrillic, then Greek, then Latin letters beside a to z: those that Unicode's confusables.txt has for one letter.
    "аАВсСԁеЕЁёНһіІїЇјЈКМоОрРԛѕЅТуУхХѡԝӀαΑΒεΕΖΗιΙΚΜνΝοΟρΡτΤυΥχΧıȷɑɡɩℓ",
    "aABcCdeEEeHhiIiIjJKMoOpPqsSTyYxXwwlaABeEZHiIKMvNoOpPtTuYxXijagil",
)
_OF_ANY_WORD = {ord("ı"): "i", ord("ȷ"): "j", ord("ɑ"): "a", ord("ɡ"): "g", ord("ɩ"): "i", ord("ℓ"): "l"}
"""Letters that are Latin themselves: no mixture of scripts gives them away."""
_BOXED = {
    first + place: chr(ord("a") + place)
    # circled (large and small), squared, black circled, black squared, regional indicators
    for first in (0x24B6, 0x24D0, 0x1F130, 0x1F150, 0x1F170, 0x1F1E6)
    for place in range(26)
}
_WORD = re.compile(r"[^\W_]+")
_SPELLED = re.compile(r"(?<![^\W_])[^\W\d_](?:([ .\-·*_])[^\W\d_])(?:\1[^\W\d_])+(?![^\W_])")
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


def plain_text(text: str) -> tuple[str, list[int]]:
    """Return a text without its disguises, and the place in ``text`` of each of its characters.

    >>> plain_text("P.a.r.i.s")
    ('Paris', [0, 2, 4, 6, 8])
    """
    places = [at for at, char in enumerate(text) if not unicodedata.combining(char) and without_invisible(char)]
    plain = "".join(text[place] for place in places).translate(_BOXED | _OF_ANY_WORD)
    plain = _WORD.sub(_unmixed, plain)
    dropped = {place for spelled in _SPELLED.finditer(plain) for place in range(spelled.start() + 1, spelled.end(), 2)}
    remaining = [place for place in range(len(plain)) if place not in dropped]
    return "".join(plain[place] for place in remaining), [places[place] for place in remaining]


def _unmixed(word: re.Match[str]) -> str:
    """Return a word in Latin letters, where it has some of these and look-alikes of other scripts."""
    return word[0].translate(_LOOK_ALIKES) if re.search("[A-Za-z]", word[0]) else word[0]
