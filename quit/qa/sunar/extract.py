"""The embedded reader: picks an answer out of the documents by rules and a linear model. No language model, and no
match for one.

Its weights were fitted to 2WikiMultihopQA's triples ("Ivanhoe >> director" and the like, with the true document and
others), so they know its relations best; ``docs/research/systems.md`` has the accuracy on questions outside of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from quit.common.arithmetic import products
from quit.models.protocols import NO_ANSWER, Encoder
from quit.text.answers import answer_key
from quit.text.numbers import SIGN
from quit.text.tokens import STOP_WORDS, stem, words
from quit.text.words import ABBREVIATED

VERSION = 4
CLOSEST = 16
"""Sentences that are looked at, chosen by the words they share with the question."""
TEMPERATURE = 0.5
"""Of sampling, over the linear scores."""
FEATURES = {
    "similar": 6.56,  # cosine of question and sentence
    "overlap": 4.52,  # share of the question's stems in sentence and title
    "near": 1.56,  # 1 / (1 + words to the nearest of those stems in the sentence)
    "early": 0.99,  # 1 / (1 + place of the sentence in its document)
    "fits": 2.22,  # the kind of span that the question's type asks for
    "unfit": -3.06,  # a kind that it rules out
    "titled": 1.85,  # is in the document's title
    "placed": 1.61,  # the question asks for a place, and a preposition of place stands before the span
    "acting": 2.13,  # the question asks for a person, and "by" stands before the span
    "person": 2.46,  # the question asks for a person, and the span has two or three words
    "adjective": 2.62,  # the question asks for a country, and a lone word stands before another: "an American actor"
}
"""Feature of a candidate -> weight."""

_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_STOP = rf"(?!(?:{'|'.join(sorted(STOP_WORDS))})\b)"
_CAPITAL = r"\d*[^\W\d_a-zß-ÿ][\w'’]*"
_LINK = r"(?:-| & |\.? (?:(?:of|the|de|la|le|du|von|van|der|den|di|da|del|and|for|al|el|bin|ibn) ){0,2})"
_PLAIN = rf"{_STOP}[a-zß-ÿ][\w'’]*"
_SPANS = {
    "date": re.compile(rf"\b(?:\d{{1,2}} {_MONTH},? \d{{4}}|{_MONTH} \d{{1,2}}, ?\d{{4}}|{_MONTH} \d{{1,4}})\b"),
    "year": re.compile(r"\b(?:1\d|20)\d\d\b"),
    "number": re.compile(
        rf"(?:{SIGN})?[$£€]?\b(?!(?:1\d|20)\d\d\b)"
        r"\d+(?:,\d+)*(?:\.\d+)?(?:%| (?:[mb]illion|percent|km|m|ft|feet|miles|years))*(?!\w)"
    ),
    "quoted": re.compile(r"(?<=[\"“])[^\"“”]{2,60}(?=[\"”])"),
    "name": re.compile(rf"\b(?i:{_STOP}){_CAPITAL}(?:{_LINK}{_CAPITAL})*"),
    "phrase": re.compile(rf"\b{_PLAIN}(?:[ -]{_PLAIN}){{0,3}}"),
}
_SENTENCE = re.compile(r"(?<=[.!?])[\"”')]*\s+(?=[\"“(]?[A-Z0-9])")
_TITLE = re.compile(r"(?=(\w+))(.{1,80}?) (?=\1\b)|((?:\S+ ){1,3}?([A-Z]\w+)) (?=(?:\S+ ){0,3}\4\b)")
_RELATIONS = {
    "place": "place country city state county located location headquarters birthplace capital border",
    "person": "director performer composer father mother spouse child sibling author writer founder producer "
    "screenwriter creator husband wife son daughter developer cast member",
    "country": "country citizenship nationality origin",
    "date": "date inception year time",
}
_FITTING = {"date": ("date", "year"), "number": ("number",)}
_TYPES = {"place": "LOC", "person": "HUM:HUMAN ind", "country": "LOC:LOCATION country", "number": "NUM"}


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order; initials and the usual abbreviations end none."""
    groups: list[list[str]] = []
    for part in _SENTENCE.split(text):
        if groups and ABBREVIATED.search(groups[-1][-1]):
            groups[-1].append(part)
        elif part.strip():
            groups.append([part.strip()])
    return [" ".join(parts) for parts in groups]


def untitled(sentence: str) -> tuple[str, str]:
    """Return (title, sentence) of a document's first sentence: encyclopedias repeat the title, or a word of it, at the
    beginning of the text. The title is empty where that cannot be seen."""
    match = _TITLE.match(sentence)
    return (match[0].strip(), sentence[match.end() :]) if match else ("", sentence)


