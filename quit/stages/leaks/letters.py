"""Rules about letters: initials, words inside words, other spellings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from quit.stages.leaks.lexicon import lexicon, plain_name
from quit.stages.leaks.reading import FUNCTION_WORDS, GIVEN_NAMES, TITLES, Word, answer_words, read
from quit.text.normalize import strip_accents
from quit.text.numbers import ROMAN, numbers_in
from quit.text.tokens import STOP_WORDS, stem

_URL = re.compile(r"(?:https?://|www\.)\S+|(?<!\S)\S+\.(?:com|org|net|gov|edu|io|uk)\b\S*|[#@]\w+", re.IGNORECASE)
_INITIALS = re.compile(r"\b(?:[A-Z]\.\s?){2,}|\b[A-Z][A-Z0-9]*[- ]?(?:\d+|[A-Z]+)\b")
_NO_INITIAL = FUNCTION_WORDS | {"jr", "sr"}
_AFFIXES = frozenset(
    "s es ed ing er ers y ry ly ess less ful ness ship like un non anti sub super pre post re semi".split()
)
"""Prefixes and suffixes."""
_NOT_COMPOUND_PARTS = frozenset("able age ance ant ence ice ion ire let lets ling ram ring some".split())
"""Endings that look like a second word (cornice, wolfram)."""


def initials(hint: str, answer: str, question: str) -> Iterator[str]:
    """Initials for the full name (U.S.A., WW2), or the full name for initials."""
    target = answer_words(answer)
    if len(target) >= 2 and (len(target) > 2 or all(word.capital for word in target)):
        for match in _INITIALS.finditer(strip_accents(hint)):
            if _joined_letters(match.group()) in _abbreviations(target):
                yield match.group().strip()
    letters = _joined_letters(answer)
    if 2 <= len(letters) <= 6 and (answer.isupper() or re.fullmatch(r"(?:[A-Za-z]\.){2,}", answer.strip())):
        hint_words = read(hint)
        for start in range(len(hint_words)):
            for end in range(start + 2, min(start + 9, len(hint_words) + 1)):
                name = hint_words[start:end]
                # "stones or stamp" spells SOS by chance; what is abbreviated is written with capitals.
                capitals = sum(word.capital for word in name)
                enough = len(letters) > 3 or not letters.isalpha() or capitals * 2 >= len(letters)
                if enough and name[-1].plain not in _NO_INITIAL and letters in _abbreviations(name):
                    yield hint[name[0].start : name[-1].end]


def _joined_letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", strip_accents(text).casefold())


def _abbreviations(name: Sequence[Word]) -> set[str]:
    """Return the ways to abbreviate a name: with and without its little words, a number as digits or as it is."""
    abbreviations = set()
    in_order = [*name[1:], name[0]] if digits(name[0].text) else name  # Second World War, WWII
    for words in (name, in_order, [word for word in name if word.plain not in _NO_INITIAL]):
        abbreviations.add("".join(_roman(digits(word.text)) or word.plain[0] for word in words))
        abbreviations.add("".join(digits(word.text) or word.plain[0] for word in words))
        abbreviations.add("".join(word.plain if digits(word.text) else word.plain[0] for word in words))
        abbreviations.add("".join(word.plain[0] for word in words))
    return abbreviations


def _roman(number: str | None) -> str:
    return next((roman.casefold() for roman, value in ROMAN.items() if str(value) == number), "")


@lru_cache(maxsize=65536)
def digits(word: str) -> str | None:
    """Return the digits of a word that is a number (two, second, II, 2), else None."""
    numbers = [(1, 0, 1)] if word == "I" else numbers_in(word)
    return f"{numbers[0][0]:.15g}" if len(numbers) == 1 and numbers[0][1:] == (0, len(word)) else None


def compound(hint: str, answer: str, question: str) -> Iterator[str]:
    """The answer inside a longer word, a hashtag or a web address, in two words or in one."""
    target = answer_words(answer)
    solid = "".join(word.plain for word in target)
    if len(solid) >= 4 and not solid.isdigit():
        yield from (address for address in _addresses(hint) if solid in _joined_letters(address))
        question_words = {word.plain for word in read(question)}
        yield from (word.text for word in read(hint) if word.plain not in question_words and _holds(word, solid))
    hint_words = read(hint)
    starts = [position for position, word in enumerate(hint_words) if solid.startswith(word.plain[:3])]
    for count in range(1, 4):
        for start in starts:
            run = hint_words[start : start + count]
            if len(run) == count and (count, len(target)) != (1, 1) and _joins(run, solid):
                yield hint[run[0].start : run[-1].end]


@lru_cache(maxsize=1024)
def _addresses(hint: str) -> list[str]:
    """Return the web addresses, hashtags and names of accounts in a hint."""
    return [match.group() for match in _URL.finditer(hint)]


def _holds(word: Word, solid: str) -> bool:
    """Whether a longer word is the answer and another word or an affix (snowman, Stalingrad; not duchess)."""
    if not word.plain.startswith(solid) and not word.plain.endswith(solid):
        return False
    base = lexicon().verb_forms.get(word.plain, stem(word.plain))
    if solid not in base and lexicon().has(base):  # thinking has no king in it
        return False
    for rest in (word.plain.removeprefix(solid), word.plain.removesuffix(solid)):
        if rest == word.plain or rest in _NOT_COMPOUND_PARTS:
            continue
        shortest = 4 if len(rest) > 2 else 5
        if len(solid) >= shortest and rest in _AFFIXES:
            return True
        if len(rest) > 2 and len(solid) > 4 and (word.capital or lexicon().has(rest)):
            return True
        if len(rest) > 2 and word.plain.startswith(solid) and lexicon().has(rest):
            return True
    return False


def _joins(run: Sequence[Word], solid: str) -> bool:
    """Whether words joined are the answer joined ("sun flower" for sunflower, U2 for U-2; not "a part" for apart)."""
    joined = "".join(word.plain for word in run)
    if joined[:3] != solid[:3] or stem(joined) != stem(solid):
        return False
    if any(right.start - left.end != 1 for left, right in pairwise(run)):
        return False
    if len(solid) < 4 or any(len(word.plain) == 1 for word in run):
        return any(letter.isdigit() for letter in solid) and (run[0].text.isupper() or len(solid) > 2)
    return True


def spelling(hint: str, answer: str, question: str) -> Iterator[str]:
    """Another transliteration of a name (Tchaikovsky and Chaikovsky), or a word misspelt."""
    ignored_words = {word.plain for word in read(question)} | TITLES
    target = answer_words(answer)
    for part in target:
        if len(part.plain) < 5 or not part.plain.isalpha() or part.plain in ignored_words:
            continue
        if part is not target[-1] and _is_given(part.plain):
            continue
        for word in read(hint):
            if len(word.plain) < 5 or word.plain in ignored_words or word.plain.startswith(part.plain):
                continue
            name = word.capital and part.capital
            if not name and word.plain[0] != part.plain[0]:  # a misspelt word has its first letter
                continue
            if _is_another_name(word.plain, part.plain) if name else lexicon().has(word.plain):
                continue
            if (name and _sounds_like(word.plain, part.plain)) or _is_misspelling(word, part.plain):
                yield word.text


def _is_given(name: str) -> bool:
    return name in GIVEN_NAMES or name in lexicon().given_names


def _sounds_like(name: str, target: str) -> bool:
    skeleton = _skeleton(target)
    if name in STOP_WORDS or (lexicon().has(name) and name not in lexicon().names):  # Between, Champions
        return False
    return len(skeleton) >= 4 and _skeleton(name) == skeleton and abs(len(name) - len(target)) <= 2


def _is_misspelling(word: Word, target: str) -> bool:
    """Whether a word that is in no dictionary is a noun (or its plural) with a slip or two; names are more alike."""
    if word.plain[0] != target[0] or word.plain in STOP_WORDS or lexicon().has(word.plain):
        return False
    if word.capital:
        if len(target) < 6 or _is_given(word.plain):
            return False
    elif word.plain in lexicon().names:
        return False
    distance = min(_edit_distance(form, target) for form in (word.plain, word.plain.removesuffix("s")))
    return 0 < distance <= (1 if len(target) < 8 else 2)


def _is_another_name(name: str, target: str) -> bool:
    """Whether a word is a name in the lexicon, and no other name of the target."""
    is_name = not lexicon().names.isdisjoint((name, name.removesuffix("s")))  # the Americas
    return is_name and target not in map(plain_name, lexicon().other_names(name))


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
    for letters, sound in _SOUNDS:
        word = word.replace(letters, sound)
    word = word.replace("w", "v").replace("z", "s")
    head, tail = word[:1], re.sub(r"[aeiouy']", "", word[1:])
    return re.sub(r"(.)\1+", r"\1", head + tail)


def _edit_distance(word: str, target: str) -> int:
    """Return how many letters are added, left out, wrong or exchanged with the next (optimal string alignment)."""
    row_before_last: list[int] = []
    last_row = list(range(len(target) + 1))
    for row, letter in enumerate(word, start=1):
        current = [row]
        for column, other in enumerate(target, start=1):
            current.append(min(last_row[column] + 1, current[-1] + 1, last_row[column - 1] + (letter != other)))
            if row > 1 and column > 1 and letter == target[column - 2] and other == word[row - 2]:
                current[-1] = min(current[-1], row_before_last[column - 2] + 1)
        row_before_last, last_row = last_row, current
    return last_row[-1]
