"""Lexical leakage: ways in which a hint gives an answer away that no model is needed to see.

Each rule looks at one hint and one answer and names the span of the hint that leaks, or nothing. They are deliberately
narrow: a rule that fires must be explainable to the hint's author in one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from os.path import commonprefix

from quit.evaluate.normalize import STOP_WORDS, normalize_answer, stem, strip_accents, word_spans
from quit.stages.leaks.demonyms import DEMONYMS
from quit.stages.leaks.given_names import GIVEN_NAMES
from quit.stages.leaks.number_words import is_ordinal_word, numbers_in
from quit.stages.leaks.other_names import OTHER_NAMES, regular

VERSION = 2

_URL = re.compile(r"(?:https?://|www\.)\S+|\S+\.(?:com|org|net|gov|edu|io|uk)\b\S*|[#@]\w+", re.IGNORECASE)
_TITLES = frozenset(
    """mount mountain lake river sea ocean island islands city town county state republic kingdom house palace
    castle church university college school company band team club saint sir lord lady king queen prince
    princess president emperor pope doctor great new old north south east west northern southern eastern
    western upper lower big little red white black blue green world war battle day days first second third
    united national international royal grand prime minister high street park square bridge tower desert bay
    gulf cape fort port san santa los las""".split()
)
"""Capitalised words that name a kind, not a thing: on their own they give nothing away."""
_SUFFIXES = ("n", "an", "ian", "ean", "ese", "ish", "i", "ite", "er", "ic", "s", "es", "'s", "ism", "ist", "al", "like")
_ROMAN = re.compile(r"^(?=[ivxlcdm])m*(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})$")


@dataclass(frozen=True, slots=True)
class Hit:
    """A span of a hint that leaks, and the rule that found it."""

    span: str
    rule: str


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    plain: str  # lower case, no accents, no possessive
    start: int
    end: int

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()


@lru_cache(maxsize=65536)
def _read(text: str) -> tuple[_Word, ...]:
    found = []
    for start, end in word_spans(text):
        word = text[start:end]
        plain = strip_accents(word).casefold().replace("’", "'")
        found.append(_Word(word, plain.removesuffix("'s"), start, end))
    return tuple(found)


def lexical_leaks(hint: str, answer: str, question: str) -> list[Hit]:
    """Return every way in which ``hint`` gives ``answer`` away lexically, at most one a rule.

    Words that the question itself uses give nothing away (the answer as a whole still does).
    """
    hits = []
    for rule, check in RULES.items():
        span = next(check(hint, answer, question), None)
        if span is not None:
            hits.append(Hit(span, rule))
            if rule == "exact":  # the rest would say the same again
                break
    return hits


def _answer_words(answer: str) -> list[_Word]:
    return [word for word in _read(answer) if word.plain not in ("a", "an", "the")] or list(_read(answer))


def _runs(hint: tuple[_Word, ...], wanted: list[str], key: Callable[[_Word], str]) -> Iterator[tuple[_Word, _Word]]:
    for start in range(len(hint) - len(wanted) + 1):
        if all(key(hint[start + offset]) == want for offset, want in enumerate(wanted)):
            yield hint[start], hint[start + len(wanted) - 1]


def _exact(hint: str, answer: str, question: str) -> Iterator[str]:
    """The answer itself, whatever its case, accents, articles and punctuation."""
    read, wanted = _read(hint), [word.plain for word in _answer_words(answer)]
    if not wanted:  # a symbol such as % is no word
        if answer.strip() and answer.strip() in hint:
            yield answer.strip()
        return
    single = len(wanted) == 1
    for first, last in _runs(read, wanted, lambda word: word.plain):
        # "it", "us" or "May" in running text is not the answer IT, US or May.
        if single and (wanted[0] in STOP_WORDS or len(wanted[0]) == 1 or wanted[0] in _AMBIGUOUS):
            if not _same_case(first.text, answer):
                continue
        yield hint[first.start : last.end]


_AMBIGUOUS = frozenset(
    """april august bath bill bush chad chase china cook cork dick frank grant guy hope hunter jack jersey job
    jordan march mark mason may miller mobile nice orange page pat polish pope prince queen reading rice rob
    rose rush split summer sue turkey turner wall ward west will winter wood young""".split()
)
"""Names that are common words too: in lower case they give nothing away."""


def _same_case(word: str, answer: str) -> bool:
    return word == answer.strip() or (word[:1].isupper() and word[1:].islower() and word == answer.strip().title())


def _inflection(hint: str, answer: str, question: str) -> Iterator[str]:
    """An inflected or derived form: plural, adjective, inhabitant (Australian for Australia, French for France)."""
    wanted = _answer_words(answer)
    stems = [stem(word.plain) for word in wanted]
    if len(wanted) > 1:
        if all(len(one) > 1 for one in stems):
            for first, last in _runs(_read(hint), stems, lambda word: stem(word.plain)):
                yield hint[first.start : last.end]
        known = DEMONYMS.get(" ".join(word.plain for word in wanted))
        yield from (word.text for word in _read(hint) if known and word.plain in known)
        return
    if not wanted or len(wanted[0].plain) < 3 or wanted[0].plain.isdigit():
        return
    target = wanted[0].plain
    asked = {stem(word.plain) for word in _read(question)}
    known = DEMONYMS.get(target, frozenset()) | frozenset(
        name for name, forms in DEMONYMS.items() if target in forms and " " not in name
    )
    for word in _read(hint):
        if word.plain == target or stem(word.plain) in asked:
            continue
        if word.plain in known or (len(target) >= 3 and stem(regular(word.plain)) == stem(regular(target))):
            if word.plain in _AMBIGUOUS and not word.capital:
                continue
            yield word.text
        elif _derived(target, word.plain):
            yield word.text


def _other_name(hint: str, answer: str, question: str) -> Iterator[str]:
    """Another established name or spelling of the same thing (Peking for Beijing, Suomi for Finland)."""
    names = OTHER_NAMES.get(" ".join(word.plain for word in _answer_words(answer)), ())
    read = _read(hint)
    for name in names:
        wanted = name.split()
        for first, last in _runs(read, wanted, lambda word: word.plain.replace(".", "")):
            yield hint[first.start : last.end]
        if name.isalpha() and len(name) <= 5:  # initials may be dotted
            dotted = re.search(r"\b" + r"\.?".join(name.upper()) + r"\b", hint)
            if dotted:
                yield dotted.group()


def _derived(name: str, word: str) -> bool:
    """Whether ``word`` is ``name`` (less a final vowel) with one of the usual endings."""
    if len(name) < 5 or len(word) <= len(name) - 2:
        return False
    for base in (
        name,
        name[:-1] if name[-1] in "aeiouy" else name,
        name[:-2] if name.endswith(("ia", "um", "us")) else name,
    ):
        ending = word[len(base) :]
        if len(base) >= 4 and word.startswith(base) and (ending in _SUFFIXES or ending.removesuffix("s") in _SUFFIXES):
            return True
    shared = len(commonprefix([name, word]))  # noqa: RUF071 (characters are meant: Aristotle, Aristotelian)
    return shared >= max(6, len(name) - 2) and word.removesuffix("s").endswith(("ian", "ean", "ism", "ist"))


def _part(hint: str, answer: str, question: str) -> Iterator[str]:
    """A distinctive part of a name of several words: the surname, the name without its title."""
    wanted = _answer_words(answer)
    if len(wanted) < 2:
        return
    asked = {word.plain for word in _read(question)}
    names = {
        word.plain
        for word in wanted
        if word.capital
        and len(word.plain) >= 4
        and word.plain not in STOP_WORDS | _TITLES | GIVEN_NAMES | asked
        and not _ROMAN.match(word.plain)
    }
    for word in _read(hint):
        if word.capital and (word.plain in names or word.plain.removesuffix("s") in names):
            yield word.text


def _initials(hint: str, answer: str, question: str) -> Iterator[str]:
    """Initials for the full name (USA, U.S.A.), or the full name for initials."""
    letters = re.sub(r"[^A-Za-z]", "", strip_accents(answer))
    wanted = [
        word
        for word in _answer_words(answer)
        if word.plain not in ("of", "the", "and", "for", "in", "de", "la", "jr", "sr", "ii", "iii")
    ]
    if len(wanted) >= 2 and sum(word.capital for word in wanted) >= 2:
        initials = {"".join(word.plain[0] for word in wanted), "".join(word.plain[0] for word in _answer_words(answer))}
        for match in re.finditer(r"\b(?:[A-Z]\.\s?){2,}|\b[A-Z]{2,}\b", strip_accents(hint)):
            if re.sub(r"[^a-z]", "", match.group().casefold()) in initials:
                yield match.group().strip()
    if 2 <= len(letters) <= 6 and (answer.isupper() or re.fullmatch(r"(?:[A-Za-z]\.){2,}", answer.strip())):
        read = _read(hint)
        spell = letters.casefold()
        for start in range(len(read)):
            end = _spells(read, start, spell)
            # "stones or stamp" spells SOS by chance; what stands for letters is written with capitals.
            if end is not None and (len(spell) > 3 or sum(word.capital for word in read[start:end]) * 2 >= len(spell)):
                yield hint[read[start].start : read[end - 1].end]


def _spells(read: tuple[_Word, ...], start: int, spell: str) -> int | None:
    """Return the end of the words from ``start`` whose initials spell ``spell`` (little words may be skipped), or
    None."""
    place, index = start, 0
    while index < len(spell) and place < len(read):
        word = read[place]
        if word.plain[0] == spell[index]:
            index += 1
        elif not (index and word.plain in ("of", "the", "and", "for", "in", "to", "on", "a", "de")):
            return None
        place += 1
    return place if index == len(spell) else None


def _number(hint: str, answer: str, question: str) -> Iterator[str]:
    """The same number in words or digits."""
    said = numbers_in(answer)
    # "24" or "24 hours", not Apollo 11 or absolute zero: there the number is only a part of a name.
    if len(said) != 1 or said[0][1] > 0:
        return
    rest = re.sub(r"^(?:st|nd|rd|th)\b", "", answer[said[0][2] :])
    if len(word_spans(rest)) > 1:
        return
    value, _, _ = said[0]
    for found, start, end in numbers_in(hint):
        if found == value and normalize_answer(hint[start:end]) != normalize_answer(answer):
            # "the eighteenth" is not 18, but it is the 18th
            if _is_ordinal(hint, start, end) == _is_ordinal(answer, said[0][1], said[0][2]):
                yield hint[start:end]


def _is_ordinal(text: str, start: int, end: int) -> bool:
    return bool(re.match(r"(?:st|nd|rd|th)\b", text[end:])) or is_ordinal_word(text[start:end])


def _compound(hint: str, answer: str, question: str) -> Iterator[str]:
    """The answer inside a longer word, a hashtag or a web address."""
    solid = "".join(word.plain for word in _answer_words(answer))
    if len(solid) < 4 or solid.isdigit():
        return
    for match in _URL.finditer(hint):
        if solid in re.sub(r"[^a-z0-9]", "", strip_accents(match.group()).casefold()):
            yield match.group()
    if len(solid) < 5:
        return
    asked = {word.plain for word in _read(question)}
    for word in _read(hint):
        if word.plain in asked or len(word.plain) < len(solid) + 2:
            continue
        if word.plain.startswith(solid) or word.plain.endswith(solid):
            yield word.text
    for left, right in pairwise(_read(hint)):  # "sun flower" for sunflower
        if (
            left.plain + right.plain == solid
            and right.start - left.end == 1
            and min(len(left.plain), len(right.plain)) > 1
        ):
            yield hint[left.start : right.end]


def _spelling(hint: str, answer: str, question: str) -> Iterator[str]:
    """Another transliteration or spelling of a name (Muhammad and Mohammed, Tchaikovsky and Chaikovsky)."""
    wanted = [
        word for word in _answer_words(answer) if word.capital and len(word.plain) >= 5 and not word.plain.isdigit()
    ]
    if not wanted:
        return
    target = wanted[-1].plain
    asked = {word.plain for word in _read(question)}
    skeleton = _skeleton(target)
    for word in _read(hint):
        if not word.capital or len(word.plain) < 5 or word.plain in asked | _TITLES or word.plain.startswith(target):
            continue
        if (len(skeleton) >= 4 and _skeleton(word.plain) == skeleton and abs(len(word.plain) - len(target)) <= 2) or (
            len(target) >= 7 and word.plain[0] == target[0] and _one_edit(word.plain, target)
        ):
            yield word.text


_SOUNDS = (
    ("tch", "ch"),
    ("ph", "f"),
    ("kh", "k"),
    ("gh", "g"),
    ("th", "t"),
    ("dj", "j"),
    ("zh", "j"),
    ("ck", "k"),
    ("q", "k"),
)


@lru_cache(maxsize=65536)
def _skeleton(word: str) -> str:
    """Return the consonants of a name as they sound, doubles once."""
    word = word.replace("c", "k") if "ch" not in word else word
    for written, sound in _SOUNDS:
        word = word.replace(written, sound)
    word = word.replace("w", "v").replace("z", "s")
    head, tail = word[:1], re.sub(r"[aeiouy']", "", word[1:])
    return re.sub(r"(.)\1+", r"\1", head + tail)


def _one_edit(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False
    if len(one) > len(other):
        one, other = other, one
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            if len(one) == len(other):
                swapped = (
                    one[index : index + 2] == other[index : index + 2][::-1] and one[index + 2 :] == other[index + 2 :]
                )
                return swapped or one[index + 1 :] == other[index + 1 :]
            return one[index:] == other[index + 1 :]
    return one != other


RULES: dict[str, Callable[[str, str, str], Iterator[str]]] = {
    "exact": _exact,
    "inflection": _inflection,
    "part": _part,
    "initials": _initials,
    "other_name": _other_name,
    "number": _number,
    "compound": _compound,
    "spelling": _spelling,
}
"""Rule name to rule, in the order in which they are tried."""
