"""The neural half of the question type classifier. Apart from :mod:`.question_type`, so that importing that costs no torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from quit.models.finetune import WIDTH, Body


class QuestionNet(Body):
    """MiniLM with a linear layer on its first and mean state: word pieces to one logit a label."""

    def __init__(self, labels: int) -> None:
        super().__init__(range(6))
        self.head = torch.nn.Linear(2 * WIDTH, labels)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return logits, shape (rows, labels); ids and mask have shape (rows, length)."""
        none = torch.zeros_like(ids)
        pooled = torch.nn.functional.dropout(self.pooled(ids, none, none, mask), self.drop, self.training)
        return self.head(pooled)


def collate(batch: Sequence[Sequence[int]], length: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (ids, mask) of shape (rows, length); rows past the batch are blank but for one visible piece."""
    ids = torch.zeros(rows, length, dtype=torch.long)
    mask = torch.zeros(rows, length, dtype=torch.bool)
    mask[len(batch) :, 0] = True
    for row, item in enumerate(batch):
        ids[row, : len(item)] = torch.tensor(item)
        mask[row, : len(item)] = True
    return ids, mask
