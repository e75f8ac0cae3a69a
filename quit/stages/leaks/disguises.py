"""Texts as people read them: look-alike letters of other scripts, letters in boxes, struck out or spelled out."""

from __future__ import annotations

import re
import unicodedata

from quit.text.invisible import without_invisible

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


def plain_text(text: str) -> tuple[str, list[int]]:
    """Return a text without its disguises, and the place in ``text`` of each of its characters.

    >>> plain_text("P.a.r.i.s")
    ('Paris', [0, 2, 4, 6, 8])
    """
    places = [at for at, char in enumerate(text) if not unicodedata.combining(char) and without_invisible(char)]
    plain = "".join(text[place] for place in places).translate(_BOXED | _OF_ANY_WORD)
    plain = _WORD.sub(_unmixed, plain)
    dropped = {place for spelled in _SPELLED.finditer(plain) for place in range(spelled.start() + 1, spelled.end(), 2)}
    kept = [place for place in range(len(plain)) if place not in dropped]
    return "".join(plain[place] for place in kept), [places[place] for place in kept]


def _unmixed(word: re.Match[str]) -> str:
    """Return a word in Latin letters, where it has some of these and look-alikes of other scripts."""
    return word[0].translate(_LOOK_ALIKES) if re.search("[A-Za-z]", word[0]) else word[0]
