"""Lexical leakage: rules that find an answer in a hint without a model.

Each rule looks at one hint and one answer and names the span of the hint that leaks, or nothing. They are deliberately
narrow: a rule that fires must be explainable to the hint's author in one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os.path import commonprefix

from quit.stages.leaks.letters import compound, digits, initials, spelling
from quit.stages.leaks.lexicon import lexicon, plain_name
from quit.stages.leaks.other_names import OTHER_NAMES
from quit.stages.leaks.reading import (
    AMBIGUOUS,
    FUNCTION_WORDS,
    GIVEN_NAMES,
    TITLES,
    Word,
    answer_words,
    plain,
    read,
    runs,
    stems,
)
from quit.text.answers import answer_key
from quit.text.dates import MONTHS, dates_in
from quit.text.numbers import is_ordinal_word, numbers_in
from quit.text.quantities import Quantity, quantities_in
from quit.text.tokens import STOP_WORDS, stem, word_spans

_SUFFIXES = ("n", "an", "ian", "ean", "ese", "ish", "i", "ite", "er", "ic", "s", "es", "'s", "ism", "ist", "al", "like")
_ENDINGS = frozenset("e y ia ic al ical er or ist ism ian ous ate ation ion ive ium ing ed".split()) | {""}
_SCHOOLS = ("ian", "ean", "ist", "ism", "ite", "ium", "esque", "ize", "ized", "izing", "ization")
_PARTS_OF_THE_WORLD = frozenset(("North", "South", "East", "West", "Latin", "Central"))
"""With one of these before it a name is another: North America is not the USA."""
_COMMON = STOP_WORDS | TITLES | GIVEN_NAMES
"""Words of a name that alone give nobody away."""
_KIN = frozenset(
    """aunt brother children cousin daughter family father grandfather grandmother husband married mother nee
    nephew niece parent parents sibling siblings sister son uncle widow widower wife""".split()
)
"""In a hint with one of these, a surname is the family's."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
_ROMAN = re.compile(r"^(?=[ivxlcdm])m*(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})$")


@dataclass(frozen=True, slots=True)
class Hit:
    """A span of a hint that leaks, and the rule that found it."""

    span: str
    rule: str


def lexical_leaks(hint: str, answer: str, question: str) -> list[Hit]:
    """Return every way in which ``hint`` gives ``answer`` away lexically, at most one a rule.

    Words that the question itself uses give nothing away (the answer as a whole still does).
    """
    hits = []
    for rule, check in RULES.items():
        spans = check(hint, answer, question)
        if rule in _OF_THE_SAME_NUMBERS:
            spans = (span for span in spans if _same_numbers(hint, span, answer))
        span = next(spans, None)
        if span is not None:
            hits.append(Hit(span, rule))
            if rule == "exact":  # the rest would say the same again
                break
    return hits


def holds(hint: str, answer: str) -> bool:
    """Return whether a hint has the answer itself in it, in any spelling."""
    return any(_same_numbers(hint, span, answer) for span in _exact(hint, answer, ""))


def _exact(hint: str, answer: str, question: str) -> Iterator[str]:
    """The answer itself, whatever its case, accents, articles and punctuation."""
    target = [word.plain for word in answer_words(answer)]
    if not target:  # a symbol such as % is no word
        if answer.strip() and answer.strip() in hint:
            yield answer.strip()
        return
    # "it", "us" or "May" in running text is not the answer IT, US or May.
    common = target[0] in STOP_WORDS or len(target[0]) == 1 or target[0] in AMBIGUOUS
    if not hint.isascii() or target[0] in hint.casefold():  # else no word can be it: none has to be read
        for first, last in runs(read(hint), target, [word.plain for word in read(hint)]):
            if common and len(target) == 1 and not _same_case(first.text, answer):
                continue
            if not _in_a_number(hint, first.start, last.end):
                yield hint[first.start : last.end]
    key = answer_key(answer)
    if len(key) > 1 and key not in STOP_WORDS | AMBIGUOUS and _holds_key(hint, answer):
        yield from _spans_of_key(hint, answer)


def _holds_key(hint: str, answer: str) -> bool:
    """Whether a hint, read as answers are, has the answer in it: 1 500 000 people for 1,500,000."""
    return f" {answer_key(answer)} " in f" {answer_key(hint)} "


def _spans_of_key(hint: str, answer: str) -> Iterator[str]:
    """Yield the spans of a hint that are the same answer; a name in capitals is none in lower case."""
    key, tokens = answer_key(answer), [match.span() for match in _TOKEN.finditer(hint)]
    for first, (start, _) in enumerate(tokens):
        for _, end in tokens[first : first + 2 * len(key)]:
            span = hint[start:end]
            if answer_key(span) == key and (not key.isalpha() or span[0].isupper() or not answer[0].isupper()):
                yield span
                break


