"""The embedded reader: picks an answer out of the documents by rules and fifteen weights. No language model, and no
match for one.

Candidates come from :mod:`.spans`; each is scored by a linear model over features of itself, its sentence and its
document. The weights were fitted to 2WikiMultihopQA's triples ("Ivanhoe >> director" and the like, with the true
document and others), so they know its relations best; ``docs/systems.md`` has the accuracy on questions it was not
fitted to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from quit.evaluate.normalize import STOP_WORDS, normalize_answer, stem, words
from quit.models.protocols import NO_ANSWER, Encoder
from quit.systems.sunar.spans import Span, sentences, spans, untitled

VERSION = 1
FEATURES = (
    "similar",  # cosine of question and sentence
    "overlap",  # share of the question's stems in sentence and title
    "near",  # 1 / (1 + words to the nearest of those stems in the sentence)
    "early",  # 1 / (1 + place of the sentence in its document)
    "first",  # 1 / rank of the document
    "fits",  # the kind of span that the question's type asks for
    "unfit",  # a kind that it rules out
    "titled",  # is in the document's title
    "phrase",  # is no name, number or quotation
    "long",  # words of the span
    "often",  # log of how many sentences have it
    "placed",  # the question asks for a place, and a preposition of place stands before the span
    "acting",  # the question asks for a person, and "by" or a comma and an office stands before the span
    "person",  # the question asks for a person, and the span looks like one: two or three capitalised words
    "adjective",  # the question asks for a country, and the span is a lone word before another: "an American actor"
)
WEIGHTS = np.array([6.56, 4.52, 1.56, 0.99, 0.74, 2.22, -3.06, 1.85, -0.26, 0.04, 0.57, 1.61, 2.13, 2.46, 2.62])

_OFTEN = FEATURES.index("often")
_PLACES = frozenset(
    "place country city state county located location territorial continent headquarters birthplace "
    "capital border".split()
)
_PEOPLE = frozenset(
    "director performer composer father mother spouse child sibling author writer founded founder producer "
    "screenwriter creator husband wife son daughter developer cast member".split()
)
_COUNTRIES = frozenset("country citizenship nationality origin".split())
_BEFORE_PLACE = frozenset("in at near from of to".split())
_NUMERIC = frozenset({"date", "year", "number"})
_NAMES = frozenset({"name", "quoted"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate answer and the features of its best occurrence so far."""

    text: str
    features: np.ndarray


class ExtractiveReader:
    """Answers from documents with MiniLM and rules.

    ``coarse``: a question to its (coarse, fine) type, as the sources write it. ``closest``: sentences that are looked
    at, chosen by the words they share with the question. ``temperature``: of sampling, over the linear scores; samples
    are drawn by a hash of question, documents and number, so they are the same whenever they are asked for.
    """

    def __init__(
        self,
        encoder: Encoder,
        coarse: Callable[[str], tuple[str, str]],
        *,
        identity: str = "",
        closest: int = 16,
        temperature: float = 0.3,
        weights: np.ndarray = WEIGHTS,
    ) -> None:
        digest = hashlib.sha256(weights.tobytes()).hexdigest()[:8]
        self.identity = f"extractive-{VERSION}@{digest}({closest}, {temperature:g})/{encoder.identity}+{identity}"
        self._encoder = encoder
        self._coarse = coarse
        self._closest = closest
        self._temperature = temperature
        self._weights = weights

    def answer(self, question: str, texts: Sequence[str]) -> str:
        """Return the best candidate, ties by the text; ``NO ANSWER`` where the documents hold none."""
        scored = self._scored(question, texts)
        return scored[0][1] if scored else NO_ANSWER

    def samples(self, question: str, texts: Sequence[str], m: int) -> list[str]:
        """Return m candidates drawn by their scores (Gumbel-max)."""
        scored = self._scored(question, texts)
        if not scored:
            return [NO_ANSWER] * m
        logits = np.array([score for score, _ in scored]) / self._temperature
        seed = hashlib.sha256("\x1f".join([question, *texts]).encode("utf-8", "surrogatepass")).digest()
        drawn = []
        for number in range(m):
            noise = np.random.default_rng([number, *seed[:16]]).gumbel(size=len(logits))
            drawn.append(scored[int(np.argmax(logits + noise))][1])
        return drawn

    def candidates(self, question: str, texts: Sequence[str]) -> list[Candidate]:
        """Return the candidates with the features of their best-scored occurrence, in order of appearance."""
        asked = _stems(question)
        question_text = f" {normalize_answer(question)} "
        coarse, fine = self._coarse(question)
        wanted, refused = _kinds(coarse, fine, question)
        asks = _asks(coarse, fine, question)
        places = []
        for rank, text in enumerate(texts, start=1):
            parts = sentences(text)
            title, parts[:1] = _opening(parts)
            known = _stems(title)
            for at, sentence in enumerate(parts):
                shared = len(asked & (known | _stems(sentence))) / max(1, len(asked))
                places.append((shared, rank, at, title, sentence))
        places.sort(key=lambda context: (-context[0], context[1], context[2]))
        places = places[: self._closest]
        if not places:
            return []
        vectors = self._encoder.encode([question, *(f"{context[3]} {context[4]}".strip() for context in places)])
        similar = vectors[1:] @ vectors[0]
        best: dict[str, Candidate] = {}
        seen: dict[str, int] = {}
        for context, value in zip(places, similar.tolist(), strict=True):
            shared, rank, at, title, sentence = context
            here: set[str] = set()
            for span in spans(sentence):
                key = normalize_answer(span.text)
                if not key or f" {key} " in question_text or len(words(span.text)) > 12:
                    continue
                features = np.array(
                    [
                        value,
                        shared,
                        _near(span, sentence, asked),
                        1.0 / (1 + at),
                        1.0 / rank,
                        span.kind in wanted,
                        span.kind in refused,
                        f" {key} " in f" {normalize_answer(title)} ",
                        span.kind == "phrase",
                        len(words(span.text)),
                        0.0,
                        *_cues(span, sentence, asks),
                    ]
                )
                here.add(key)
                known_one = best.get(key)
                if known_one is None or features @ self._weights > known_one.features @ self._weights:
                    best[key] = Candidate(span.text, features)
            for key in here:
                seen[key] = seen.get(key, 0) + 1
        for key, candidate in best.items():
            candidate.features[_OFTEN] = np.log(seen[key])
        return list(best.values())

    def _scored(self, question: str, texts: Sequence[str]) -> list[tuple[float, str]]:
        candidates = self.candidates(question, texts)
        return sorted(
            ((float(candidate.features @ self._weights), candidate.text) for candidate in candidates),
            key=lambda at: (-at[0], at[1]),
        )


