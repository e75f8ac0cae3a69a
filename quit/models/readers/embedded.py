"""The embedded readers score a closed set of answers part by part, or say NO ANSWER.

They need no server and no download, and reply the same on every machine (:mod:`quit.common.arithmetic` says which).

A passage is never encoded. Its parts are: the question and its hints. Each part scores every answer once; a
passage's scores are a weighted sum of its parts', the weights following each hint's position. So the 325 passages of a
question cost six encodings and a few additions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from quit.common.arithmetic import on_grid, products
from quit.common.rows import grouped
from quit.models.protocols import NO_ANSWER, Encoder, Prompt, Reply
from quit.models.readers.methods import Late, Method, embedded_method
from quit.models.readers.pool import AnswerPool
from quit.text.names import names_in
from quit.text.tokens import STOP_WORDS, words

QUESTIONS_AT_ONCE = 64
"""Questions whose texts are encoded in one go."""
ANSWERS_AT_ONCE = 2000
"""Answers whose tokens are compared in one go, so that a pool of any size fits."""


class Key(NamedTuple):
    """What prompts that share their answers and scores have in common: a question and its type."""

    question: str
    coarse: str | None
    fine: str | None


class EmbeddedReader:
    """A reader that picks one of a closed set of answers by ``method``."""

    def __init__(self, method: Method, encoder: Encoder, pool: AnswerPool) -> None:
        self.name = method.name
        self.method = method
        self.encoder = encoder
        self.pool = pool
        self._pool_words = _AnswerWords(pool.answers)

    @property
    def identity(self) -> str:
        """Method with its parameters, encoder and pool: whatever can change a reply."""
        return f"{self.method.describe()}/{self.pool.identity}+{self.encoder.identity}"

    def answer(self, prompts: Sequence[Prompt], sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order. ``sample`` is ignored: the same prompt always gets the same reply."""
        groups = grouped((Key(prompt.question, prompt.coarse, prompt.fine), row) for row, prompt in enumerate(prompts))
        replies: list[Reply | None] = [None] * len(prompts)
        keys = list(groups)
        for start in range(0, len(keys), QUESTIONS_AT_ONCE):
            part = keys[start : start + QUESTIONS_AT_ONCE]
            self._warm([text for key in part for text in _parts(key, [prompts[row].hints for row in groups[key]])])
            for key in part:
                passages = [prompts[row].hints for row in groups[key]]
                for row, reply in zip(groups[key], self._replies(key, passages), strict=True):
                    replies[row] = reply
        return [reply for reply in replies if reply is not None]

    def _warm(self, texts: Sequence[str]) -> None:
        """Encode the parts of several questions at once: a caching encoder then has them."""
        if self.method.late:
            self.encoder.encode_tokens(texts)
        self.encoder.encode([*texts, *(name for text in texts for name in self._names(text))])

    def _names(self, text: str) -> list[str]:
        return [] if self.method.names is None else names_in(text)

    def score_parts(self, texts: Sequence[str], rows: np.ndarray) -> list[np.ndarray]:
        """Return how well each answer at ``rows`` of the pool goes with each part, shapes (answers,), float32.

        A part's scores depend on its text and the answers alone, bit for bit.
        """
        method, vectors = self.method, self.pool.vectors(self.encoder, self.method.templates)[rows]
        usual = None if method.contrast is None else products(vectors, self.pool.background_mean(self.encoder))
        scores = []
        for text in texts:
            vector, *names = self.encoder.encode([text, *self._names(text)])
            if names:  # the mean of cosines is the cosine with the mean: one product per part
                vector = on_grid(vector + np.float32(method.names) * np.stack(names).mean(axis=0))
            score = products(vectors, vector)
            if usual is not None:
                score -= np.float32(method.contrast) * usual
            if softmax := method.softmax:
                weight = np.exp((score - score.max()) / np.float32(softmax.temperature))
                relative = np.float32(1 - softmax.doubt) * (weight / weight.sum()) * np.float32(len(score))
                score = np.log(relative + np.float32(softmax.doubt))
            scores.append(score)
        return scores if method.late is None else self._late(method.late, scores, texts, rows)

    def _late(
        self, late: Late, scores: Sequence[np.ndarray], texts: Sequence[str], rows: np.ndarray
    ) -> list[np.ndarray]:
        """Return ``late.whole`` times the scores, plus the mean of each answer token's best cosine with a token of
        the part and the mean of the reverse."""
        scores = [np.float32(late.whole) * score for score in scores]
        flat, starts = self.pool.tokens(self.encoder, late.longest)
        of_parts = self.encoder.encode_tokens(texts)
        ends = np.cumsum([len(of_part) for of_part in of_parts])
        for start in range(0, len(rows), ANSWERS_AT_ONCE):
            block = rows[start : start + ANSWERS_AT_ONCE]
            lengths = starts[block + 1] - starts[block]
            offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
            index = np.repeat(starts[block] - offsets, lengths) + np.arange(lengths.sum())
            by_part = np.split(products(flat[index], np.concatenate(of_parts)), ends[:-1], axis=1)
            for score, similar in zip(scores, by_part, strict=True):
                if not similar.size:
                    continue
                of_tokens = np.add.reduceat(similar.max(axis=1), offsets) / lengths.astype(np.float32)
                coverage = np.maximum.reduceat(similar, offsets, axis=0).mean(axis=1)
                score[start : start + ANSWERS_AT_ONCE] += of_tokens + coverage
        return scores

    def _replies(self, key: Key, passages: Sequence[tuple[str, ...]]) -> list[Reply]:
        rows = self.pool.rows(key.coarse, key.fine)
        question, *hints = _parts(key, passages)
        column = {hint: index + 1 for index, hint in enumerate(hints)}
        scores = np.stack(self.score_parts((question, *hints), rows))
        shares = np.stack([self._pool_words.share_in(text)[rows] for text in (question, *hints)])
        penalties = np.float32(self.method.named_penalty) * shares**2
        columns_of = [tuple(column[hint] for hint in passage) for passage in passages]
        replies: dict[tuple[int, ...], Reply] = {}
        for columns, totals in self._totals(scores, columns_of):
            # An answer is set back by the part that names most of it.
            highest = {part: penalties[[0, *part]].max(axis=0) for part in {frozenset(each) for each in columns}}
            totals = totals - np.stack([highest[frozenset(each)] for each in columns])
            replies.update(zip(columns, self._chosen(totals, rows, len(columns[0])), strict=True))
        return [replies[columns] for columns in columns_of]

    def _totals(
        self, scores: np.ndarray, columns_of: Sequence[tuple[int, ...]]
    ) -> Iterator[tuple[list[tuple[int, ...]], np.ndarray]]:
        """Yield the distinct passages of each length with their scores, float32, shape (passages, answers).

        ``scores``: of the question and the hints, shape (1 + hints, answers). Hints' weighted scores are added up in
        reading order: a passage's sum is that of its first hints plus the last one's, so passages share them as nodes
        of a trie do. Additions in a fixed order rather than a matrix product, whose rounding may differ with its size.
        """
        distinct = {*columns_of}
        nodes = sorted({columns[:end] for columns in distinct for end in range(len(columns) + 1)}, key=len)
        row_of: dict[tuple[int, ...], int] = {}
        totals = scores[:1]
        for length, group in groupby(nodes, len):
            level = list(group)
            if length == 0:
                sums = np.zeros_like(totals)
            else:
                weights = self._position_weights(length)
                before = sums[[row_of[columns[:-1]] for columns in level]]
                sums = before + weights[-1] * scores[[columns[-1] for columns in level]]
                totals = np.float32(self.method.question_weight) * scores[0] + sums / weights.sum(dtype=np.float32)
            row_of = {columns: row for row, columns in enumerate(level)}
            if level := [columns for columns in level if columns in distinct]:
                yield level, totals[[row_of[columns] for columns in level]]

    def _position_weights(self, hints: int) -> np.ndarray:
        """Return the relative weights of a passage's hints in reading order, shape (hints,), float32, first 1."""
        return (self.method.position_decay ** np.arange(hints, dtype=np.float64)).astype(np.float32)

    def _chosen(self, scores: np.ndarray, rows: np.ndarray, hints: int) -> Iterator[Reply]:
        """Yield the reply to each passage; ``scores``: shape (passages, answers); ``hints``: of each passage."""
        best = scores.argmax(axis=1)
        surfaces = [self.pool.answers[row] for row in rows[best].tolist()]
        if len(rows) == 1:
            yield from (Reply(raw=answer, answer=answer) for answer in surfaces)
            return
        least = self.method.no_answer_margin + self.method.thin_evidence * max(0, 5 - hints)
        for answer, lead in zip(surfaces, _leads(scores, best).tolist(), strict=True):
            if lead < least:
                yield Reply(raw=f"{NO_ANSWER} (best guess: {answer}, margin {lead:.2f})", answer=NO_ANSWER)
            else:
                yield Reply(raw=answer, answer=answer)


