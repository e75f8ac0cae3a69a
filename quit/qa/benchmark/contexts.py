"""From ranked passages to a reader's context: Union_norm and Union_freq (paper, section 5.4, equation 1).

Passages of one question are made of the same hints, so joining them would repeat sentences. Both methods keep each
sentence once.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

Sentences = tuple[str, ...]


def union_norm(passages: Sequence[Sentences]) -> Sentences:
    """Return the union of the passages' sentences, in order of first occurrence."""
    return tuple(dict.fromkeys(sentence for passage in passages for sentence in passage))


def union_freq(passages: Sequence[Sentences], alpha: float, beta: float, max_sentences: int = 0) -> Sentences:
    """Return the union by descending score(s) = alpha * sum of 1 / rank(P) + beta * sum of 1 / pos_P(s), over passages
    P that hold s.

    Ranks and positions count from 1; a sentence twice in one passage counts at its first position. Scores are exact, of
    the weights as written (0.6 is 3/5), so rounding decides nothing: ties keep the order of ``union_norm``.
    ``max_sentences``: how many are kept (0: all).
    """
    of_rank, of_position = Fraction(str(alpha)), Fraction(str(beta))
    score: dict[str, Fraction] = {}
    for rank, passage in enumerate(passages, start=1):
        position = {
            sentence: rank_in_passage for rank_in_passage, sentence in reversed(list(enumerate(passage, start=1)))
        }
        for sentence in dict.fromkeys(passage):
            score[sentence] = score.get(sentence, 0) + of_rank / rank + of_position / position[sentence]
    sentences = sorted(score, key=lambda sentence: -score[sentence])
    return tuple(sentences[:max_sentences] if max_sentences else sentences)


class ContextKind(NamedTuple):
    """The context that the first ``k`` passages give by a ``strategy``; the rest: see :func:`union_freq`."""

    strategy: Literal["norm", "freq"]
    k: int
    alpha: float
    beta: float
    max_sentences: int = 0

    def context(self, passages: Sequence[Sentences]) -> Sentences:
        """Return the context of ranked passages, as sentences; empty where there are none."""
        first = passages[: self.k]
        return union_norm(first) if self.strategy == "norm" else union_freq(first, *self[2:])
