"""From rankings and answers to tables: metrics of every question, means, paired comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from quit.dataset.dataset import FULLY
from quit.evaluate.metrics import READING, Measure, answer_value, under
from quit.evaluate.significance import compare, intervals
from quit.qa.benchmark.plugins import ORACLE
from quit.qa.benchmark.reading import ReaderAnswers
from quit.qa.benchmark.run import System
from quit.qa.benchmark.task import LabelledTask
from quit.qa.contracts.benchmark import COMPARISONS, RESULTS, VALUES
from quit.qa.settings.benchmark import Benchmark


class Key(NamedTuple):
    """What a value was measured for; a ranking has no reader, strategy and k."""

    corpus: str
    retriever: str
    reranker: str
    reader: str = ""
    strategy: str = ""
    k: int = 0

    @property
    def system(self) -> str:
        """Retriever and reranker, in words."""
        return f"{self.retriever} + {self.reranker}" if self.reranker else self.retriever

    @property
    def is_oracle(self) -> bool:
        """Whether one of both knows the labels."""
        return ORACLE in (self.retriever, self.reranker)


@dataclass(eq=False)
class Scores:
    """Values by row and metric: each an array of shape (questions,), NaN for a question without a relevant passage.

    ``systems``: those that were added. ``right``: over a release, how many passages of 1, 2, ... hints a reader
    answered correctly from, one passage at a time (figure 6): the first one of each question, or every one (Optimal).
    """

    task: LabelledTask
    systems: list[System] = field(default_factory=list)
    values: dict[tuple[Key, str], np.ndarray] = field(default_factory=dict)
    right: dict[Key, np.ndarray] = field(default_factory=dict)

    def add_system(self, system: System, metrics: Sequence[str]) -> None:
        """Add the ranking metrics of a system. In a corpus where only retrieved passages have labels these are Hit and
        MRR at label 2: the others would need the labels of all passages, and label 1 has no meaning there."""
        self.systems.append(system)
        key = Key(self.task.name, system.retriever, system.reranker)
        rows = (ranking.rows for ranking in system.rankings)
        ranked = [self.task.relevance.labels(query, of_query) for query, of_query in enumerate(rows)]
        for text in metrics:
            measure = Measure.parse(text)
            values = []
            for labels, everything in zip(ranked, self.judgements, strict=True):
                if everything is None:
                    if measure.needs_all or measure.least != FULLY:
                        break
                    values.append(measure.value(labels, labels))
                else:
                    has_relevant = everything.max(initial=0) >= measure.least
                    values.append(measure.value(labels, everything) if has_relevant else np.nan)
            else:
                self.values[key, text] = np.array(values, dtype=np.float64)

    @cached_property
    def judgements(self) -> list[np.ndarray | None]:
        """The labels of all judged passages of each question, int8, highest first; None where only retrieved passages
        are judged."""
        return [self.task.relevance.judgements(query) for query in range(len(self.task.queries))]

    def add_reading(self, reading: ReaderAnswers) -> None:
        """Add EM, F1 and cover-EM of a reader's answers, compared with the valid answers."""
        system = reading.system
        key = Key(self.task.name, system.retriever, system.reranker, reading.reader, reading.strategy, reading.k)
        for name in READING:
            pairs = zip(reading.answers, self.task.queries, strict=True)
            values = [answer_value(name, answer, query.answers) for answer, query in pairs]
            self.values[key, name] = np.array(values)
        if reading.k == 1 and len(self.task.passages) > self.task.passages.groups:
            firsts = zip(system.rankings, self.values[key, "EM"], strict=True)
            self.right[key] = self._by_hints([ranking.rows[0] for ranking, value in firsts if value and len(ranking)])

    def add_optimal(self, reader: str, answers: Sequence[Mapping[int, str]]) -> None:
        """Add the row Optimal: each question's best answer over all its own passages, one passage at a time.

        ``answers``: for each question row -> answer.
        """
        key = Key(self.task.name, ORACLE, ORACLE, reader, "any", 1)
        for name in READING:
            values = [
                max((answer_value(name, answer, query.answers) for answer in {*of_rows.values()}), default=0.0)
                for of_rows, query in zip(answers, self.task.queries, strict=True)
            ]
            self.values[key, name] = np.array(values)
        rows: list[int] = []
        for of_rows, query in zip(answers, self.task.queries, strict=True):
            correct = {answer for answer in {*of_rows.values()} if answer_value("EM", answer, query.answers)}
            rows += [row for row, answer in of_rows.items() if answer in correct]
        self.right[key] = self._by_hints(rows)

    def _by_hints(self, rows: Sequence[int]) -> np.ndarray:
        """Return the number of rows with 1, 2, ... hints: int64."""
        units = self.task.passages.units
        hints = units.sizes[units.of_row[np.array(rows, dtype=np.int64)]]
        return np.bincount(hints, minlength=units.sizes.max() + 1)[1:]

    def results(self, settings: Benchmark) -> pa.Table:
        """Return the table ``results``: means under the policy, with bootstrap intervals; none over no question."""
        # Columns over the same questions share their resamples, and one draw serves them all.
        policy, columns = settings.without_relevant, dict[bytes, list[tuple[Key, str]]]()
        measured = {name: values for name, values in self.values.items() if len(under(values, policy))}
        for name, values in measured.items():
            columns.setdefault(np.isnan(values).tobytes(), []).append(name)
        bounds: dict[tuple[Key, str], list[float]] = {}
        for names in columns.values():
            scores = np.stack([under(self.values[name], policy) for name in names], axis=1)
            interval = intervals(scores, settings.resamples, settings.seed)
            bounds |= dict(zip(names, interval.tolist(), strict=True))
        rows: list[dict[str, Any]] = []
        for (key, metric), values in measured.items():
            scores = under(values, policy)
            low, high = bounds[key, metric]
            means = {"value": float(scores.mean()), "low": low, "high": high}
            rows.append({**key._asdict(), "metric": metric, **means, "questions": len(scores)})
        return RESULTS.from_rows(rows)

    def per_question(self) -> pa.Table:
        """Return the table ``values``."""
        pieces = [
            VALUES.from_columns(
                {name: pa.repeat(part, len(values)) for name, part in {**key._asdict(), "metric": metric}.items()}
                | {"question_id": self.task.question_ids, "value": pa.array(values, mask=np.isnan(values))}
            )
            for (key, metric), values in self.values.items()
        ]
        return pa.concat_tables(pieces) if pieces else VALUES.schema.empty_table()

    def comparisons(self, settings: Benchmark) -> pa.Table:
        """Return the table ``comparisons``: every two systems without the oracles, each metric of
        ``benchmark.compare``.

        Readers are compared at the largest k, the first strategy. Holm's correction is over one corpus and metric (and
        reader).
        """
        rows: list[dict[str, Any]] = []
        for metric in settings.compare:
            families: dict[tuple[str, str, int], list[tuple[str, np.ndarray]]] = {}
            for (key, name), values in self.values.items():
                is_compared = not key.reader or (key.strategy == settings.strategies[0] and key.k == max(settings.k))
                is_compared = is_compared and len(under(values, settings.without_relevant)) > 0
                if name == metric and is_compared and not key.is_oracle:
                    families.setdefault((key.reader, key.strategy, key.k), []).append((key.system, values))
            for (reader, strategy, k), systems in families.items():
                family = {"corpus": self.task.name, "metric": metric, "reader": reader, "strategy": strategy, "k": k}
                pairs = list(combinations(systems, 2))
                # Which questions have no relevant passage is the same for all systems of a corpus: pairs stay aligned.
                policy = settings.without_relevant
                means = [(under(of_a, policy), under(of_b, policy)) for (_, of_a), (_, of_b) in pairs]
                tests = compare(means, settings.resamples, settings.seed)
                for ((a, _), (b, _)), test in zip(pairs, tests, strict=True):
                    p_values = asdict(test)
                    rows.append({**family, "a": a, "b": b, "p_holm": p_values.pop("holm"), **p_values})
        return COMPARISONS.from_rows(rows)