def _same_numbers(hint: str, span: str, answer: str) -> bool:
    """Whether a span has the answer's numbers: -40 is not 40, nor 3.14 314, nor four a part of four hundred."""
    if not (values := sorted(value for value, _, _ in numbers_in(answer))):
        return True
    same_key = answer_key(span) == answer_key(answer)
    for first, last in (match.span() for match in re.finditer(re.escape(span), hint)):
        numbers = [number for number in numbers_in(hint) if number[1] < last and first < number[2]]
        whole = all(first <= begin and stop <= last for _, begin, stop in numbers)
        if (same_key and whole) or sorted(value for value, _, _ in numbers) == values:
            return True
    return False


def _same_case(word: str, answer: str) -> bool:
    return word == answer.strip() or (word[:1].isupper() and word[1:].islower() and word == answer.strip().title())


def _in_a_number(hint: str, start: int, end: int) -> bool:
    """Whether digits are a part of a longer number: 9 in 9,026 or 1.9, but not 365 in 365.25."""
    after = r"[.,]\d" if end - start == 1 else r",\d{3}"
    return bool(re.search(r"\d[.,]$", hint[:start][-3:]) and hint[start].isdigit()) or bool(
        hint[end - 1].isdigit() and re.match(after, hint[end:])
    )


def _inflection(hint: str, answer: str, question: str) -> Iterator[str]:
    """An inflected or derived form of the answer, or of its surname: plural, adjective, school (Dickensian)."""
    name = answer_words(answer)
    if len(name) > 1:
        singular = [_singular_stem(word.plain) for word in name]
        if all(len(part) > 1 for part in singular):
            for first, last in runs(read(hint), singular, [_singular_stem(word.plain) for word in read(hint)]):
                yield hint[first.start : last.end]
        surname = name[-1]
        if surname.capital and surname.plain not in TITLES and all(word.capital for word in name):
            for word in read(hint):
                if word.plain[:1] == surname.plain[:1] and (word.capital or len(surname.plain) > 4):
                    if _of_a_name(surname.plain, word.plain):
                        yield word.text
        return
    if not name or len(name[0].plain) < 3 or name[0].plain.isdigit():
        return
    target = name[0].plain
    question_stems = stems(question)
    bases = {stem(target), _singular_stem(target)}
    for word in read(hint):
        if bases.isdisjoint(lexicon().base_stems(word.plain)) and not _derived(target, word.plain):
            continue
        if word.plain == target or stem(word.plain) in question_stems or _is_lookalike(word, name[0]):
            continue
        if word.capital or word.plain not in AMBIGUOUS:
            yield word.text


def _is_lookalike(word: Word, name: Word) -> bool:
    """Whether a word in lower case resembles an answer that is only a name (mainly and Maine)."""
    wordnet = lexicon()
    only_name = name.plain in wordnet.names and name.plain not in wordnet.words
    return only_name and not word.capital and wordnet.has(word.plain)


@lru_cache(maxsize=65536)
def _singular_stem(word: str) -> str:
    return stem(lexicon().plurals.get(word, word))


def _of_a_name(surname: str, word: str) -> bool:
    """Whether ``word`` is a surname (less a final vowel) with an ending for a style, a school or an element."""
    bases = (surname, surname[:-1] if surname[-1] in "aeiouy" else surname)
    return any(word.startswith(base) and word[len(base) :].removesuffix("s") in _SCHOOLS for base in bases)


def _derived(name: str, word: str) -> bool:
    """Whether ``word`` is ``name`` (less a final vowel) with one of the usual endings."""
    if len(name) < 5 or len(word) <= len(name) - 2 or word[:4] != name[:4]:
        return False
    without_vowel = name[:-1] if name[-1] in "aeiouy" else name
    for base in (name, without_vowel, name[:-2] if name.endswith(("ia", "um", "us")) else name):
        ending = word[len(base) :]
        if base != name and ending == "s" and lexicon().has(base):  # moments are not of momentum
            continue
        if len(base) >= 4 and word.startswith(base) and (ending in _SUFFIXES or ending.removesuffix("s") in _SUFFIXES):
            return True
    shared = len(commonprefix([name, word]))  # noqa: RUF071 (characters are meant: Aristotle, Aristotelian)
    if shared >= max(6, len(name) - 2) and word.removesuffix("s").endswith(("ian", "ean", "ism", "ist")):
        return True
    rests = (name[shared:], word[shared:].removesuffix("s"))
    return shared >= 7 and _ENDINGS.issuperset(rests)  # astronomer, astronomy


