"""The neural half of the embedded equivalence: layers of MiniLM, fine-tuned to read question, reference and candidate
at once.

The sequence is ``[CLS] question [SEP] reference [SEP] candidate [SEP]``; the candidate is segment 1. On top of MiniLM's
own embeddings, which stay as published and are not stored again, every word piece of the reference and of the candidate
carries a *match* embedding: whether the same piece stands in the other answer, in the question, in both, or nowhere.
Small models copy badly; telling them what is repeated is worth more than another layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import nn
from torch.nn import functional

from quit.models.encoders.minilm import word_pieces
from quit.models.finetune import WIDTH, Body

CLS, SEP = 101, 102
QUESTION, REFERENCE, CANDIDATE = 32, 24, 64
"""Most word pieces that are read of each part."""


@dataclass(frozen=True, slots=True)
class Sequence3:
    """One input: word piece ids, segment ids (0 or 1) and match ids (0 to 3), all of one length."""

    ids: list[int]
    segments: list[int]
    matches: list[int]


class Tokenizer:
    """MiniLM's word pieces, without special tokens; texts seen lately are remembered."""

    def __init__(self) -> None:
        fast = word_pieces()
        self._pieces = lru_cache(maxsize=20_000)(lambda text: tuple(fast.encode(text, add_special_tokens=False).ids))

    def sequence(self, question: str, reference: str, candidate: str) -> Sequence3:
        asked = self._pieces(question)[:QUESTION]
        gold = self._pieces(reference)[:REFERENCE]
        said = self._pieces(candidate)[:CANDIDATE]
        in_question, in_gold, in_said = set(asked), set(gold), set(said)

        def match(piece: int, other: set[int]) -> int:
            return (piece in other) + 2 * (piece in in_question)

        return Sequence3(
            [CLS, *asked, SEP, *gold, SEP, *said, SEP],
            [0] * (len(asked) + len(gold) + 3) + [1] * (len(said) + 1),
            [0] * (len(asked) + 2)
            + [match(piece, in_said) for piece in gold]
            + [0]
            + [match(piece, in_gold) for piece in said]
            + [0],
        )


class CrossEncoder(Body):
    """Word pieces to one logit; positive means equivalent. ``layers`` are the numbers of the MiniLM layers it keeps."""

    def __init__(self, layers: Sequence[int]) -> None:
        super().__init__(layers)
        self.pool = nn.Linear(2 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 1)

    def forward(
        self, ids: torch.Tensor, segments: torch.Tensor, matches: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Return logits, shape (rows,). All inputs have shape (rows, length); ``mask`` is True at real pieces."""
        return self.head_of(self.pooled(ids, segments, matches, mask))

    def head_of(self, pooled: torch.Tensor) -> torch.Tensor:
        """Return logits, shape (rows,), of first and mean states, shape (rows, 2 * WIDTH)."""
        hidden = functional.dropout(torch.tanh(self.pool(pooled)), self.drop, self.training)
        return self.head(hidden).squeeze(1)


def collate(batch: Sequence[Sequence3], length: int) -> tuple[torch.Tensor, ...]:
    """Return (ids, segments, matches, mask) of shape (rows, length), for training."""
    parts = torch.zeros(3, len(batch), length, dtype=torch.long)
    mask = torch.zeros(len(batch), length, dtype=torch.bool)
    for row, item in enumerate(batch):
        size = len(item.ids)
        parts[0, row, :size] = torch.tensor(item.ids)
        parts[1, row, :size] = torch.tensor(item.segments)
        parts[2, row, :size] = torch.tensor(item.matches)
        mask[row, :size] = True
    return parts[0], parts[1], parts[2], mask
