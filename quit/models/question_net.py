"""The neural half of the question type classifier, apart from :mod:`.question_type`, whose import costs no torch."""

from __future__ import annotations

import torch

from quit.models.minilm_layers import WIDTH, Body


class QuestionNet(Body):
    """MiniLM with a linear layer on its first and mean state: word pieces to one logit per label."""

    def __init__(self, labels: int) -> None:
        super().__init__(range(6))
        self.head = torch.nn.Linear(2 * WIDTH, labels)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)

    def head_of(self, pooled: torch.Tensor) -> torch.Tensor:
        """Return logits, shape (rows, labels), of first and mean states, shape (rows, 2 * WIDTH)."""
        return self.head(torch.nn.functional.dropout(pooled, self.drop, self.training))