def _other_name(hint: str, answer: str, question: str) -> Iterator[str]:
    """Another established name of the same thing (Peking for Beijing, graveyard for cemetery)."""
    return _forms_in(hint, _other_names(answer), answer, question)


@lru_cache(maxsize=1024)
def _other_names(answer: str) -> list[str]:
    synonyms = [form for key in _keys(answer) for form in lexicon().other_names(key)]
    additions = [form for name in (*_keys(answer), *map(plain_name, synonyms)) for form in OTHER_NAMES.get(name, ())]
    return synonyms + additions


def _family(hint: str, answer: str, question: str) -> Iterator[str]:
    """A word of the answer's family (lunar for the Moon, Neapolitan for Naples, diabetic for diabetes)."""
    return _forms_in(hint, [form for key in _keys(answer) for form in lexicon().family(key)], answer, question)


@lru_cache(maxsize=1024)
def _keys(answer: str) -> dict[str, None]:
    """Return the names by which the lexicon may know an answer: as it is, without its article, in the singular."""
    keys: dict[str, None] = {}
    for name in (plain_name(answer), " ".join(word.plain for word in answer_words(answer))):
        before, _, last = name.rpartition(" ")
        single = lexicon().plurals.get(last) or (last[:-1] if last.endswith("s") and len(last) > 3 else last)
        keys |= {name: None, f"{before} {single}".strip(): None}
    return keys


def _forms_in(hint: str, forms: Iterable[str], answer: str, question: str) -> Iterator[str]:
    """Yield the spans of a hint that are one of the forms, with its capitals, perhaps in the plural."""
    hint_words, ignored_stems = read(hint), stems(question) | stems(answer)
    for form in forms:
        form_words = read(form)
        if not form_words or form_words[0].plain not in _singulars_in(hint) or stems(form) <= ignored_stems:
            continue
        symbol = len(form) <= 3 and not form.islower()
        if len(form) == 1 or form.casefold() in STOP_WORDS or (symbol and form.casefold() in lexicon().given_names):
            continue
        for start in range(len(hint_words) - len(form_words) + 1):
            window = hint_words[start : start + len(form_words)]
            span = hint[window[0].start : window[-1].end]
            if len(form_words) == 1 and start and hint_words[start - 1].text in _PARTS_OF_THE_WORLD:
                continue
            if all(map(_is_form, window, form_words)) and (span == form or not symbol):
                yield span


@lru_cache(maxsize=1024)
def _singulars_in(hint: str) -> frozenset[str]:
    """Return a hint's words with their possible singulars."""
    return frozenset(form for word in read(hint) for form in (word.plain, *_singulars(word.plain)))


def _is_form(word: Word, form: Word) -> bool:
    if form.capital and not word.capital:
        return False
    return word.plain == form.plain or (len(form.plain) > 3 and form.plain in _singulars(word.plain))


def _singulars(word: str) -> tuple[str, ...]:
    return (word.removesuffix("s"), word.removesuffix("es"), lexicon().plurals.get(word, word))


def rules_only(span: str, answer: str) -> bool:
    """Whether only rules can say that a span leaks: it has a name's last word or begins with the answer."""
    name = read(answer)
    if len(name) > 1 and all(word.capital for word in name):
        return name[-1].plain in {word.plain for word in read(span)}
    return span.casefold().startswith(answer.casefold()) and lexicon().has(span.casefold())


def _part(hint: str, answer: str, question: str) -> Iterator[str]:
    """A distinctive part of a name of several words: the surname, the name without its title."""
    answer_name = answer_words(answer)
    if len(answer_name) < 2:
        return
    question_words = {word.plain for word in read(question)}
    names = {
        word.plain
        for word in answer_name
        if word.capital
        and len(word.plain) >= 4
        and word.plain not in _COMMON
        and word.plain not in question_words
        and not _ROMAN.match(word.plain)
        and not MONTHS.fullmatch(word.plain)
    }
    if not names:
        return
    hint_words = read(hint)
    kin = any(word.plain in _KIN for word in hint_words)
    for position, word in enumerate(hint_words):
        if word.capital and (word.plain in names or word.plain.removesuffix("s") in names):
            if kin or not _names_another(hint, hint_words, position, answer_name):
                yield word.text
        elif word.plain in lexicon().units and len(word.plain) > 3:  # the newton, the volt
            if any(name.startswith(word.plain) and len(name) <= len(word.plain) + 2 for name in names):
                yield word.text


