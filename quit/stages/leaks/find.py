"""Which spans of a hint give an answer away (paper, section 3.1.2): rules, the equivalence model, and what people said.

``leakage.method = "bem"``, the paper's: the equivalence model judges every word of a hint except stop words against
each answer; words of the question count, and nothing else does. ``"full"``, ours: lexical rules find what needs no
model, and the model is asked about words and spans that are near an answer. Every finding keeps its span, answer,
probability and rule, so that a person can see why, and overrule it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from quit.common.arithmetic import products
from quit.common.rows import grouped, tuples
from quit.models.protocols import Encoder, Equivalence, Pair
from quit.settings import Leakage
from quit.stages.leaks import RULES_IDENTITY, WORDS_IDENTITY
from quit.stages.leaks.containment import content_words, hints_of_occurrence, is_word_of
from quit.stages.leaks.rules import lexical_leaks, rules_only
from quit.text.tokens import STOP_WORDS, stem, word_spans
from quit.text.tokens import words as words_of

CONTAINED = "contained"
"""Method of a finding that is a string in a string, perhaps inside another word (answer containment)."""
PERSON = "person"
"""Method and producer of a finding that a person added; who and why is listed in ``overrides``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One span of one hint that leaks one answer; ``overridden``: a person said that it does not."""

    span: str
    answer: str
    probability: float
    method: str
    producer: str
    overridden: bool = False

    @property
    def words(self) -> str:
        """What it says, as reasons have it."""
        return f"{self.span!r} gives away {self.answer!r} ({self.method}, {self.probability:.2f})"


Findings = Sequence[Sequence[Sequence[Finding]]]
"""By item and hint."""
_HitsOf = Callable[[str, str, str], list[tuple[str, str]]]
"""Hint, answer and question -> spans and methods."""


class Candidate(NamedTuple):
    """For the equivalence model. ``item``, ``hint``: positions."""

    item: int
    hint: int
    span: str
    answer: str


def overrides_by_hint(overrides: pa.Table | None, hints: pa.Table) -> dict[str, bool]:
    """Return hint id -> whether it leaks, from the rows of the table ``overrides`` in force and of kind ``leak``.

    ``hints``: columns question_id, hint_id, hint. A decision is about a hint's text: an id is a place in the source,
    where another hint may stand later.
    """
    if not overrides:
        return {}
    by_text = {(row["question_id"], row["hint"]): row["decision"] == "leak" for row in overrides.to_pylist()}
    return {
        hint_id: by_text[question_id, hint]
        for question_id, hint, hint_id in tuples(hints, "question_id", "hint", "hint_id")
        if (question_id, hint) in by_text
    }


@dataclass(frozen=True, slots=True)
class LeakItem:
    """One question to check: ``answers`` are all its valid answers. By hint: ``overrides``, what people said of
    it (None: nothing), and ``hint_ids``."""

    question: str
    answers: Sequence[str]
    hints: Sequence[str]
    overrides: Sequence[bool | None] = ()
    hint_ids: Sequence[str] = ()

    def rulings(self) -> Sequence[bool | None]:
        """Return the override of each hint."""
        return self.overrides or [None] * len(self.hints)


def leak_items(
    questions: Iterable[tuple[str, str, Sequence[str]]], hints: pa.Table, overrides: Mapping[str, bool]
) -> list[LeakItem]:
    """Return an item for each of some questions (id, question, answers). ``hints``: columns question_id, hint_id,
    hint; ``overrides``: of :func:`overrides_by_hint`."""
    rows = tuples(hints, "question_id", "hint_id", "hint")
    hints_of = grouped((question_id, (hint_id, hint)) for question_id, hint_id, hint in rows)
    items = []
    for question_id, question, answers in questions:
        texts = dict(hints_of.get(question_id, ()))
        items.append(LeakItem(question, answers, [*texts.values()], [*map(overrides.get, texts)], [*texts]))
    return items


def find_leaks(
    question: str,
    answers: Sequence[str],
    hints: Sequence[str],
    equivalence: Equivalence | None,
    encoder: Encoder | None,
    settings: Leakage,
    overrides: Sequence[bool | None] = (),
) -> list[list[Finding]]:
    """Return the findings of each hint, most certain first, overridden ones last.

    ``answers``: all valid answers of the question. ``overrides``: of each hint.
    """
    return find_leaks_of([LeakItem(question, answers, hints, overrides)], equivalence, encoder, settings)[0]


def find_leaks_of(
    items: Sequence[LeakItem], equivalence: Equivalence | None, encoder: Encoder | None, settings: Leakage
) -> list[list[list[Finding]]]:
    """Return what :func:`find_leaks` returns for each item. Models get the texts of all items at once, for speed.

    Without models, rules alone find leaks (with ``bem``: words that are the answer itself).
    """
    bem = settings.method == "bem"
    hits_of, producer = (_equal_words, WORDS_IDENTITY) if bem else (_lexical_hits, RULES_IDENTITY)
    uncertain = _words_for_model if bem else _spans_for_model
    findings = [
        [
            _certain(item, hint, ruling, hits_of, producer)
            for hint, ruling in zip(item.hints, item.rulings(), strict=True)
        ]
        for item in items
    ]
    candidates = [] if equivalence is None else uncertain(items, findings, encoder, settings)
    if candidates and equivalence is not None:
        pairs = [Pair(items[position].question, answer, span) for position, _, span, answer in candidates]
        for (position, row, span, answer), probability in zip(candidates, equivalence.probability(pairs), strict=True):
            duplicate = any((leak.span, leak.answer) == (span, answer) for leak in findings[position][row])
            if probability >= settings.threshold and not duplicate:
                leak = Finding(span, answer, float(probability), "equivalence", equivalence.identity)
                findings[position][row].append(_overrule(leak, items[position].rulings()[row]))
    if settings.contained and settings.method == "full":
        for item, rows in zip(items, findings, strict=True):
            _add_contained(item, rows)
    return [
        [sorted(leaks, key=lambda leak: (leak.overridden, -leak.probability)) for leaks in rows] for rows in findings
    ]


def _add_contained(item: LeakItem, findings: list[list[Finding]]) -> None:
    """Add a finding where an answer is in a hint as letters and nothing else was found to give it away there.

    A passage joins hints by spaces, so an answer can also begin at the end of one hint and continue at the start of
    another; the finding is then the first one's.
    """
    overrides = item.rulings()
    for answer in item.answers:
        inside = [row for row, hint in enumerate(item.hints) if hints_of_occurrence(answer, [hint])]
        across = () if inside else hints_of_occurrence(answer, item.hints) or ()
        for row in inside or across[:1]:
            if not any(leak.answer == answer for leak in findings[row]):
                findings[row].append(_overrule(Finding(answer, answer, 1.0, CONTAINED, RULES_IDENTITY), overrides[row]))


def _certain(item: LeakItem, hint: str, ruling: bool | None, hits_of: _HitsOf, producer: str) -> list[Finding]:
    """Return people's finding in one hint, of its whole text and the first answer, and those that need no model: what
    ``hits_of`` returns."""
    findings = [Finding(hint, item.answers[0], 1.0, PERSON, PERSON)] if ruling else []
    for answer in item.answers:
        existing = {(finding.span, finding.answer) for finding in findings}
        findings += [
            Finding(span, answer, 1.0, method, producer)
            for span, method in hits_of(hint, answer, item.question)
            if (span, answer) not in existing
        ]
    return [_overrule(finding, ruling) for finding in findings]


def _equal_words(hint: str, answer: str, question: str) -> list[tuple[str, str]]:
    """Return the words of a hint that are an answer, with the method."""
    return [(word, "exact") for word in content_words(hint) if is_word_of(answer, word)]


def _lexical_hits(hint: str, answer: str, question: str) -> list[tuple[str, str]]:
    """Return the spans of a hint that lexical rules find, with the rule."""
    return [(hit.span, hit.rule) for hit in lexical_leaks(hint, answer, question)]


def _words_for_model(
    items: Sequence[LeakItem], findings: Findings, encoder: Encoder | None, settings: Leakage
) -> list[Candidate]:
    """Return (item, hint, word, answer) for the equivalence model: every word of every hint with each answer."""
    return [
        Candidate(position, row, word, answer)
        for position, item in enumerate(items)
        for row, hint in enumerate(item.hints)
        for word in content_words(hint)
        for answer in item.answers
        if not any((leak.span, leak.answer) == (word, answer) for leak in findings[position][row])
    ]


def _overrule(finding: Finding, ruling: bool | None) -> Finding:
    """Return the finding, overridden if people said that the hint does not leak."""
    return replace(finding, overridden=True) if ruling is False else finding


def _spans_for_model(
    items: Sequence[LeakItem], findings: Findings, encoder: Encoder | None, settings: Leakage
) -> list[Candidate]:
    """Return (item, hint, span, answer) for the equivalence model: spans near an answer, in hints without a finding.

    Words that the question uses, and words of a longer answer itself, are not asked about: whether a part of a name
    gives it away is for the lexical rules to say ("canal" does not give away Panama Canal).
    """
    screen = _Nearness(encoder if settings.screen > -1 else None, settings.screen)
    words_by_hint: list[dict[int, list[str]]] = []
    for item, leaks_by_hint in zip(items, findings, strict=True):
        without = [row for row, leaks in enumerate(leaks_by_hint) if all(leak.overridden for leak in leaks)]
        words_by_hint.append({row: candidate_spans(item.hints[row], 1) for row in without})
    texts = [[*item.answers, *chain(*rows.values())] for item, rows in zip(items, words_by_hint, strict=True)]
    screen.learn(list(chain(*texts)))
    spans: list[Candidate] = []
    for position, (item, rows) in enumerate(zip(items, words_by_hint, strict=True)):
        question_stems = _stems(item.question)
        for answer in item.answers:
            answer_stems = _stems(answer)
            longest = max(1, len(word_spans(answer))) if settings.spans else 1
            for row, single in rows.items():
                # A span of several words is worth asking about only if one of its words is near the answer.
                close = {word for word in single if screen.close(word, answer)}
                for span in candidate_spans(item.hints[row], longest) if close else ():
                    words = _stems(span)
                    if words <= question_stems or words <= answer_stems or close.isdisjoint(words_of(span)):
                        continue
                    if not rules_only(span, answer):
                        spans.append(Candidate(position, row, span, answer))
    screen.learn([candidate.span for candidate in spans])
    return [candidate for candidate in spans if screen.close(candidate.span, candidate.answer)]


class _Nearness:
    """Cosine screen: which texts are near an answer? Each distinct text is encoded once; without an encoder all are."""

    def __init__(self, encoder: Encoder | None, screen: float) -> None:
        self._encoder = encoder
        self._screen = screen
        self._vectors: dict[str, np.ndarray] = {}

    def learn(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new and self._encoder is not None:
            self._vectors.update(zip(new, self._encoder.encode(new), strict=True))

    def close(self, text: str, answer: str) -> bool:
        return self._encoder is None or float(products(self._vectors[text], self._vectors[answer])) >= self._screen


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word.casefold()) for word in words_of(text))


def candidate_spans(hint: str, longest: int) -> list[str]:
    """Return the distinct spans of up to ``longest`` words that neither begin nor end with a stop word, in order."""
    offsets = word_spans(hint)
    inner = [hint[start:end].casefold() not in STOP_WORDS for start, end in offsets]
    spans: dict[str, None] = {}
    for length in range(1, longest + 1):
        for first in range(len(offsets) - length + 1):
            last = first + length - 1
            if inner[first] and inner[last]:
                spans[hint[offsets[first][0] : offsets[last][1]]] = None
    return list(spans)
