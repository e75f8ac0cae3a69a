"""Which passages a fine-tuning export takes as positives and negatives per question.

Positives have label 2. Negatives are of one kind, drawn evenly: ``other`` (positives of other questions, as in the
paper's footnote 11) or ``any`` (passages of other questions, whatever their label, as in its authors' scripts). A
question's negatives come from its own split, and never from a question that shares a valid answer with it: a passage
about the same answer is no negative. (The paper does not say that it leaves such questions out.)

Every choice follows from a keyed hash of the question's id, so fewer passages are always the first of more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from quit.dataset.dataset import FULLY, Dataset
from quit.errors import InputError, SettingsError, check_known
from quit.text.answers import answer_key

_NEGATIVES = {
    "other": f"passages of label {FULLY} of other questions of the split, drawn by a keyed hash",
    "any": "passages of other questions of the split, drawn by a keyed hash",
}
"""Kind of negatives -> which they are, in words."""
KINDS = tuple(_NEGATIVES)
MOST = 200
"""Positives or negatives per question at most: the largest number that fine-tuning runs compare (1, 5, ... 200)."""
TUNING_SPLITS = ("train", "dev")
"""Splits that models are tuned on."""
PAIRS = "line i of a question pairs its positive i mod P with its negative i mod N, for i below max(P, N)"


@dataclass(frozen=True, slots=True)
class FineTuning:
    """What a fine-tuning export takes: ``positives`` and ``negatives`` per question (at most), of which ``kind``.

    ``seed``: key of all choices. Raises ``SettingsError`` for other values.
    """

    positives: int = 10
    negatives: int = 10
    kind: str = "other"
    seed: str = "export"

    def __post_init__(self) -> None:
        for name in ("positives", "negatives"):
            number = getattr(self, name)
            if type(number) is not int or not 1 <= number <= MOST:
                raise SettingsError(f"{name} must be a whole number from 1 to {MOST}, not {number!r}.")
        for name in ("kind", "seed"):
            if not isinstance(text := getattr(self, name), str):
                raise SettingsError(f"{name} must be a text, not {text!r}.")
        check_known(self.kind, KINDS, "kind of negatives")


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its passages: their places among those of all questions, best first or as drawn."""

    position: int
    positives: list[int]
    negatives: list[int]

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield pairs that use every passage at least once (see ``PAIRS``)."""
        for i in range(max(len(self.positives), len(self.negatives))):
            yield self.positives[i % len(self.positives)], self.negatives[i % len(self.negatives)]


@dataclass(eq=False)
class Selection:
    """The examples of a dataset, and counts of what could not be had."""

    dataset: Dataset
    options: FineTuning
    counts: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dataset.check_own_passages("Fine-tuning")

    def examples(self, split: str) -> Iterator[Example]:
        """Yield a split's questions in order, without those that have no positive or no negative."""
        positions = self.dataset.positions(split)
        count = self.counts[split] = dict.fromkeys(
            ("questions", "without_positive", "without_negative", "fewer_positives", "fewer_negatives"), 0
        )
        for example in self._all(positions):
            if not example.positives:
                count["without_positive"] += 1
            elif not example.negatives:
                count["without_negative"] += 1
            else:
                count["questions"] += 1
                count["fewer_positives"] += len(example.positives) < self.options.positives
                count["fewer_negatives"] += len(example.negatives) < self.options.negatives
                yield example

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says. Raises ``InputError`` when no question of any split could be used."""
        if not any(count["questions"] for count in self.counts.values()):
            cure = "Use more questions."
            if self.options.kind == "other" and any(count["without_negative"] for count in self.counts.values()):
                cure = "Take negatives of any label (--negative-kind any), or use more questions."
            raise InputError(
                f"No question of {' or '.join(TUNING_SPLITS)} has both a passage of label {FULLY} and a negative of "
                f"the kind {self.options.kind!r}: there is nothing to fine-tune on. {cure}"
            )
        rule = (
            f"positives: passages of label {FULLY} in the order of a keyed hash; negatives ({self.options.kind}): "
            f"{_NEGATIVES[self.options.kind]}; never of a question that shares a valid answer"
        )
        return {**asdict(self.options), "splits": self.counts, "rule": rule}

    def _all(self, positions: np.ndarray) -> Iterator[Example]:
        dataset, options = self.dataset, self.options
        passages = dataset.rows
        labels = [dataset.labels_of(positions[start : start + 128]) for start in range(0, len(positions), 128)]
        fully = np.concatenate(labels or [np.zeros(0, np.int8)]) == FULLY
        pool = passages.rows(positions)[fully if options.kind == "other" else slice(None)]
        by_question = passages.take(positions).by_question(fully)
        for position, right in zip(positions.tolist(), by_question, strict=True):
            first = passages.starts[position]
            positives = self.ordered("positive", position, np.flatnonzero(right))[: options.positives]
            yield Example(position, (first + positives).tolist(), self._drawn_negatives(position, pool))

    def ordered(self, purpose: str, position: int, rows: np.ndarray) -> np.ndarray:
        """Return passages of a question (places among its own, int64) in the order of a keyed hash."""
        draws = keyed_draws(self._key(purpose, position), int(self.dataset.rows.counts[position]))
        return rows[np.argsort(draws[rows], kind="stable")]

    def _drawn_negatives(self, position: int, pool: np.ndarray) -> list[int]:
        """Return negatives out of ``pool`` (passages, int64), without those of questions that share an answer."""
        passages, count = self.dataset.rows, self.options.negatives
        same_answer = self._same_answer(position)
        bounds = np.searchsorted(pool, [passages.starts[question : question + 2] for question in same_answer])
        key, start = self._key("other", position), 0
        if len(pool) - np.diff(bounds).sum() <= MOST:  # few: all of them, shuffled, however many are asked for
            choices = pool[[question not in same_answer for question in passages.owner[pool].tolist()]]
            return choices[np.argsort(keyed_draws(key, len(choices)), kind="stable")][:count].tolist()
        drawn: dict[int, None] = {}
        while len(drawn) < count:
            places = (keyed_draws(key, 2 * MOST, start) % np.uint64(len(pool))).astype(np.int64)
            start += 2 * MOST
            owners = passages.owner[pool[places]].tolist()
            pairs = zip(pool[places].tolist(), owners, strict=True)
            drawn |= dict.fromkeys(passage for passage, question in pairs if question not in same_answer)
        return list(drawn)[:count]

    @cached_property
    def _keys(self) -> list[list[str]]:
        valid_answers = self.dataset.valid_answers_of
        return [sorted({answer_key(answer) for answer in answers} - {""}) for answers in valid_answers]

    @cached_property
    def _owners(self) -> dict[str, set[int]]:
        positions_of: dict[str, set[int]] = {}
        for position, keys in enumerate(self._keys):
            for key in keys:
                positions_of.setdefault(key, set()).add(position)
        return positions_of

    def _same_answer(self, position: int) -> set[int]:
        """Return the questions, of any split, that share a valid answer with this one, and itself."""
        return {position}.union(*(self._owners[key] for key in self._keys[position]))

    def _key(self, purpose: str, position: int) -> int:
        text = f"{purpose}\x1f{self.dataset.ids[position]}"
        digest = hashlib.blake2b(text.encode(), key=self.options.seed.encode()[:64], digest_size=8).digest()
        return int.from_bytes(digest, "big")


def keyed_draws(key: int, count: int, start: int = 0) -> np.ndarray:
    """Return draws ``start`` to ``start + count`` of the stream of a key: uint64, shape (count,).

    SplitMix64 (Steele, Lea and Flood 2014): each draw depends only on key and place, on every machine.
    """
    counter = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    value = np.uint64(key) + counter * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