def _names_another(hint: str, words: Sequence[Word], position: int, answer: Sequence[Word]) -> bool:
    """Whether the words before a name make it another's (Roger Moore for Bobby Moore, Panama Canal for Suez Canal)."""
    word, first_names = words[position], {part.plain for part in answer[:-1]} - TITLES
    if not first_names or any(_ROMAN.match(part.plain) for part in answer):
        return False
    if not position or word.plain != answer[-1].plain or not all(part.capital for part in answer):
        return False
    before = words[max(0, position - 3) : position]
    if any(other.plain in first_names or other.plain[0] in first_names for other in before):
        return False
    name = before[-1].plain
    adjacent = hint[before[-1].end : word.start] in (" ", ". ") and before[-1].capital
    given_names = GIVEN_NAMES | lexicon().given_names
    is_name = name in given_names or name not in lexicon().words or first_names.isdisjoint(given_names)
    return adjacent and is_name and name not in TITLES | STOP_WORDS


def _reordered(hint: str, answer: str, question: str) -> Iterator[str]:
    """All words of a name in another order or with other numerals, nothing but function words between: the 1812 war."""
    answer_keys = _content(answer)[1]
    if len(answer_keys) < 2 or stems(answer) <= stems(question):
        return
    any_order = len(answer_keys) > 2 or any(word.plain in FUNCTION_WORDS for word in answer_words(answer))
    content, keys = _content(hint)
    for start in range(len(content) - len(answer_keys) + 1):
        if keys[start] not in answer_keys:
            continue
        end = start + len(answer_keys)
        if keys[start:end] == answer_keys or (any_order and sorted(keys[start:end]) == sorted(answer_keys)):
            yield hint[content[start].start : content[end - 1].end]


@lru_cache(maxsize=1024)
def _content(text: str) -> tuple[list[Word], list[str]]:
    """Return a text's words that are no function words, and their keys."""
    content = [word for word in read(text) if word.plain not in FUNCTION_WORDS]
    return content, [_key(word.text) for word in content]


@lru_cache(maxsize=65536)
def _key(word: str) -> str:
    """Return a word's number in digits (II, 2nd, second, two), else its stem."""
    ordinal = re.fullmatch(r"(\d+)(?:st|nd|rd|th)", plain(word))
    return ordinal[1] if ordinal else digits(word) or stem(plain(word))


def _number(hint: str, answer: str, question: str) -> Iterator[str]:
    """The same number in words or digits, or with more decimals (365.25 for 365)."""
    # "24" or "24 hours", not Apollo 11 or absolute zero: there the number is only a part of a name.
    if len(quantities_in(answer)) != 1:
        return
    [own] = quantities_in(answer)
    rest = re.sub(r"^(?:st|nd|rd|th)\b", "", answer[own.end :])
    if answer[: own.start].strip().casefold() not in ("", "the") or len(word_spans(rest)) > 1:
        return
    answer_text = answer[own.start : own.end]
    for quantity in quantities_in(hint):
        text = hint[quantity.start : quantity.end]
        longer = len(answer_text) > 1 and text.startswith(answer_text) and "." in text[: len(answer_text) + 1]
        if longer or (quantity.equals(own) and answer_key(text) != answer_key(answer)):
            # "the eighteenth" is not 18, but it is the 18th
            units = quantity.kind and quantity.kind == own.kind
            if units or _is_ordinal(hint, quantity) == _is_ordinal(answer, own):
                yield text


def _is_ordinal(text: str, quantity: Quantity) -> bool:
    ending = re.search(r"\d(?:st|nd|rd|th)\b", text[quantity.start : quantity.end + 2])
    return bool(ending) or is_ordinal_word(text[quantity.start : quantity.end])


def _date(hint: str, answer: str, question: str) -> Iterator[str]:
    """The same day in another notation (9/11 for September 11, 2001)."""
    answer_dates = dates_in(answer)
    for month, day, year, start, end in dates_in(hint) if answer_dates else ():
        for other_month, other_day, other_year, _, _ in answer_dates:
            if (month, day) == (other_month, other_day) and (year is None or other_year in (None, year)):
                yield hint[start:end]


RULES: dict[str, Callable[[str, str, str], Iterator[str]]] = {
    "exact": _exact,
    "inflection": _inflection,
    "part": _part,
    "reordered": _reordered,
    "initials": initials,
    "other_name": _other_name,
    "family": _family,
    "number": _number,
    "date": _date,
    "compound": compound,
    "spelling": spelling,
}
"""Rule name to rule, in the order in which they are tried."""
_OF_THE_SAME_NUMBERS = ("exact", "inflection", "reordered", "compound")
"""Rules that compare words, to which signs and points are nothing."""
