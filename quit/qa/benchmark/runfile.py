"""Somebody's run file, scored as the benchmark scores its own systems (``quit evaluate run``).

Its lines are read by :func:`quit.retrieval.trec.read_run`, its ids by :mod:`quit.qa.benchmark.run_ids`. As in
trec_eval, the score alone orders the passages of a question, equal ones by id, later ids first; the column ``rank`` is
not read. A JSON array is a file of the paper's own results (:mod:`quit.qa.benchmark.published`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from quit.common.files import read_json, write_json, writing
from quit.common.folders import locked
from quit.common.parquet import rows_of
from quit.dataset.dataset import FULLY, Dataset
from quit.errors import InputError
from quit.qa.benchmark.published import PublishedResults, read_results
from quit.qa.benchmark.reading import ReaderAnswers
from quit.qa.benchmark.results import Scores
from quit.qa.benchmark.run import System
from quit.qa.benchmark.run_ids import PassageIndex, names_in_run
from quit.qa.benchmark.task import ReleaseTask, release_task
from quit.qa.contracts.benchmark import RESULTS
from quit.qa.experiment import write_table
from quit.qa.settings.benchmark import Benchmark
from quit.retrieval.protocols import Ranking
from quit.retrieval.trec import best_first, read_run
from quit.sources.fields import quote
from quit.sources.items import is_array


@dataclass(frozen=True)
class RunScores:
    """A run's figures: the table ``results`` of the benchmark.

    ``split``: its questions; of these, ``missing`` are not in the run and ``without_full`` have no passage of label 2.
    ``others``: questions of the run that are not in the split. ``unknown``: lines whose passage the release does not
    have; they count as not relevant. ``first_other``, ``first_unknown``: the first of these, "" where there is none; of
    the second, question and passage.
    """

    name: str
    results: pa.Table
    split: int
    missing: int
    others: int
    without_full: int
    unknown: int
    first_other: str
    first_unknown: str


def score_run(
    path: Path, dataset: Dataset, split: str, settings: Benchmark, retriever: str = "", reranker: str = ""
) -> RunScores:
    """Score a run file over a split's questions, or the answers of a ``rag.json``.

    ``retriever``, ``reranker``: the system's name in the table; if not given, the run's.

    Raises ``InputError`` for a line that is not as expected, with its number, for a run without a question of the split
    or without a known passage, and for a split without questions; ``SettingsError`` for an unknown metric.
    """
    published = read_results(path) if path.is_file() and is_array(path) else PublishedResults()
    name, lines = ("", published.rankings) if published.rankings else read_run(path)
    task = release_task(dataset, split)
    question_ids = names_in_run(task, lines)
    names = {*question_ids}
    if not lines.keys() & names:
        raise InputError(
            f"{path} ranks no question of the split {split!r}: it has {quote(next(iter(lines), 'nothing'))}, the split "
            f"{quote(question_ids[0])}. Ids are those of quit export; another split: --split."
        )
    ranked = [best_first(lines.get(question, {})) for question in question_ids]
    rankings = _rankings(task, ranked)
    unknown = [
        (question, passage)
        for question, passages, ranking in zip(question_ids, ranked, rankings, strict=True)
        for passage, row in zip(passages, ranking.rows.tolist(), strict=True)
        if row < 0
    ]
    if len(unknown) == sum(map(len, rankings)) and not published.answers:
        raise InputError(
            f"{path} ranks no passage of the release: it has {quote(unknown[0][1] if unknown else 'nothing')}, the "
            f"release {quote(task.passages.ids([0])[0])}. Ids are those of quit export."
        )
    scores = Scores(task)
    system = System(task, retriever or name or path.stem, reranker, "", "", rankings)
    if not published.answers:
        scores.add_system(system, settings.metrics)
    for reading, answers in published.answers.items():
        scores.add_reading(ReaderAnswers(system, *reading, [answers.get(question, "") for question in question_ids]))
    others = [question for question in lines if question not in names]
    return RunScores(
        name=system.name,
        results=scores.results(settings),
        split=len(question_ids),
        missing=sum(question not in lines for question in question_ids),
        others=len(others),
        without_full=sum(int(task.relevance.judgements(query)[0]) < FULLY for query in range(len(rankings))),
        unknown=len(unknown),
        first_other=next(iter(others), ""),
        first_unknown=" ".join(next(iter(unknown), ())),
    )


def _rankings(task: ReleaseTask, ranked: Sequence[Mapping[str, np.floating]]) -> list[Ranking]:
    """Return each question's passages as rows, -1 for one that the release does not have. ``ranked``: by question, the
    scores of its passages, best first."""
    index = PassageIndex(task.passages)
    return [
        Ranking(index.rows([*scores], own_id), np.array([*scores.values()], dtype=np.float32))
        for own_id, scores in zip(task.question_ids, ranked, strict=True)
    ]


def add_results(results: pa.Table, folder: Path, dataset: Dataset, split: str) -> None:
    """Add rows to ``folder/results.parquet``, the table of ``quit benchmark run``; those of an equal key are replaced.

    Raises ``InputError`` for the folder of a benchmark, or of scores over another release or split.
    """
    if (folder / "run.json").exists():
        raise InputError(f"{folder} is of quit benchmark run, whose results are its own: name another folder.")
    path, about = folder / "results.parquet", {"release": dataset.fingerprint, "split": split}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if path.exists() and (of_rows := read_json(folder / "scored.json")) != about:
            raise InputError(f"{folder} has scores of {of_rows}, and these are of {about}: name another folder.")
        rows = [*(rows_of(path).to_pylist() if path.exists() else ()), *results.to_pylist()]
        by_key = {tuple(row[name] for name in RESULTS.key): row for row in rows}
        write_json(folder / "scored.json", about)
        write_table(path, RESULTS.from_rows([*by_key.values()]))
