"""Vectors of answers: what an encoder makes of a few words, in statements about them and token by token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quit.common.arithmetic import unit
from quit.models.protocols import Encoder

NAME: tuple[str, ...] = ("{}",)
STATEMENTS = ("It is {}.", "This is about {}.", "What is known about {}?")
"""Templates. A bare name is far from the sentences the encoder was trained on; a mean over these moves it nearer."""
_AT_ONCE = 1024
"""Answers encoded at once: full float32 token vectors of a large pool would not fit into memory."""


def template_vectors(encoder: Encoder, answers: Sequence[str], templates: Sequence[str]) -> np.ndarray:
    """Return the unit mean of each answer's vectors over ``templates``, each with ``{}``: shape (answers, dimension),
    float32."""
    vectors = encoder.encode([template.replace("{}", answer) for template in templates for answer in answers])
    total = np.sum(vectors.reshape(len(templates), len(answers), vectors.shape[1]), axis=0, dtype=np.float32)
    return unit(np.asarray(total))


def token_vectors(encoder: Encoder, answers: Sequence[str], max_tokens: int) -> list[np.ndarray]:
    """Return the first ``max_tokens`` unit token vectors of each answer, shapes (tokens, dimension), float16."""
    return [
        tokens[:max_tokens].astype(np.float16) if len(tokens) else np.zeros((1, encoder.dimension), np.float16)
        for start in range(0, len(answers), _AT_ONCE)
        for tokens in encoder.encode_tokens(answers[start : start + _AT_ONCE])
    ]
