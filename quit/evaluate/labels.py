"""Facts that bear on comparisons of figures: label 2 by split, agreement of readers, answers shared by splits.

The dataset card and the report show these numbers; both take them from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import pyarrow as pa

from quit.common.rows import cursor, first_by, tuples
from quit.evaluate.agreement import PairAgreement, alpha_of_counts
from quit.text.answers import answer_key

ALL = "all"
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class SplitLabels:
    """Questions and passages of one split, or of ``all``.

    ``with_label_2``: questions with at least one passage of label 2; ``label_2``: passages of label 2.
    """

    split: str
    questions: int
    with_label_2: int
    passages: int
    label_2: int

    @property
    def without_label_2(self) -> int:
        """Questions whose passages all have label 1."""
        return self.questions - self.with_label_2

    @property
    def bound(self) -> float:
        """The highest mean that Hit, MRR (RR) and Recall at label 2 can reach over all questions, 0 to 1.

        A question without a passage of label 2 counts as 0 in these means, whatever a system retrieves (trec_eval;
        ``benchmark.without_relevant = "zero"``).
        """
        return self.with_label_2 / self.questions

    @property
    def share(self) -> float:
        """Share of the passages that have label 2, 0 to 1."""
        return self.label_2 / self.passages


def labels_by_split(splits: pa.Table, labels: pa.Table | pa.RecordBatchReader) -> list[SplitLabels]:
    """Return the labels of each split with questions, in the order train, dev, test, then of ``all``.

    ``splits`` needs question_id, split; ``labels`` question_id, label. Either may be dictionary-encoded; ``labels`` may
    hold other questions too, which do not count.
    """
    with cursor() as database:
        rows = database.execute(
            """
            SELECT coalesce(split, 'all'), count(*), count(*) FILTER (fully > 0), sum(passages)::BIGINT,
                sum(fully)::BIGINT
            FROM (
                SELECT question_id, count(*) AS passages, count(*) FILTER (label = 2) AS fully FROM labels GROUP BY 1
            ) JOIN splits USING (question_id)
            GROUP BY ROLLUP (split)
            """
        ).fetchall()
    by_split = {row[0]: SplitLabels(*row) for row in rows}
    return [by_split[split] for split in (*SPLITS, ALL) if split in by_split and by_split[split].questions]


@dataclass(frozen=True, slots=True)
class ReaderAgreement:
    """How far readers agree on which passages lead to a correct answer.

    ``asked``: reader -> passages that it was asked about; ``correct``: share of these that it answers correctly, 0 to
    1. ``compared``: the readers that were asked about every passage. Only these are compared, for a labeler that is
    asked what others got wrong (``labels.partial``) cannot agree with them. ``pairs``: of every two of these, the share
    of passages that both or neither answer correctly, and Cohen's kappa. ``alpha``: Krippendorff's, nominal, of all of
    these; None where it is not defined (one reader, or all always right or wrong).
    """

    passages: int
    asked: Mapping[str, int]
    correct: Mapping[str, float]
    compared: tuple[str, ...]
    pairs: tuple[PairAgreement, ...]
    alpha: float | None


Patterns = Counter[tuple[int, int]]
"""How many passages have which readers asked about them, and which of these answer correctly: two sets as bits, bit 0
the first reader."""


def of_readers(patterns: Patterns, selection: Sequence[int]) -> Patterns:
    """Return the patterns of some readers: those at the positions ``selection``."""
    fewer: Patterns = Counter()
    for sets, passages in patterns.items():
        asked, right = (sum((bits >> old & 1) << new for new, old in enumerate(selection)) for bits in sets)
        fewer[asked, right] += passages
    return fewer


def reader_agreement(readers: Sequence[str], patterns: Patterns) -> ReaderAgreement:
    """Return the agreement of readers from patterns, whose bits are in their order."""
    passages = sum(patterns.values())
    asked, right = (
        [
            sum(number for sets, number in patterns.items() if sets[which] >> position & 1)
            for position in range(len(readers))
        ]
        for which in (0, 1)
    )
    compared = [position for position, number in enumerate(asked) if number == passages]
    pairs = []
    for first, second in combinations(compared, 2) if passages else ():
        verdicts = Counter[tuple[int, int]]()
        for (_, bits), number in patterns.items():
            verdicts[bits >> first & 1, bits >> second & 1] += number
        pairs.append(PairAgreement.of(readers[first], readers[second], verdicts))
    return ReaderAgreement(
        passages,
        dict(zip(readers, asked, strict=True)),
        {reader: number / max(1, count) for reader, number, count in zip(readers, right, asked, strict=True)},
        tuple(readers[position] for position in compared),
        tuple(pairs),
        alpha_of_counts(
            (Counter({True: bits.bit_count(), False: len(compared) - bits.bit_count()}), number)
            for (_, bits), number in of_readers(patterns, compared).items()
        ),
    )


@dataclass(frozen=True, slots=True)
class SharedAnswers:
    """Gold answers that two splits have in common, by key, and the questions of each split with one.

    ``answers``: the first form of each, in order of the first split's questions.
    """

    first: str
    second: str
    answers: tuple[str, ...]
    first_questions: int
    second_questions: int


def shared_answers(splits: pa.Table, questions: pa.Table) -> list[SharedAnswers]:
    """Return what every two splits that have questions share: train and dev, train and test, dev and test.

    ``splits`` needs question_id, split; ``questions`` question_id, answers, and may hold other questions too.
    """
    split_of = dict(tuples(splits, "question_id", "split"))
    keys: dict[str, list[dict[str, str]]] = {split: [] for split in SPLITS if split in split_of.values()}
    for question_id, answers in tuples(questions, "question_id", "answers"):
        if question_id in split_of:
            keys[split_of[question_id]].append(first_by((answer_key(answer), answer) for answer in answers))
    shared = []
    for first, second in combinations(keys, 2):
        common = {*chain.from_iterable(keys[first])} & {*chain.from_iterable(keys[second])}
        of_first = chain.from_iterable(surfaces.items() for surfaces in keys[first])
        forms = first_by((key, surface) for key, surface in of_first if key in common)
        counts = (sum(not common.isdisjoint(surfaces) for surfaces in keys[split]) for split in (first, second))
        shared.append(SharedAnswers(first, second, tuple(forms.values()), *counts))
    return shared
