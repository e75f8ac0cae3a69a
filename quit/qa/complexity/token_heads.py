"""The token head of retrieval complexity that needs a model: late interaction by a checkpoint such as ColBERT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quit.common.arithmetic import maxsim
from quit.qa.indexes.encoders import ColbertEncoder


class Colbert:
    """Rel(d, t) by a late-interaction checkpoint, such as ColBERT: the largest cosine of token t with a token of d, 0
    where that is negative.

    Tokens are the checkpoint's own for a query, its marks included, without the masks that pad a query.
    """

    def __init__(self, encoder: ColbertEncoder) -> None:
        self._encoder = encoder
        self._tokens: dict[str, np.ndarray] = {}
        self.identity = f"colbert+{encoder.identity}"

    def prepare(self, texts: Sequence[str]) -> None:
        """Forget documents that are not among the texts."""
        self._tokens = {text: self._tokens[text] for text in texts if text in self._tokens}

    def relevance(self, question: str, texts: Sequence[str]) -> np.ndarray:
        """See :class:`TokenHead`."""
        for module in self._encoder.model:
            if hasattr(module, "query_expansion"):
                module.query_expansion = None
        for text in texts:
            if text not in self._tokens:  # one at a time: padding would change the last bits
                [self._tokens[text]] = self._encoder.documents([text])
        [query] = self._encoder.queries([question])
        return np.clip(maxsim(query, [self._tokens[text] for text in texts]), 0.0, None)
