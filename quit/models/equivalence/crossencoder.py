"""The neural half of the embedded equivalence: layers of MiniLM, fine-tuned to read question, reference and candidate
at once.

The sequence is ``[CLS] question [SEP] reference [SEP] candidate [SEP]``; the candidate is segment 1. On top of MiniLM's
own embeddings, which stay as published and are not stored again, every word piece of the reference and of the candidate
carries a *match* embedding: whether the same piece is in the other answer, in the question, in both, or nowhere.
Small models copy badly; telling them what is repeated is worth more than another layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import nn
from torch.nn import functional

from quit.models.limits import CANDIDATE, QUESTION, REFERENCE
from quit.models.linear import exact_linear, tanh
from quit.models.minilm.encoder import word_pieces
from quit.models.minilm.layers import WIDTH, Body
from quit.models.minilm.packed import Pieces

CLS, SEP = 101, 102


class Tokenizer:
    """MiniLM's word pieces, without special tokens; texts seen lately are remembered."""

    def __init__(self) -> None:
        fast = word_pieces()
        self._pieces = lru_cache(maxsize=20_000)(lambda text: tuple(fast.encode(text, add_special_tokens=False).ids))

    def sequence(self, question: str, reference: str, candidate: str) -> Pieces:
        """Return one input: word piece ids, segments (0 or 1) and matches (0 to 3), all of one length."""
        question_ids = self._pieces(question)[:QUESTION]
        reference_ids = self._pieces(reference)[:REFERENCE]
        candidate_ids = self._pieces(candidate)[:CANDIDATE]

        def matches(pieces: Sequence[int], other: Sequence[int]) -> list[int]:
            in_question, in_other = set(question_ids), set(other)
            return [(piece in in_other) + 2 * (piece in in_question) for piece in pieces]

        return (
            [CLS, *question_ids, SEP, *reference_ids, SEP, *candidate_ids, SEP],
            [0] * (len(question_ids) + len(reference_ids) + 3) + [1] * (len(candidate_ids) + 1),
            [0] * (len(question_ids) + 2)
            + matches(reference_ids, candidate_ids)
            + [0]
            + matches(candidate_ids, reference_ids)
            + [0],
        )


class CrossEncoder(Body):
    """Word pieces to one logit; positive means equivalent. ``layers`` are the numbers of the MiniLM layers it keeps."""

    def __init__(self, layers: Sequence[int]) -> None:
        super().__init__(layers)
        self.pool = nn.Linear(2 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 1)

    def head_of(self, pooled: torch.Tensor) -> torch.Tensor:
        """Return logits, shape (rows,), of first and mean states, shape (rows, 2 * WIDTH)."""
        hidden = functional.dropout(tanh(exact_linear(self.pool, pooled)), self.drop, self.training)
        return exact_linear(self.head, hidden).squeeze(1)
