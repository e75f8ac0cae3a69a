"""Answer equivalence that ships with the project: no download, small, fast on a CPU.

Two kinds of evidence are joined: boosted trees over lexical features (:mod:`.features`), and a cross-encoder cut from
MiniLM and fine-tuned (:mod:`.crossencoder`). The cross-encoder, which takes nearly all the time, is asked only where it
can change a verdict: where the trees' log odds lie in a band that training found. ``training/equivalence.py`` makes the
weights from human verdicts; ``quit/models/weights/EQUIVALENCE.md`` is their model card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quit.common.arithmetic import arithmetic, exp
from quit.common.checksums import file_checksum
from quit.models import limits
from quit.models.equivalence.features import NAMES, lexical
from quit.models.equivalence.forms import clean, focus
from quit.models.loading import once
from quit.models.protocols import Pair

if TYPE_CHECKING:  # they need PyTorch, which few commands do
    from quit.models.equivalence.crossencoder import CrossEncoder, Tokenizer
    from quit.models.minilm.packed import Pieces

WEIGHTS = Path(__file__).parents[1] / "weights" / "equivalence.npz"
VERSION = 7
"""Rises whenever the same weights would give other probabilities."""

_EMPTY = NAMES.index("empty")


class EnsembleClassifier:
    """Trees, cross-encoder and last step, from arrays as ``training/equivalence.py`` makes them.

    Arrays that are not there yet (during training) are not needed by the methods that do without them.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays

    @once
    def _cross_encoder(self) -> tuple[CrossEncoder, Tokenizer]:
        from quit.models.equivalence.crossencoder import CrossEncoder, Tokenizer
        from quit.models.minilm.layers import restore

        net = CrossEncoder([int(layer) for layer in self._arrays["cross_layers"]])
        restore(net, self._arrays)
        return net, Tokenizer()

    def trees(self, x: np.ndarray) -> np.ndarray:
        """Return the log odds of the boosted trees for features of shape (pairs, len(NAMES)); shape (pairs,)."""
        arrays = self._arrays
        rows, columns = np.arange(len(x))[:, None], np.arange(len(arrays["tree_value"]))[None, :]
        at: np.ndarray = np.zeros((len(x), columns.size), dtype=np.int16)
        while True:
            goes_left = x[rows, arrays["tree_feature"][columns, at]] <= arrays["tree_threshold"][columns, at]
            children = np.where(goes_left, arrays["tree_left"][columns, at], arrays["tree_right"][columns, at])
            if (children == at).all():
                return arrays["tree_base"] + arrays["tree_value"][columns, at].sum(axis=1)
            at = children

    def cross(self, sequences: Sequence[Pieces]) -> np.ndarray:
        """Return the cross-encoder's log odds of inputs that its tokenizer made, shape (len(sequences),), float64."""
        from quit.models.minilm import packed

        return packed.logits(self._cross_encoder[0], sequences).astype(np.float64)

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the probability that each pair is equivalent, shape (len(pairs),), float64."""
        pairs = [Pair(pair.question, clean(pair.reference), clean(pair.candidate)) for pair in pairs]
        x = np.array([lexical(pair) for pair in pairs])
        odds = self.trees(x)
        low, high = self._arrays["band"]
        slope, bias = self._arrays["alone"]
        logits = slope * odds + bias
        open_rows = [row for row in range(len(pairs)) if low <= odds[row] <= high and not x[row, _EMPTY]]
        if open_rows:
            tokenizer = self._cross_encoder[1]
            sequences = [
                tokenizer.sequence(pair.question, pair.reference, focus(pair.reference, pair.candidate))
                for pair in (pairs[row] for row in open_rows)
            ]
            z = np.stack([odds[open_rows], self.cross(sequences)], axis=1)
            logits[open_rows] = (z * self._arrays["join"]).sum(axis=1) + self._arrays["join_bias"]
        return 1.0 / (1.0 + exp(-logits))


class EmbeddedEquivalence:
    """Answer equivalence from the shipped weights, loaded when first needed.

    The value of a pair does not depend on which other pairs are asked about, nor on their order.
    """

    def __init__(self, weights: Path = WEIGHTS) -> None:
        self._weights = weights
        self.identity = f"embedded-equivalence-{VERSION}@{file_checksum(weights)[:12]}/{arithmetic()}"

    @once
    def _model(self) -> EnsembleClassifier:
        from quit.models.minilm.layers import load

        return EnsembleClassifier(load(self._weights))

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the probability that each pair is equivalent, shape (len(pairs),), float64 in [0, 1]."""
        return self._model.probability(pairs) if pairs else np.zeros(0)

    @staticmethod
    def note(question: str, gold_answers: Sequence[str], answer: str) -> str | None:
        """Return what the cross-encoder cannot read properly of an answer's pairs with gold answers."""
        golds = [("gold answer", gold, limits.REFERENCE) for gold in gold_answers]
        parts = [("question", question, limits.QUESTION), *golds, ("answer", answer, limits.CANDIDATE)]
        return limits.note(question, parts)