def embedded_reader(name: str, encoder: Encoder, pool: AnswerPool, **settings: Any) -> EmbeddedReader:
    """Return the embedded reader called ``name``; ``settings`` replace parameters of its :class:`Method`.

    Raises ``SettingsError`` where there is no such reader.
    """
    return EmbeddedReader(replace(embedded_method(name), **settings), encoder, pool)


def _leads(scores: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Return how far the best score of each row is ahead of the runner-up, in standard deviations of the row's scores:
    float64, shape (rows,)."""
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, best] = -np.inf
    lead = (scores[rows, best] - others.max(axis=1)).astype(np.float64)
    deviations = scores - scores.mean(axis=1, keepdims=True)
    squares = (deviations * deviations).sum(axis=1)
    spread = np.sqrt(squares / np.float32(scores.shape[1])).astype(np.float64)
    return np.divide(lead, spread, out=np.zeros_like(lead), where=spread > 0)


_POSSESSIVE = re.compile(r"['’]s$")


def content_words(text: str) -> frozenset[str]:
    """Return the words that name something: case-folded, without stop words, possessive and plural endings."""
    stems = {_POSSESSIVE.sub("", word).casefold() for word in words(text)} - STOP_WORDS
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in stems)


class _AnswerWords:
    """Which share of each answer's content words a text names."""

    def __init__(self, surfaces: Sequence[str]) -> None:
        contents = [content_words(surface) for surface in surfaces]
        self._lengths = np.array([max(1, len(content)) for content in contents], dtype=np.float32)
        self._answers_with = grouped((word, row) for row, content in enumerate(contents) for word in content)

    def share_in(self, text: str) -> np.ndarray:
        """Return the share of each answer's content words that ``text`` names, shape (answers,), float32."""
        counts = np.zeros_like(self._lengths)
        for word in content_words(text):
            counts[self._answers_with.get(word, [])] += 1
        return counts / self._lengths


def _parts(key: Key, passages: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the question and the distinct hints of its passages."""
    return [key.question, *dict.fromkeys(hint for passage in passages for hint in passage)]
