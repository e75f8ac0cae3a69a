"""Question types: the TREC taxonomy (Li and Roth 2002), coarse and fine, spelt as the hint sources spell it.

TREC writes ``LOC:city``; TriviaHG and WikiHint write the coarse type ``LOC:LOCATION`` and the fine type ``city:City``. The
classifier is multinomial logistic regression over the MiniLM sentence vector and hashed word features. ``training/
question_type.py`` makes its weights.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quit.errors import InputError
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

FINE = {
    "ABBR:abb": "abb:Abbreviation",
    "ABBR:exp": "exp:Expression abbreviated",
    "DESC:def": "def:Definition of something",
    "DESC:desc": "desc:Description of something",
    "DESC:manner": "manner:Manner of an action",
    "DESC:reason": "reason:Reason",
    "ENTY:animal": "animal:Animal",
    "ENTY:body": "body:Organ of body",
    "ENTY:color": "color:Color",
    "ENTY:cremat": "cremat:Invention, book and other creative piece",
    "ENTY:currency": "currency:Currency name",
    "ENTY:dismed": "dismed:Disease and medicine",
    "ENTY:event": "event:Event",
    "ENTY:food": "food:Food",
    "ENTY:instru": "instru:Musical instrument",
    "ENTY:lang": "lang:Language",
    "ENTY:letter": "letter:Letter like a-z",
    "ENTY:other": "other:Other entity",
    "ENTY:plant": "plant:Plant",
    "ENTY:product": "product:Product",
    "ENTY:religion": "religion:Religion",
    "ENTY:sport": "sport:Sport",
    "ENTY:substance": "substance:Element and substance",
    "ENTY:symbol": "symbol:Symbols and sign",
    "ENTY:techmeth": "techmeth:Techniques and method",
    "ENTY:termeq": "termeq:Equivalent term",
    "ENTY:veh": "veh:Vehicle",
    "ENTY:word": "word:Word with a special property",
    "HUM:desc": "desc:Description of a person",
    "HUM:gr": "gr:Group or organization of person",
    "HUM:ind": "ind:Individual",
    "HUM:title": "title:Title of a person",
    "LOC:city": "city:City",
    "LOC:country": "country:Country",
    "LOC:mount": "mount:Mountain",
    "LOC:other": "other:Other location",
    "LOC:state": "state:State",
    "NUM:code": "code:Postcode or other code",
    "NUM:count": "count:Number of something",
    "NUM:date": "date:Date",
    "NUM:dist": "dist:Distance, linear measure",
    "NUM:money": "money:Price",
    "NUM:ord": "ord:Order, rank",
    "NUM:other": "other:Other number",
    "NUM:period": "period:Lasting time of something",
    "NUM:perc": "perc:Percent, fraction",
    "NUM:speed": "speed:Speed",
    "NUM:temp": "temp:Temperature",
    "NUM:volsize": "volsize:Size, area and volume",
    "NUM:weight": "weight:Weigh",
}
"""TREC label -> the sources' spelling of its fine type (``Weigh`` and ``person`` are theirs). All fifty are distinct."""

WEIGHTS = Path(__file__).parent / "weights" / "question_type.npz"
BUCKETS = 1 << 14

_TOKEN = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")


@dataclass(frozen=True, slots=True)
class QuestionType:
    """A question's type as the sources write it; ``confidence`` is the probability of the fine type, in [0, 1]."""

    coarse: str
    fine: str
    confidence: float


def from_trec(label: str) -> tuple[str, str]:
    """Return (coarse, fine) as the sources spell them for a TREC label such as ``LOC:city``.

    Raises :class:`InputError` for a label outside the taxonomy.
    """
    if label not in FINE:
        raise InputError(f"{label!r} is no TREC question type (COARSE:fine, such as LOC:city).")
    return COARSE[label.partition(":")[0]], FINE[label]


def tokens(question: str) -> list[str]:
    """Return the lower-case words, digit runs (as ``#``) and marks of a question, in order."""
    return ["#" if token.isdigit() else token for token in _TOKEN.findall(question.lower())]


def buckets(question: str) -> list[int]:
    """Return the hashed lexical features of a question: distinct bucket numbers in [0, BUCKETS), ascending."""
    seq = [token for token in tokens(question) if token not in {"?", ".", "``", "''", '"', "`", "'"}]
    names = {f"u {token}" for token in seq}
    names |= {f"b {first} {second}" for first, second in zip(seq, seq[1:], strict=False)}
    names |= {f"p{index} {token}" for index, token in enumerate(seq[:4])}
    names |= {f"f{size} {' '.join(seq[:size])}" for size in (2, 3)}
    names.add(f"n {min(len(seq), 12) // 2}")
    return sorted({zlib.crc32(name.encode()) % BUCKETS for name in names})


class QuestionTypeClassifier:
    """Classifies questions by their MiniLM vector and their words."""

    def __init__(self, encoder: Encoder, weights: Path = WEIGHTS) -> None:
        self._encoder = encoder
        self._weights = weights
        self._arrays: dict[str, np.ndarray] | None = None
        self.identity = f"question-type@{zlib.crc32(weights.read_bytes()):08x}+{encoder.identity}"

    def classify(self, questions: Sequence[str]) -> list[QuestionType]:
        """Return one type a question, in order."""
        if not questions:
            return []
        if self._arrays is None:
            with np.load(self._weights, allow_pickle=False) as file:
                self._arrays = {key: file[key] for key in file.files}
        arrays = self._arrays
        labels = [str(label) for label in arrays["labels"]]
        vectors = self._encoder.encode(questions)
        types = []
        for question, vector in zip(questions, vectors, strict=True):
            logits = arrays["bias"] + arrays["dense"].astype(np.float64) @ vector.astype(np.float64)
            logits = logits + arrays["sparse"][buckets(question)].astype(np.float64).sum(axis=0)
            probability = np.exp(logits - logits.max())
            probability /= probability.sum()
            coarse_of = np.array([label.partition(":")[0] for label in labels])
            # The coarse type is the one with most probability in all; the fine type is the best within it.
            sums = {code: probability[coarse_of == code].sum() for code in COARSE}
            best = max(sums, key=sums.__getitem__)
            index = int(np.argmax(np.where(coarse_of == best, probability, -1.0)))
            coarse, fine = from_trec(labels[index])
            types.append(QuestionType(coarse, fine, float(probability[index])))
        return types
