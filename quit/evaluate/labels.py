"""What a user must know before comparing figures: label 2 by split, agreement of readers, answers shared by splits.

The dataset card and the report show these numbers; both take them from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import duckdb
import pyarrow as pa

from quit.evaluate.agreement import PairAgreement
from quit.evaluate.normalize import normalize_answer

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


def labels_by_split(splits: pa.Table, labels: pa.Table) -> list[SplitLabels]:
    """Return the labels of each split with questions, in the order train, dev, test, then of ``all``.

    ``splits`` needs question_id, split; ``labels`` question_id, label (both may be dictionary-encoded) and may hold
    other questions too, which do not count.
    """
    with duckdb.connect() as database:
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
    found = {row[0]: SplitLabels(*row) for row in rows}
    return [found[split] for split in (*SPLITS, ALL) if split in found and found[split].questions]


@dataclass(frozen=True, slots=True)
class ReaderAgreement:
    """How far readers agree on which passages lead to a correct answer.

    ``correct``: reader -> share of the passages that it answers correctly, 0 to 1. ``pairs``: of every two readers, the
    share of passages that both or neither answer correctly, and Cohen's kappa. ``alpha``: Krippendorff's, nominal, of
    all readers; None where it is not defined (one reader, or all always right or wrong).
    """

    passages: int
    correct: Mapping[str, float]
    pairs: tuple[PairAgreement, ...]
    alpha: float | None


def reader_patterns(connection: duckdb.DuckDBPyConnection, readers: Sequence[str]) -> Counter[int]:
    """Return how many passages each set of readers answers correctly: set as bits, bit 0 the first reader.

    ``connection``: has the tables splits, answers, distinct_answers and verdicts, as ``Workspace.connect`` gives them.
    An answer without a verdict counts as not correct.
    """
    rows = connection.execute(
        """
        WITH judged AS (
            SELECT question_id, reader, number, (1::BIGINT << (list_position($readers, reader) - 1)) AS bit
            FROM distinct_answers JOIN verdicts USING (question_id, answer_key) WHERE correct
        ), numbered AS (
            SELECT question_id, row_number() OVER () AS question FROM splits
        ), by_passage AS (  -- numbers as keys: texts would take gigabytes at full size
            SELECT question, ('1' || permutation)::BIGINT AS passage, bit_or(coalesce(bit, 0)) AS pattern
            FROM answers JOIN numbered USING (question_id) LEFT JOIN judged USING (question_id, reader, number)
            WHERE list_contains($readers, reader)
            GROUP BY question, passage
        )
        SELECT pattern, count(*) FROM by_passage GROUP BY 1
        """,
        {"readers": list(readers)},
    ).fetchall()
    return Counter(dict(rows))


def reader_agreement(readers: Sequence[str], patterns: Mapping[int, int]) -> ReaderAgreement:
    """Return the agreement of readers from the counts of :func:`reader_patterns`, whose bits are in their order."""
    passages = sum(patterns.values())

    def count(wanted: int) -> int:
        return sum(number for pattern, number in patterns.items() if pattern & wanted == wanted)

    right = [count(1 << place) for place in range(len(readers))]
    pairs = []
    for (first, a), (second, b) in combinations(enumerate(readers), 2) if passages else ():
        both = count(1 << first | 1 << second)
        agreement = (passages - right[first] - right[second] + 2 * both) / passages
        yes, other = right[first] / passages, right[second] / passages
        chance = yes * other + (1 - yes) * (1 - other)
        kappa = None if chance == 1 else (agreement - chance) / (1 - chance)
        pairs.append(PairAgreement(a, b, passages, agreement, kappa))
    shares = {reader: number / max(1, passages) for reader, number in zip(readers, right, strict=True)}
    return ReaderAgreement(passages, shares, tuple(pairs), _alpha(len(readers), patterns))


def _alpha(readers: int, patterns: Mapping[int, int]) -> float | None:
    """Return Krippendorff's alpha of two values, as ``quit.evaluate.agreement``, from counts instead of units."""
    total = readers * sum(patterns.values())
    yes = sum(pattern.bit_count() * number for pattern, number in patterns.items())
    if readers < 2 or yes in (0, total):
        return None
    mixed = sum(2 * (bits := pattern.bit_count()) * (readers - bits) * number for pattern, number in patterns.items())
    return 1 - (mixed / (readers - 1)) / (2 * yes * (total - yes) / (total - 1))


@dataclass(frozen=True, slots=True)
class SharedAnswers:
    """Gold answers that two splits have in common, in normalised form, and the questions of each split with one.

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
    split_of = dict(zip(splits["question_id"].to_pylist(), splits["split"].to_pylist(), strict=True))
    keys: dict[str, list[dict[str, str]]] = {split: [] for split in SPLITS if split in split_of.values()}
    for question_id, answers in zip(
        questions["question_id"].to_pylist(), questions["answers"].to_pylist(), strict=True
    ):
        if question_id in split_of:
            keys[split_of[question_id]].append({normalize_answer(answer): answer for answer in reversed(answers)})
    found = []
    for first, second in combinations(keys, 2):
        common = {key for some in keys[first] for key in some} & {key for some in keys[second] for key in some}
        forms: dict[str, str] = {}
        for some in keys[first]:
            for key in reversed(some):
                if key in common:
                    forms.setdefault(key, some[key])
        counts = (sum(not common.isdisjoint(some) for some in keys[split]) for split in (first, second))
        found.append(SharedAnswers(first, second, tuple(forms.values()), *counts))
    return found