def _opening(parts: list[str]) -> tuple[str, list[str]]:
    if not parts:
        return "", []
    title, rest = untitled(parts[0])
    return title, [rest]


def _stems(text: str) -> set[str]:
    return {stem(word) for word in map(str.casefold, words(text)) if word not in STOP_WORDS}


def _near(span: Span, sentence: str, asked: set[str]) -> float:
    """Return 1 / (1 + words between the span and the nearest word of the question)."""
    before = words(sentence[: span.start])[::-1]
    after = words(sentence[span.end :])
    gaps = [at for side in (before, after) for at, word in enumerate(side) if stem(word.casefold()) in asked]
    return 1.0 / (1 + min(gaps)) if gaps else 0.0


def _asks(coarse: str, fine: str, question: str) -> frozenset[str]:
    """Return which of place, person and country a question asks for."""
    relation = question.casefold().rpartition(">>")[2] if ">>" in question else ""
    relation_words = set(words(relation))
    asked_for = set()
    if relation_words & _PLACES or (not relation and coarse.startswith("LOC")):
        asked_for.add("place")
    if relation_words & _PEOPLE or (not relation and coarse.startswith("HUM") and not fine.startswith("gr:")):
        asked_for.add("person")
    if relation_words & _COUNTRIES or (
        not relation and (fine.startswith("country") or "nationality" in question.casefold())
    ):
        asked_for.add("country")
    return frozenset(asked_for)


def _cues(span: Span, sentence: str, asks: frozenset[str]) -> tuple[bool, bool, bool, bool]:
    """Return the features placed, acting, person and adjective."""
    before = sentence[: span.start].split()
    last = before[-1].casefold() if before else ""
    name = span.kind == "name"
    size = len(span.text.split())
    after = sentence[span.end : span.end + 2]
    return (
        "place" in asks and name and last in _BEFORE_PLACE,
        "person" in asks and name and last == "by",
        "person" in asks and name and 2 <= size <= 3,
        "country" in asks
        and name
        and size == 1
        and last in ("a", "an", "the")
        and after[:1] == " "
        and after[1:].islower(),
    )


def _kinds(coarse: str, fine: str, question: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the kinds of span that a question asks for, and those it rules out."""
    text = question.casefold()
    relation = text.rpartition(">>")[2] if ">>" in text else ""
    if fine.startswith("date") or any(word in (relation or "") for word in ("date", "inception", "year", "time")):
        return frozenset({"date", "year"}), frozenset({"name", "quoted", "phrase", "number"})
    if relation:
        return _NAMES, _NUMERIC
    if text.startswith("when") or "what year" in text or "which year" in text:
        return frozenset({"date", "year"}), frozenset({"name", "quoted", "phrase", "number"})
    if coarse.startswith("NUM"):
        return frozenset({"number"}), _NAMES | {"phrase"}
    if coarse.startswith(("HUM", "LOC")):
        return frozenset({"name"}), _NUMERIC | {"phrase"}
    return _NAMES, frozenset({"date"})
