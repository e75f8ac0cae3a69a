"""Reference-based retrieval complexity (Gabburo et al. 2024): is a question answered by one retrieved document, or at
least by all of them together?

One implementation for the difficulty of our own questions (:mod:`quit.stages.questions.difficulty`) and for
``quit complexity run``. The paper's relevance model has two heads: how likely a document holds a correct answer (s_i, a
protocol), and how relevant it is to each token of the question (Rel(d_i, t_j), late interaction).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from quit.common.arithmetic import log, maxsim, products
from quit.models.protocols import Encoder
from quit.text.answers import answer_key

UNRELATED, TELLING = 0.1, 0.6
"""Cosines of a text and an answer. MiniLM on TriviaHG: a hint retrieved by chance is at about 0.1 from an answer, one
that speaks of it at 0.5 and more."""


class AnswerHead(Protocol):
    """s_i: how likely each document holds a correct answer to a question, given its reference answers."""

    identity: str

    def scores(self, question: str, answers: Sequence[str], texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
        """Return one score per text, shape (len(texts),), float64 in [0, 1]. ``vectors``: the texts' unit vectors."""


class ContainedOrNear:
    """1 for a text that contains an answer, else its cosine to one, linear from 0 at :data:`UNRELATED` to 1 at
    :data:`TELLING`."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.identity = f"contained-or-near/{UNRELATED:g}-{TELLING:g}+{encoder.identity}"

    def scores(self, question: str, answers: Sequence[str], texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
        """Return s_i of each text; without answers all are 0."""
        if not answers or not len(texts):
            return np.zeros(len(texts))
        near = products(vectors, self._encoder.encode(list(answers))).max(axis=1)
        scores = np.clip((near - UNRELATED) / (TELLING - UNRELATED), 0.0, 1.0)
        return np.where(contains_answer(texts, answers), 1.0, scores)


class TokenHead(Protocol):
    """Rel(d, t): how relevant documents are to each token of a question."""

    identity: str

    def prepare(self, texts: Sequence[str]) -> None:
        """Get ready for these questions and documents, if that is quicker than one by one; changes no result."""

    def relevance(self, question: str, texts: Sequence[str]) -> np.ndarray:
        """Return shape (len(texts), tokens of the question), not negative."""


class LateInteraction:
    """Rel(d, t): the largest cosine of token t with a token of d, 0 where that is negative."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.identity = f"late-interaction+{encoder.identity}"

    def prepare(self, texts: Sequence[str]) -> None:
        """Encode texts together, which is several times faster than few at a time; the encoder remembers them."""
        self._encoder.encode_tokens(texts)

    def relevance(self, question: str, texts: Sequence[str]) -> np.ndarray:
        """Return shape (len(texts), tokens of the question); a text without tokens is relevant to none of them."""
        query, *passages = self._encoder.encode_tokens([question, *texts])
        return np.clip(maxsim(query, passages), 0.0, None)


def contains_answer(texts: Sequence[str], answers: Sequence[str]) -> np.ndarray:
    """Return whether each text contains an answer that is not blank: by keys, on word boundaries."""
    keys = [f" {key} " for answer in answers if (key := answer_key(answer))]
    text_keys = [f" {answer_key(text)} " for text in texts]
    return np.array([any(key in text for key in keys) for text in text_keys], dtype=bool)


def normalised_entropy(relevance: np.ndarray) -> np.ndarray:
    """Return H_i of each document, shape (documents,), 0 to 1; ``relevance``: Rel(d_i, t_j), shape (documents, |Q|).

    p_ij = Rel(d_i, t_j) / sum_j Rel(d_i, t_j); H_i = -sum_j p_ij ln p_ij / ln |Q|. The entropy is reconstructed from
    the paper's prose; its printed formula is not legible. |Q| <= 1: H_i = 1. A document relevant to no token: H_i = 0.
    """
    documents, tokens = relevance.shape
    if tokens <= 1:
        return np.ones(documents)
    entropies = np.zeros(documents)
    for document, row in enumerate(relevance):
        total = row.sum()
        if total > 0:
            share = row / total
            share = share[share > 0]
            entropies[document] = float(-(share * log(share)).sum() / math.log(tokens))
    return entropies


def completeness(relevance: np.ndarray) -> float:
    """Return S_D, the mean of H_i over the documents; 0 without documents."""
    return float(np.mean(normalised_entropy(relevance))) if len(relevance) else 0.0


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A question's retrieved documents in figures.

    ``answerability``: max s_i. ``answer_share``: share of documents with s_i of T_ans and more. ``completeness``: S_D.
    ``similarity``: mean cosine of question and documents. ``documents``: how many there are. Without documents all are
    0.
    """

    answerability: float
    answer_share: float
    completeness: float
    similarity: float
    documents: int


def measure(
    question: str,
    answers: Sequence[str],
    texts: Sequence[str],
    vectors: np.ndarray,
    question_vector: np.ndarray,
    answer_head: AnswerHead,
    token_head: TokenHead,
    t_ans: float,
) -> Retrieved:
    """Return what the retrieved ``texts`` are worth. ``vectors``: their unit vectors."""
    if not len(texts):
        return Retrieved(0.0, 0.0, 0.0, 0.0, 0)
    scores = answer_head.scores(question, answers, texts, vectors)
    return Retrieved(
        float(scores.max()),
        float((scores >= t_ans).mean()),
        completeness(token_head.relevance(question, texts)),
        float(products(vectors, question_vector).mean()),
        len(texts),
    )
