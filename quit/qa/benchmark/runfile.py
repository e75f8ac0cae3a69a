"""Somebody's run file, scored as the benchmark scores its own systems (``quit evaluate run``).

Its lines are read by :func:`quit.retrieval.trec.read_run`, ids as in our exports, as they are, or as in the paper's
files; a question's also as its source has it. As in trec_eval, the score alone orders the passages of a question, equal
ones by id, later ids first; the column ``rank`` is not read. A JSON array is a file of the paper's own results
(:mod:`quit.qa.benchmark.published`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from quit.common.files import read_json, write_json, writing
from quit.common.folders import locked
from quit.common.ids import question_id
from quit.common.parquet import rows_of
from quit.common.rows import grouped
from quit.common.safe import safe_id
from quit.dataset.dataset import FULLY, Dataset
from quit.dataset.paper_names import paper_id
from quit.errors import InputError
from quit.qa.benchmark.published import PublishedResults, read_results
from quit.qa.benchmark.results import Scores
from quit.qa.benchmark.run import ReaderAnswers, System
from quit.qa.benchmark.task import ReleasePassages, ReleaseRelevance, Task, release_task
from quit.qa.contracts.benchmark import RESULTS
from quit.qa.experiment import write_table
from quit.qa.settings.benchmark import Benchmark
from quit.retrieval.protocols import Ranking
from quit.retrieval.records import clean_id
from quit.retrieval.trec import best_first, read_run
from quit.sources.fields import quote
from quit.sources.files import is_array


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
    results = read_results(path) if path.is_file() and is_array(path) else PublishedResults()
    name, lines = ("", results.rankings) if results.rankings else read_run(path)
    task = release_task(dataset, split)
    passages, relevance = task.passages, task.relevance
    assert isinstance(passages, ReleasePassages) and isinstance(relevance, ReleaseRelevance)
    question_ids = _names_in_run(dataset, task, lines)
    names = {*question_ids}
    if not lines.keys() & names:
        raise InputError(
            f"{path} ranks no question of the split {split!r}: it has {quote(next(iter(lines), 'nothing'))}, the split "
            f"{quote(question_ids[0])}. Ids are those of quit export; another split: --split."
        )
    rankings = [
        ranking_of(lines.get(name, {}), passages, own)
        for name, own in zip(question_ids, task.question_ids, strict=True)
    ]
    unknown = sum(int((ranking.rows < 0).sum()) for ranking in rankings)
    if unknown == sum(map(len, rankings)) and not results.answers:
        example = next((passage for question in question_ids for passage in lines.get(question, ())), "nothing")
        raise InputError(
            f"{path} ranks no passage of the release: it has {quote(example)}, the release "
            f"{quote(passages.ids([0])[0])}. Ids are those of quit export."
        )
    scores = Scores(task)
    system = System(task, retriever or name or path.stem, reranker, "", "", rankings)
    if not results.answers:
        scores.add_system(system, settings.metrics)
    for reading, answers in results.answers.items():
        scores.add_reading(ReaderAnswers(system, *reading, [answers.get(question, "") for question in question_ids]))
    missing = sum(question not in lines for question in question_ids)
    unknown_passages = (
        f"{question} {[*best_first(lines[question])][rank]}"
        for question, ranking in zip(question_ids, rankings, strict=True)
        for rank in np.flatnonzero(ranking.rows < 0)
    )
    return RunScores(
        name=system.name,
        results=scores.results(settings),
        split=len(question_ids),
        missing=missing,
        others=len(lines.keys() - names),
        without_full=sum(int(relevance.judgements(query)[0]) < FULLY for query in range(len(rankings))),
        unknown=unknown,
        first_other=next((question for question in lines if question not in names), ""),
        first_unknown=next(unknown_passages, ""),
    )


def _names_in_run(dataset: Dataset, task: Task, lines: Collection[str]) -> list[str]:
    """Return how the run's ``lines`` name each question of a task; the first spelling where they do not."""
    spellings = [
        [*map(clean_id, (safe_id(own), own, paper_id(own), query.question))]
        for own, query in zip(task.question_ids, task.queries, strict=True)
    ]
    exact, ends = {*chain.from_iterable(spellings)}, Counter(own.partition("-")[2] for own in dataset.ids)
    of_source = grouped((question_id("", name)[1:], name) for name in lines if name not in exact)
    for identity, of_one in zip(task.question_ids, spellings, strict=True):  # the source's, where no other can be meant
        end = identity.partition("-")[2]
        of_one += of_source[end] if len(of_source.get(end, ())) == ends[end] == 1 else []
    return [next((name for name in names if name in lines), names[0]) for names in spellings]


def ranking_of(scores: dict[str, float], passages: ReleasePassages, question: str) -> Ranking:
    """Return a question's passages in trec_eval's order; -1 for unknown ones."""
    ranked = best_first(scores)
    return Ranking(passages.rows([*ranked], question), np.array([*ranked.values()], dtype=np.float32))


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
