"""The files of a benchmark.

::

    OUT/results.parquet, results.json     means with intervals        OUT/runs/*.run, qrels.txt    for trec_eval
    OUT/values.parquet                    each question's values      OUT/leaderboard.html         the page
    OUT/comparisons.parquet           paired tests                OUT/figures.parquet  figures 4 to 6
    OUT/run.json                      what was run; last
    OUT/stages/                           rankings and answers, kept so that nothing is done twice
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from quit.common.files import write_json, write_lines
from quit.common.safe import safe_id
from quit.evaluate.circularity import CORPUS, Circularity
from quit.qa.benchmark.figures import figures
from quit.qa.benchmark.leaderboard import page
from quit.qa.benchmark.results import Scores
from quit.qa.benchmark.run import Runner, System
from quit.qa.benchmark.task import ReleaseTask
from quit.qa.experiment import write_table
from quit.retrieval.trec import qrels_line, run_line


def write(
    out: Path,
    runner: Runner,
    task: ReleaseTask,
    scores: Sequence[Scores],
    circular: Circularity,
    facts: Mapping[str, str],
) -> tuple[pa.Table, pa.Table]:
    """Write all files; return the tables of results and comparisons.

    ``scores``: of the release, then of the rest; ``facts``: what was run, in words. Raises ``WorkspaceError`` where the
    disk refuses.
    """
    paper = [scored for scored in scores if not scored.task.name.startswith(CORPUS)]
    systems = [system for scored in paper for system in scored.systems]
    run_file = out / "run.json"
    run_file.unlink(missing_ok=True)
    runs = _write_runs(out / "runs", systems)
    write_lines(out / "qrels.txt", qrels_lines(task))
    settings = runner.settings
    results = pa.concat_tables(scored.results(settings) for scored in scores)
    comparisons = pa.concat_tables(scored.comparisons(settings) for scored in scores)
    values = pa.concat_tables(scored.per_question() for scored in scores)
    points = figures(paper, settings.without_relevant)
    for name, table in (("results", results), ("comparisons", comparisons), ("values", values), ("figures", points)):
        write_table(out / f"{name}.parquet", table)
    write_json(out / "results.json", results.to_pylist())
    write_lines(out / "leaderboard.html", [page(facts, results, comparisons, points, circular)])
    described = {
        "content_id": runner.dataset.provenance["content_id"],
        "facts": facts,
        "runs": runs,
        "systems": {f"{system.task.name}: {system.name}": system.identity for system in systems},
        "replies": runner.replies,
        "circular": asdict(circular),
        "settings": settings.model_dump(mode="json"),
    }
    write_json(run_file, described)
    return results, comparisons


def _write_runs(folder: Path, systems: Sequence[System]) -> dict[str, str]:
    """Write a run file per system and delete those of earlier systems; return file name -> task and system."""
    runs: dict[str, str] = {}
    for system in systems:
        name = file_name(system.task.name, system.name, runs)
        runs[name] = f"{system.task.name}: {system.name}"
        write_lines(folder / name, run_lines(system))
    for old in folder.glob("*.run"):
        if old.name not in runs:
            old.unlink()
    return runs


def run_lines(system: System) -> Iterator[str]:
    """Yield the lines of a TREC run file: ``question Q0 passage rank score system``.

    Scores are those of the system as float32, made to fall strictly: tools of TREC sort by score and break ties by id,
    which would give the permutations of a subset another order than the one that was evaluated.
    """
    tag = safe_id(system.name.replace(" ", ""))
    for query, ranking in zip(system.task.queries, system.rankings, strict=True):
        ids = system.task.passages.ids(ranking.rows.tolist())
        for rank, (name, score) in enumerate(zip(ids, falling(ranking.scores), strict=True), start=1):
            yield run_line(safe_id(query.question_id), name, rank, score, tag)


def falling(scores: np.ndarray) -> list[np.float32]:
    """Return scores as float32, each one less than the one before: an equal one becomes the next smaller number."""
    strict_scores: list[np.float32] = []
    for score in np.asarray(scores, dtype=np.float32):
        lower = np.nextafter(strict_scores[-1], np.float32(-np.inf)) if strict_scores else score
        strict_scores.append(min(score, lower))
    return strict_scores


def qrels_lines(task: ReleaseTask) -> Iterator[str]:
    """Yield the lines of a TREC qrels file: ``question 0 passage label``, the question's own passages."""
    for number, query in enumerate(task.queries):
        ids, labels = task.passages.ids(task.relevance.rows(number)), task.relevance.row_labels(number)
        yield from (qrels_line(safe_id(query.question_id), *pair) for pair in zip(ids, labels.tolist(), strict=True))


def file_stem(text: str) -> str:
    """Return a name as a part of a file's name: letters, digits, dots and dashes; of a path its last part."""
    return re.sub(r"[^\w.-]", "_", text.rstrip("/").rpartition("/")[2])


def file_name(task: str, system: str, used_names: Iterable[str]) -> str:
    """Return a new name for a run file."""
    stem = "-".join(map(file_stem, (task, *system.split(" + "))))
    name, number = stem, 2
    while f"{name}.run" in set(used_names):
        name, number = f"{stem}-{number}", number + 1
    return f"{name}.run"
