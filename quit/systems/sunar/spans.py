"""Candidate answers in an English text, by rules: dates, years, numbers, names, quotations, phrases."""

from __future__ import annotations

import re
from dataclasses import dataclass

from quit.evaluate.normalize import STOP_WORDS, word_spans

_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(
    rf"\b(?:\d{{1,2}} {_MONTH},? \d{{4}}|{_MONTH} \d{{1,2}}, ?\d{{4}}|{_MONTH} \d{{1,2}}|{_MONTH} \d{{4}})\b"
)
_YEAR = re.compile(r"\b(?:1[0-9]|20)\d{2}\b")
_NUMBER = re.compile(
    r"[$£€]?\b\d[\d,]*(?:\.\d+)?(?:%| (?:million|billion|trillion|percent|km|mi|m|ft|feet|miles|kilometers|metres|"
    r"meters|years|acres|people|square (?:miles|kilometers|metres)))*(?!\w)"
)
_QUOTED = re.compile(r"[\"“]([^\"“”]{2,60})[\"”]")
_LINKS = frozenset("of the de la le du von van der den di da del and for al el bin ibn".split())
_SENTENCE = re.compile(r"(?<=[.!?])[\"”')]*\s+(?=[\"“(]?[A-Z0-9])")
_ABBREVIATED = re.compile(r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|No|Gen|Col|Lt|Rev|Prof|Inc|Co|U\.S|b|d|c|ca)\.)$")
_PHRASE = 4


@dataclass(frozen=True, slots=True)
class Span:
    """A candidate: text, kind (date, year, number, name, quoted, phrase) and character offsets."""

    text: str
    kind: str
    start: int
    end: int


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order; initials and the usual abbreviations end none."""
    sentences: list[str] = []
    for part in _SENTENCE.split(text):
        if sentences and _ABBREVIATED.search(sentences[-1]):
            sentences[-1] += f" {part}"
        elif part.strip():
            sentences.append(part.strip())
    return sentences


def untitled(sentence: str) -> tuple[str, str]:
    """Return (title, sentence) of a document's first sentence, where the title stands before the text without a mark.

    Encyclopedias repeat the title, or its last word, at the beginning of the text; where that cannot be seen the title
    is empty.
    """
    words = word_spans(sentence)
    texts = [sentence[start:end] for start, end in words]
    for size in range(min(12, len(words) // 2), 0, -1):
        if texts[:size] == texts[size : 2 * size]:
            return sentence[: words[size][0]].strip(), sentence[words[size][0] :]
    if len(words) > 3 and texts[0] in texts[1:8]:
        at = texts.index(texts[0], 1)
        return sentence[: words[at][0]].strip(), sentence[words[at][0] :]
    for size in range(2, min(5, len(words))):
        if texts[size - 1][:1].isupper() and texts[size - 1] in texts[size : size + 5]:
            return sentence[: words[size][0]].strip(), sentence[words[size][0] :]
    return "", sentence


def spans(sentence: str) -> list[Span]:
    """Return the candidates of a sentence by place; those of one kind do not overlap, those of different kinds may."""
    candidates = [Span(match[0], "date", *match.span()) for match in _DATE.finditer(sentence)]
    dates = [(span.start, span.end) for span in candidates]
    candidates += [Span(match[0], "year", *match.span()) for match in _YEAR.finditer(sentence)]
    candidates += [
        Span(match[0], "number", *match.span())
        for match in _NUMBER.finditer(sentence)
        if not _YEAR.fullmatch(match[0]) and not any(start <= match.start() < end for start, end in dates)
    ]
    candidates += [Span(match[1], "quoted", *match.span(1)) for match in _QUOTED.finditer(sentence)]
    candidates += [span for span in _runs(sentence) if not any(start <= span.start < end for start, end in dates)]
    return sorted(candidates, key=lambda span: (span.start, span.end, span.kind))


def _runs(sentence: str) -> list[Span]:
    """Return names (runs of capitalised words and links between them) and phrases (runs of other content words)."""
    words = word_spans(sentence)
    runs: list[Span] = []
    first = 0
    while first < len(words):
        word = sentence[slice(*words[first])]
        if _capital(word) and word.casefold() not in STOP_WORDS:
            last = ahead = first
            while ahead + 1 < len(words) and _joined(sentence, words[ahead], words[ahead + 1]):
                ahead += 1
                following = sentence[slice(*words[ahead])]
                if _capital(following):
                    last = ahead
                elif following not in _LINKS:
                    break
            runs += _name(sentence, words, first, last)
            first = last + 1
        elif word.casefold() not in STOP_WORDS and word[0].isalpha():
            last = first
            while (
                last + 1 < len(words)
                and last - first + 1 < _PHRASE
                and _joined(sentence, words[last], words[last + 1])
                and not _capital(following := sentence[slice(*words[last + 1])])
                and following.casefold() not in STOP_WORDS
                and following[0].isalpha()
            ):
                last += 1
            runs.append(_span(sentence, words, first, last, "phrase"))
            first = last + 1
        else:
            first += 1
    return runs


def _name(sentence: str, words: list[tuple[int, int]], first: int, last: int) -> list[Span]:
    whole = [_span(sentence, words, first, last, "name")]
    cuts = [word for word in range(first, last + 1) if sentence[slice(*words[word])] == "and"]
    for begin, end in zip([first, *(cut + 1 for cut in cuts)], [*(cut - 1 for cut in cuts), last], strict=True):
        if cuts and begin <= end and _capital(sentence[slice(*words[begin])]):
            whole.append(_span(sentence, words, begin, end, "name"))
    return whole


def _span(sentence: str, words: list[tuple[int, int]], first: int, last: int, kind: str) -> Span:
    start, end = words[first][0], words[last][1]
    return Span(sentence[start:end], kind, start, end)


def _joined(sentence: str, before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Whether nothing but a space, hyphen, full stop or apostrophe stands between two words."""
    between = sentence[before[1] : after[0]]
    return between in (" ", "-", "'", "’", " & ") or (between in (". ", ".") and before[1] - before[0] <= 2)


def _capital(word: str) -> bool:
    return word[:1].isupper() or (word[:1].isdigit() and any(char.isupper() for char in word))
