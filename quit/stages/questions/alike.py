"""Questions that ask the same, in nearly the same words or in others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from quit.common.arithmetic import products
from quit.common.rows import Row, grouped
from quit.models.protocols import Encoder
from quit.text.answers import answer_key
from quit.text.normalize import normalize_question
from quit.text.tokens import STOP_WORDS

PARAPHRASE = 0.8
"""Cosine of two questions from which one may paraphrase the other."""


def paraphrases(questions: pa.Table, encoder: Encoder) -> list[tuple[Row, Row]]:
    """Return pairs of questions (question_id, question, answers) that share a gold answer and whose vectors are near:
    in two splits, one may tell the other's answer. Pairs of equal words are among them."""
    by_key = grouped((key, row) for row in questions.to_pylist() for key in {*map(answer_key, row["answers"])})
    groups = [rows for rows in by_key.values() if len(rows) > 1]
    texts = list(dict.fromkeys(row["question"] for rows in groups for row in rows))
    vectors = dict(zip(texts, encoder.encode(texts), strict=True)) if texts else {}
    pairs = {}
    for rows in groups:
        of_rows = np.stack([vectors[row["question"]] for row in rows])
        for first, other in np.argwhere(np.triu(products(of_rows, of_rows), 1) >= PARAPHRASE).tolist():
            pairs[rows[first]["question_id"], rows[other]["question_id"]] = rows[first], rows[other]
    return [pairs[key] for key in sorted(pairs)]


class PlacedQuestion(NamedTuple):
    """A question of a split; ``is_pinned``: an earlier release has it there."""

    question_id: str
    question: str
    split: str
    is_pinned: bool = False


def near_identical(
    questions: Sequence[PlacedQuestion], threshold: float
) -> list[tuple[PlacedQuestion, PlacedQuestion]]:
    """Return (the one to leave out, the other) for near-identical questions on both sides of train | dev, test.

    ``threshold``: Jaccard index of their words, above 0 and at most 1. The one of train is left out, unless it alone is
    pinned. Every such pair is there, in the order of ``questions``.

    Only pairs that share a word of their prefixes are compared (Chaudhuri, Ganti and Kaushik, 2006: A Primitive
    Operator for Similarity Joins in Data Cleaning). Of two sets with index t or more, each shares ceil(t * its size)
    words with the other, so with its words in one order (rarest first, to compare few) the first shared word is among
    the size - ceil(t * size) + 1 first of both.
    """
    words_of = [_content_words(question.question) for question in questions]
    questions_with = Counter(word for words in words_of for word in words)
    prefixes = []
    for words in words_of:
        rarest_first = sorted(words, key=lambda word: (questions_with[word], word))
        prefixes.append(rarest_first[: len(words) - math.ceil(threshold * len(words)) + 1])
    in_train = grouped(
        (word, place)
        for place, question in enumerate(questions)
        if question.split == "train"
        for word in prefixes[place]
    )
    pairs = []
    for place, question in enumerate(questions):
        if question.split != "train":
            for other in {other for word in prefixes[place] for other in in_train.get(word, ())}:
                shared, either = words_of[place] & words_of[other], words_of[place] | words_of[other]
                if len(shared) >= threshold * len(either):
                    pairs.append((other, place))
    leaving = [pair for pair in pairs if questions[pair[0]].is_pinned and not questions[pair[1]].is_pinned]
    left = {other for _, other in leaving}  # nobody gives way to what leaves itself
    staying = [(other, first) for first, other in pairs if other not in left]
    ordered = sorted([*leaving, *staying], key=sorted)
    return [(questions[loser], questions[other]) for other, loser in ordered]


def _content_words(question: str) -> frozenset[str]:
    words = frozenset(normalize_question(question).split())
    return words - STOP_WORDS or words
