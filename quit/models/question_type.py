"""Question types: the TREC taxonomy (Li and Roth 2002), coarse and fine, spelt as the hint sources spell it.

TREC writes ``LOC:city``; TriviaHG and WikiHint write the coarse type ``LOC:LOCATION`` and the fine type
``city:City``. The classifier mixes two models: multinomial logistic regression over the MiniLM sentence vector and
hashed word features, and a fine-tuned copy of MiniLM. ``training/question_type.py`` makes the weights,
``quit/models/weights/QUESTION_TYPE.md`` is their card.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.arithmetic import exp, log
from quit.errors import InputError
from quit.models.loading import once
from quit.models.minilm.encoder import word_pieces
from quit.models.protocols import Encoder

COARSE = {
    "ABBR": "ABBR:ABBREVIATION",
    "DESC": "DESC:DESCRIPTION",
    "ENTY": "ENTY:ENTITY",
    "HUM": "HUM:HUMAN",
    "LOC": "LOC:LOCATION",
    "NUM": "NUM:NUMERIC",
}
"""TREC coarse code -> the sources' spelling."""

_LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
FINE = {label: f"{label.partition(':')[2]}:{words}" for label, words in (line.split(" ", 1) for line in _LINES)}
"""TREC label -> the sources' spelling of its fine type (``Weigh`` and ``person`` are theirs). All are distinct: a line
of ``question_type.txt`` each."""

WEIGHTS = Path(__file__).parent / "weights" / "question_type.npz"
BUCKETS = 1 << 14
MAX_PIECES = 64
"""Word pieces at which questions are cut."""

_MARKS = frozenset(["?", ".", "``", "''", '"', "`", "'"])
_QUESTION_WORDS = frozenset("what which who whom whose when where why how name".split())
_LIGHT = frozenset("the a an is was are of s were did does do to in".split())
_TOKEN = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")


@dataclass(frozen=True, slots=True)
class PredictedType:
    """A question's type as the sources write it; ``confidence`` is the probability of the fine type, in [0, 1]."""

    coarse: str
    fine: str
    confidence: float


def from_trec(label: str) -> tuple[str, str]:
    """Return (coarse, fine) as the sources spell them for a TREC label such as ``LOC:city``.

    Raises :class:`InputError` for a label outside the taxonomy.
    """
    if label not in FINE:
        raise InputError(f"{label!r} is not a TREC question type (COARSE:fine, such as LOC:city).")
    return COARSE[label.partition(":")[0]], FINE[label]


def tokens(question: str) -> list[str]:
    """Return the lower-case words, digit runs (as ``#``) and marks of a question, in order."""
    return ["#" if token.isdigit() else token for token in _TOKEN.findall(question.lower())]


def buckets(question: str) -> list[int]:
    """Return the hashed lexical features of a question: distinct bucket numbers in [0, BUCKETS), ascending."""
    seq = [token for token in tokens(question) if token not in _MARKS]
    names = {f"u {token}" for token in seq}
    names |= {f"b {first} {second}" for first, second in pairwise(seq)}
    names.add(f"n {min(len(seq), 12) // 2}")
    # Places are counted from the question word, not from the beginning: quiz questions often end with it ("... is in
    # which country?").
    rest = seq[next((index for index, token in enumerate(seq) if token in _QUESTION_WORDS), 0) :]
    names |= {f"w{size} {' '.join(rest[:size])}" for size in (1, 2, 3)}
    names |= {f"x{index} {token}" for index, token in enumerate(rest[1:5], 1)}
    heads = [token for token in rest[1:7] if token not in _LIGHT][:2]
    names |= {f"i {token}" for token in heads} | {f"h {rest[0]} {token}" for token in heads[:1]}
    return sorted({zlib.crc32(name.encode()) % BUCKETS for name in names})


def coarse_of(labels: Sequence[str] | np.ndarray) -> np.ndarray:
    """Return the coarse codes of TREC labels (``LOC:city`` -> ``LOC``)."""
    return np.array([str(label).partition(":")[0] for label in labels])


def pieces(questions: Sequence[str]) -> list[list[int]]:
    """Return the word piece ids of each question, with [CLS] and [SEP], at most 64."""
    plain = [question.replace("``", '"').replace("''", '"') for question in questions]
    return [encoding.ids for encoding in word_pieces(MAX_PIECES).encode_batch(plain)]


class QuestionTypeClassifier:
    """Classifies questions by their MiniLM vector, their words, and a fine-tuned copy of MiniLM.

    A question's type does not depend on which other questions are asked about.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.identity = f"question-type@{zlib.crc32(WEIGHTS.read_bytes()):08x}+{encoder.identity}"

    def classify(self, questions: Sequence[str]) -> list[PredictedType]:
        """Return one type per question, in order."""
        if not questions:
            return []
        arrays, net = self._loaded
        labels = [str(label) for label in arrays["labels"]]
        codes = coarse_of(labels)
        types = []
        for probability in probabilities(questions, arrays, net, self._encoder):
            # The coarse type is the one with most probability in all; the fine type is the best within it.
            sums = {code: float(probability[codes == code].sum()) for code in COARSE}
            best = max(sums, key=sums.__getitem__)
            index = int(np.argmax(np.where(codes == best, probability, -1.0)))
            types.append(PredictedType(*from_trec(labels[index]), float(probability[index])))
        return types

    @once
    def _loaded(self) -> tuple[dict[str, np.ndarray], Any]:
        from quit.models.minilm.layers import load

        arrays = load(WEIGHTS)
        return arrays, tuned(arrays)


def tuned(arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the fine-tuned copy of MiniLM that is in the weights."""
    from quit.models.minilm.layers import QuestionNet, restore

    return restore(QuestionNet(len(arrays["labels"])), arrays)


def probabilities(questions: Sequence[str], arrays: Mapping[str, np.ndarray], net: Any, encoder: Encoder) -> np.ndarray:
    """Return the probability of each label in ``arrays["labels"]``, shape (len(questions), labels), float64."""
    from quit.models.minilm import packed

    logits = np.zeros((len(questions), len(arrays["labels"])), dtype=np.float64)
    dense = arrays["dense"].astype(np.float64)
    for row, (question, vector) in enumerate(zip(questions, encoder.encode(questions), strict=True)):
        words = arrays["sparse"][buckets(question)].astype(np.float64).sum(axis=0)
        logits[row] = arrays["bias"] + (dense * vector.astype(np.float64)).sum(axis=1) + words
    share = arrays["share"].item()
    neural = packed.logits(net, [(ids,) for ids in pieces(questions)]).astype(np.float64)
    return exp(_log_softmax((1 - share) * _log_softmax(logits) + share * _log_softmax(neural)))


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    differences = logits - logits.max(axis=1, keepdims=True)
    return differences - log(exp(differences).sum(axis=1, keepdims=True))