def spans(sentence: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of the candidates of a sentence, by kind: date, year, number, quoted, name, phrase."""
    dates = [match.span() for match in _SPANS["date"].finditer(sentence)]
    for kind, pattern in _SPANS.items():
        for match in pattern.finditer(sentence):
            start, end = match.span()
            if kind in ("number", "name") and any(first <= start < last for first, last in dates):
                continue
            yield kind, start, end
            if kind == "name" and " and " in match[0]:
                cut = start + match[0].index(" and ")
                yield from ((kind, start, cut), (kind, cut + 5, end))


class _Place(NamedTuple):
    """A sentence of a document, the ``at``-th from 0, and the ``share`` of the question's stems in it and the title."""

    share: float
    at: int
    title: str
    sentence: str


def _closest(stems: set[str], texts: Sequence[str]) -> list[_Place]:
    """Return the :data:`CLOSEST` sentences with the largest shares, the first of equal ones first."""
    places = []
    for text in texts:
        first, *others = sentences(text) or [""]
        title, first = untitled(first)
        for at, part in enumerate((first, *others)):
            places.append(_Place(len(stems & _stems(f"{title} {part}")) / max(1, len(stems)), at, title, part))
    return sorted(places, key=lambda place: -place.share)[:CLOSEST]


class ExtractiveReader:
    """Answers from documents with MiniLM and rules.

    ``coarse``: a question to its (coarse, fine) type, as the sources write it. Samples are drawn by a hash of question,
    documents and number, so they are the same whenever they are asked for.
    """

    def __init__(self, encoder: Encoder, coarse: Callable[[str], tuple[str, str]], *, identity: str = "") -> None:
        self.identity = f"extractive-{VERSION}/{encoder.identity}+{identity}"
        self._encoder = encoder
        self._coarse = coarse
        self._weights = np.array(list(FEATURES.values()))

    def answer(self, question: str, texts: Sequence[str]) -> str:
        """Return the best candidate, ties by the text; ``NO ANSWER`` where the documents hold none."""
        scores = self._scores(question, texts)
        return min(scores, key=lambda text: (-scores[text], text), default=NO_ANSWER)

    def samples(self, question: str, texts: Sequence[str], m: int) -> list[str]:
        """Return m candidates drawn by their scores (Gumbel-max)."""
        scores = self._scores(question, texts)
        if not scores:
            return [NO_ANSWER] * m
        logits = np.array(list(scores.values())) / TEMPERATURE
        seed = hashlib.sha256("\x1f".join([question, *texts]).encode("utf-8", "surrogatepass")).digest()
        noise = (np.random.default_rng([number, *seed[:16]]).gumbel(size=len(logits)) for number in range(m))
        return [list(scores)[int(np.argmax(logits + each))] for each in noise]

    def _scores(self, question: str, texts: Sequence[str]) -> dict[str, float]:
        return {text: float((features * self._weights).sum()) for text, features in self.candidates(question, texts)}

    def candidates(self, question: str, texts: Sequence[str]) -> list[tuple[str, np.ndarray]]:
        """Return the candidates with the features of their best-scored occurrence, in order of appearance."""
        stems, asks = _stems(question), self._asks(question)
        places = _closest(stems, texts)
        vectors = self._encoder.encode([question, *(f"{each.title} {each.sentence}".strip() for each in places)])
        best: dict[str, tuple[str, np.ndarray]] = {}
        for (share, at, title, part), similar in zip(places, products(vectors[1:], vectors[0]), strict=True):
            for kind, start, end in spans(part):
                span = part[start:end]
                key, size = answer_key(span), len(words(span))
                if not key or f" {key} " in f" {answer_key(question)} " or size > 12:
                    continue
                before, after = words(part[:start])[::-1], words(part[end:])
                gaps = [gap for side in (before, after) for gap, word in enumerate(side) if _stems(word) & stems]
                last = before[0].casefold() if before else ""
                kinds = asks if kind == "name" else ()
                fits = kind in _FITTING.get(" ".join(asks & _FITTING.keys()), ("name", "quoted"))
                lone = size == 1 and last in ("a", "an", "the") and part[end:][1:2].islower()
                values = {
                    "similar": similar,
                    "overlap": share,
                    "near": 1 / (1 + min(gaps)) if gaps else 0,
                    "early": 1 / (1 + at),
                    "fits": fits,
                    "unfit": not fits and (kind != "phrase" or bool(asks)),
                    "titled": f" {key} " in f" {answer_key(title)} ",
                    "placed": "place" in kinds and last in ("in", "at", "near", "from", "of", "to"),
                    "acting": "person" in kinds and last == "by",
                    "person": "person" in kinds and 2 <= size <= 3,
                    "adjective": "country" in kinds and lone,
                }
                features = np.array([values[name] for name in FEATURES], float)
                if key not in best or (features * self._weights).sum() > (best[key][1] * self._weights).sum():
                    best[key] = (span, features)
        return list(best.values())

    def _asks(self, question: str) -> set[str]:
        """Return which of place, person, country, date and number a question asks for."""
        _, triple, text = question.casefold().rpartition(">>")
        if triple:
            return {kind for kind, clues in _RELATIONS.items() if {*words(text)} & {*clues.split()}}
        coarse, fine = self._coarse(question)
        if fine.startswith("date") or re.match(r"when\b|.*\b(?:what|which) year", text):
            return {"date"}
        return {kind for kind, start in _TYPES.items() if f"{coarse} {fine}".startswith(start)}


def _stems(text: str) -> set[str]:
    return {stem(word) for word in map(str.casefold, words(text)) if word not in STOP_WORDS}
