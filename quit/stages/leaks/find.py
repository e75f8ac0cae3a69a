"""Which spans of a hint give an answer away (paper, section 3.1.2): rules, the equivalence model, and what people said.

``leakage.method = "bem"``, the paper's: the equivalence model judges every word of a hint except stop words against
each answer; words of the question count, and nothing else does. ``"full"``, ours: lexical rules find what needs no
model, and the model is asked about words and spans that are near an answer. Every finding keeps its span, answer,
probability and rule, so that a person can see why, and overrule it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from quit.models.protocols import Encoder, Equivalence, Pair
from quit.settings import Leakage
from quit.stages.leaks.containment import content_words, is_word_of, stands_in_a_passage
from quit.stages.leaks.rules import VERSION, for_rules_alone, lexical_leaks
from quit.text.normalize import STOP_WORDS, normalize_answer, stem, word_spans
from quit.text.normalize import words as words_of

RULES_IDENTITY = f"lexical-rules/{VERSION}"
WORDS_IDENTITY = "hint-words/1"
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


@dataclass(frozen=True, slots=True)
class Override:
    """What a person said of one hint; ``span`` and ``answer`` None: any. ``leaks`` is the decision."""

    leaks: bool
    span: str | None = None
    answer: str | None = None

    def meets(self, span: str, answer: str) -> bool:
        """Whether it speaks of this span and answer, as they are compared everywhere (case and articles do not
        count)."""
        pairs = ((self.span, span), (self.answer, answer))
        return all(mine is None or normalize_answer(mine) == normalize_answer(other) for mine, other in pairs)


def overrides_by_hint(overrides: pa.Table | None) -> dict[str, list[Override]]:
    """Return hint id -> what people said of it, from the rows of the table ``overrides`` in force and of kind
    ``leak``."""
    said: dict[str, list[Override]] = {}
    for row in overrides.to_pylist() if overrides is not None else ():
        override = Override(row["decision"] == "leak", row["span"], row["answer"])
        said.setdefault(row["hint_id"], []).append(override)
    return said


@dataclass(frozen=True, slots=True)
class LeakItem:
    """One question to check: ``answers`` are all its valid answers, ``overrides`` what people said of each hint (none:
    nothing).

    ``hint_ids`` are there for whoever has to look the overrides up.
    """

    question: str
    answers: Sequence[str]
    hints: Sequence[str]
    overrides: Sequence[Sequence[Override]] = ()
    hint_ids: Sequence[str] = ()

    def said(self) -> Sequence[Sequence[Override]]:
        """Return the overrides of each hint."""
        return self.overrides or [()] * len(self.hints)


def find_leaks(
    question: str,
    answers: Sequence[str],
    hints: Sequence[str],
    equivalence: Equivalence | None,
    encoder: Encoder | None,
    settings: Leakage,
    overrides: Sequence[Sequence[Override]] | None = None,
) -> list[list[Finding]]:
    """Return the findings of each hint, most certain first, overridden ones last.

    ``answers``: all valid answers of the question. ``overrides``: what people said of each hint.
    """
    return find_leaks_of([LeakItem(question, answers, hints, overrides or ())], equivalence, encoder, settings)[0]


def find_leaks_of(
    items: Sequence[LeakItem], equivalence: Equivalence | None, encoder: Encoder | None, settings: Leakage
) -> list[list[list[Finding]]]:
    """Return what :func:`find_leaks` returns of each item. Models get the texts of all items at once, which is far
    quicker.

    Without models, rules alone find leaks (with ``bem``: words that are the answer itself).
    """
    certain, ask = (_same_words, _ask_words) if settings.method == "bem" else (_by_rules, _ask)
    found = [[certain(item, hint, said) for hint, said in zip(item.hints, item.said(), strict=True)] for item in items]
    asked = [] if equivalence is None else ask(items, found, encoder, settings)
    if asked and equivalence is not None:
        pairs = [Pair(items[place].question, answer, span) for place, _, span, answer in asked]
        for (place, row, span, answer), probability in zip(asked, equivalence.probability(pairs), strict=True):
            known = any((leak.span, leak.answer) == (span, answer) for leak in found[place][row])
            if probability >= settings.threshold and not known:
                leak = Finding(span, answer, float(probability), "equivalence", equivalence.identity)
                found[place][row].append(_judged(leak, items[place].said()[row]))
    if settings.contained and settings.method == "full":
        for item, rows in zip(items, found, strict=True):
            _add_contained(item, rows)
    return [[sorted(leaks, key=lambda leak: (leak.overridden, -leak.probability)) for leaks in rows] for rows in found]


def _add_contained(item: LeakItem, found: list[list[Finding]]) -> None:
    """Add a finding where an answer is in a hint as letters and nothing else was found to give it away there.

    A passage joins hints by spaces, so an answer can also begin at the end of one hint and continue at the start of
    another; the finding is then the first one's.
    """
    said = item.said()
    for answer in item.answers:
        within = [row for row, hint in enumerate(item.hints) if stands_in_a_passage(answer, [hint])]
        across = () if within else stands_in_a_passage(answer, item.hints) or ()
        for row in within or across[:1]:
            if not any(leak.answer == answer for leak in found[row]):
                found[row].append(_judged(Finding(answer, answer, 1.0, CONTAINED, RULES_IDENTITY), said[row]))


def _same_words(item: LeakItem, hint: str, overrides: Sequence[Override]) -> list[Finding]:
    """Return what people find in one hint, and its words that are an answer: those no model need judge."""
    hits = _said_by_people(hint, item.answers, overrides)
    for answer in item.answers:
        known = {(finding.span, finding.answer) for finding in hits}
        hits += [
            Finding(word, answer, 1.0, "exact", WORDS_IDENTITY)
            for word in content_words(hint)
            if is_word_of(answer, word) and (word, answer) not in known
        ]
    return [_judged(finding, overrides) for finding in hits]


def _ask_words(
    items: Sequence[LeakItem], found: Sequence[Sequence[Sequence[Finding]]], encoder: Encoder | None, settings: Leakage
) -> list[tuple[int, int, str, str]]:
    """Return (item, hint, word, answer) for the equivalence model: every word of every hint with each answer."""
    return [
        (position, row, word, answer)
        for position, item in enumerate(items)
        for row, hint in enumerate(item.hints)
        for word in content_words(hint)
        for answer in item.answers
        if not any((leak.span, leak.answer) == (word, answer) for leak in found[position][row])
    ]


def _by_rules(item: LeakItem, hint: str, overrides: Sequence[Override]) -> list[Finding]:
    """Return what people and the lexical rules find in one hint."""
    hits = _said_by_people(hint, item.answers, overrides)
    for answer in item.answers:
        known = {(finding.span, finding.answer) for finding in hits}
        hits += [
            Finding(hit.span, answer, 1.0, hit.rule, RULES_IDENTITY)
            for hit in lexical_leaks(hint, answer, item.question)
            if (hit.span, answer) not in known
        ]
    return [_judged(finding, overrides) for finding in hits]


def _said_by_people(hint: str, answers: Sequence[str], overrides: Sequence[Override]) -> list[Finding]:
    """Return what people call leaks; where they name no span or answer, the whole hint or the first answer stands for
    it."""
    named = {(one.span or hint, one.answer or answers[0]) for one in overrides if one.leaks}
    return [Finding(span, answer, 1.0, PERSON, PERSON) for span, answer in sorted(named)]


def _judged(finding: Finding, overrides: Sequence[Override]) -> Finding:
    """Return the finding as people see it: the override that names most of it counts, of two equal ones the one that
    calls it a leak."""
    about = [one for one in overrides if one.meets(finding.span, finding.answer)]
    if finding.method == PERSON or not about:
        return finding
    ruling = max(about, key=lambda one: ((one.span is not None) + (one.answer is not None), one.leaks))
    return finding if ruling.leaks else replace(finding, overridden=True)


def _ask(
    items: Sequence[LeakItem], found: Sequence[Sequence[Sequence[Finding]]], encoder: Encoder | None, settings: Leakage
) -> list[tuple[int, int, str, str]]:
    """Return (item, hint, span, answer) for the equivalence model: spans near an answer, in hints in which no finding
    stands.

    Words that the question uses, and words of a longer answer itself, are not asked about: whether a part of a name
    gives it away is for the lexical rules to say ("canal" does not give away Panama Canal).
    """
    near = _Nearness(encoder if settings.screen > -1 else None, settings.screen)
    open_words = [
        {
            row: candidate_spans(item.hints[row], 1)
            for row, leaks in enumerate(rows)
            if all(one.overridden for one in leaks)
        }
        for item, rows in zip(items, found, strict=True)
    ]
    near.learn(
        [
            text
            for item, rows in zip(items, open_words, strict=True)
            for text in (*item.answers, *chain.from_iterable(rows.values()))
        ]
    )
    spans: list[tuple[int, int, str, str]] = []
    for place, (item, rows) in enumerate(zip(items, open_words, strict=True)):
        asked_words = _stems(item.question)
        for answer in item.answers:
            own = _stems(answer)
            longest = max(1, len(word_spans(answer))) if settings.spans else 1
            for row, single in rows.items():
                # A span of several words is worth asking about only if one of its words is near the answer.
                close = {word for word in single if near.close(word, answer)}
                for span in candidate_spans(item.hints[row], longest) if close else ():
                    words = _stems(span)
                    if words <= asked_words or words <= own or close.isdisjoint(words_of(span)):
                        continue
                    if not for_rules_alone(span, answer):
                        spans.append((place, row, span, answer))
    near.learn([span for _, _, span, _ in spans])
    return [one for one in spans if near.close(one[2], one[3])]


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
        return self._encoder is None or float(np.dot(self._vectors[text], self._vectors[answer])) >= self._screen


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
