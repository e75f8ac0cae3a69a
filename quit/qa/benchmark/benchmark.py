"""``quit benchmark run``: which systems, in which order, and the files that come of it.

::

    OUT/results.parquet, results.json     means with intervals        OUT/runs/*.run, qrels.txt    for trec_eval
    OUT/values.parquet                    each question's values      OUT/leaderboard.html         the page
    OUT/comparisons.parquet           paired tests                OUT/figures.parquet  figures 4 to 6
    OUT/run.json                      what was run; last
    OUT/stages/                           rankings and answers, kept so that nothing is done twice
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from quit.common.arrays import stored_array
from quit.common.cache import cache_folder
from quit.common.files import remove_leftovers, write_json, write_lines
from quit.common.ids import content_hash
from quit.common.progress import note
from quit.dataset.dataset import Dataset
from quit.engine.plan import check_labelers
from quit.errors import SettingsError
from quit.evaluate.circularity import CORPUS, Circularity
from quit.evaluate.metrics import POLICIES, READING, Measure
from quit.models.factory import Models
from quit.qa.benchmark.figures import figures
from quit.qa.benchmark.independent import task_without
from quit.qa.benchmark.leaderboard import page
from quit.qa.benchmark.listwise import replies_in_words
from quit.qa.benchmark.passages import DocumentPassages, Passages, mean_words, open_documents
from quit.qa.benchmark.plugins import ORACLE, PluginContext, check_name, collection_of
from quit.qa.benchmark.relabel import known_verdicts
from quit.qa.benchmark.results import Scores, file_name, qrels_lines, run_lines
from quit.qa.benchmark.run import ReaderAnswers, Runner, System
from quit.qa.benchmark.stages import CheckpointedTables
from quit.qa.benchmark.task import LabelledTask, ReleaseTask, Task, release_task
from quit.qa.experiment import write_table
from quit.qa.indexes.built import building
from quit.qa.settings import QaSettings
from quit.qa.settings.benchmark import Benchmark
from quit.text.vendors import family
from quit.version import __version__


@dataclass(frozen=True)
class BenchmarkRequest:
    """One benchmark. ``corpora``: files or folders of other corpora, beside the release. ``bounds``: whether
    oracles and Optimal are rows too."""

    release: Path
    split: str = "test"
    retrievers: tuple[str, ...] = ("bm25",)
    rerankers: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    corpora: tuple[Path, ...] = ()
    bounds: bool = True


@dataclass(frozen=True)
class Outcome:
    """The tables, and what each step took (seconds, when it was made)."""

    results: pa.Table
    comparisons: pa.Table
    seconds: dict[str, float]


def run_benchmark(request: BenchmarkRequest, settings: QaSettings, out: Path) -> Outcome:
    """Run the benchmark and write its files to ``out``.

    Raises ``InputError`` for a release or corpus that cannot be used and a split without questions, ``SettingsError``
    for an unknown name or metric and for fewer labelers than the release's label 2 needs, ``WorkspaceError`` when
    another run holds ``out``.
    """
    with prepare(request, settings, out) as (runner, task):
        return run_prepared(request, runner, task, out)


@contextmanager
def prepare(request: BenchmarkRequest, settings: QaSettings, out: Path) -> Iterator[tuple[Runner, ReleaseTask]]:
    """Lock ``out`` and yield the runner of the steps, and the release's task. Raises as ``run_benchmark``."""
    check(request, settings)
    dataset = Dataset.of_release(request.release)
    dataset.check_own_passages("The benchmark")
    task = release_task(dataset, request.split)
    with building(out, "benchmark"):
        remove_leftovers(out)
        yield make_runner(dataset, task, settings, out), task


def check(request: BenchmarkRequest, settings: QaSettings) -> None:
    """Raise ``SettingsError`` for what cannot be run, before anything is read."""
    alone = request.bounds and not request.corpora
    if not {*request.retrievers} - (set() if alone else {ORACLE}):
        raise SettingsError(f"Name at least one --retriever{'' if alone else ' beside the oracle'}.")
    profile_readers = [reader.name for reader in settings.readers]
    for group, names, more in (
        ("quit.retrievers", request.retrievers, [ORACLE]),
        ("quit.rerankers", request.rerankers, [ORACLE]),
        ("quit.readers", request.readers, profile_readers),
    ):
        for name in names:
            check_name(group, name, more)
    if request.corpora:
        check_labelers(settings)
    metrics = settings.benchmark.metrics
    for text in metrics:
        Measure.parse(text)
    if unknown := {*settings.benchmark.compare} - {*metrics, *READING}:
        raise SettingsError(
            f"benchmark.compare names {min(unknown)!r}, which is neither in benchmark.metrics nor one of "
            f"{', '.join(READING)}."
        )
    corpora = [corpus_name(path) for path in request.corpora]
    if len({*corpora, "release"}) < len(corpora) + 1:
        raise SettingsError(
            f"Two corpora have the same name ({', '.join(corpora)}): rename one of the files or folders."
        )


def make_runner(dataset: Dataset, task: Task, settings: QaSettings, out: Path) -> Runner:
    """Return what carries out the steps for a release's task."""
    collection, cache = collection_of(dataset), cache_folder("benchmark")
    context = PluginContext(task.passages, settings, Models(settings), cache, collection)
    stages = CheckpointedTables(out / "stages")
    return Runner(context, stages, dataset, known_verdicts(dataset.verdicts))


def corpus_name(path: Path) -> str:
    """Return the name of a corpus: that of its folder or file, without ``.jsonl``."""
    return path.resolve().name.removesuffix(".jsonl")


def systems_of(runner: Runner, task: Task, request: BenchmarkRequest) -> list[System]:
    """Return a task's systems: retrievers alone and with every reranker, and over a release the oracles if wanted."""
    retrievers = [name for name in dict.fromkeys(request.retrievers) if name != ORACLE]
    rerankers = [name for name in dict.fromkeys(request.rerankers) if name != ORACLE]
    labelled = task if request.bounds and isinstance(task, ReleaseTask) else None
    first_stages = [runner.retrieve(task, name) for name in retrievers]
    if labelled:
        first_stages.append(runner.oracle(labelled))
    systems = []
    for first_stage in first_stages:
        systems += [first_stage, *(runner.rerank(first_stage, reranker) for reranker in rerankers)]
        if labelled:
            systems.append(runner.oracle_rerank(first_stage, labelled.relevance))
    return systems


def _warn_of_depth(settings: Benchmark) -> None:
    """Note metrics and ``benchmark.k`` that are deeper than ``benchmark.depth``."""
    deeper = [text for text in settings.metrics if Measure.parse(text).depth > settings.depth]
    deeper += [f"k = {k}" for k in settings.k if k > settings.depth]
    if deeper:
        limit = f"Retrievers return {settings.depth} passages (benchmark.depth)"
        note(f"{limit}; deeper ones count no more: {', '.join(deeper)}", loud=True)


def run_prepared(request: BenchmarkRequest, runner: Runner, task: ReleaseTask, out: Path) -> Outcome:
    """Run what :func:`prepare` looked at. Raises as ``run_benchmark``."""
    corpora = {path: open_documents(path) for path in request.corpora}  # before hours of work
    _warn_of_depth(runner.settings)
    systems = systems_of(runner, task, request)
    scores = [_score(runner, task, systems, request.readers)]
    if request.bounds:
        for reader in dict.fromkeys(request.readers):
            scores[0].add_optimal(reader, runner.every_passage(task, reader))
    no_bounds = [system for system in systems if ORACLE not in (system.retriever, system.reranker)]
    circular = circularity(request, runner)
    if circular.related:
        note(circular.sentence(), loud=True)
    for independent in _independent_tasks(request, runner, task, circular, no_bounds):
        scores.append(_score(runner, independent, no_bounds, request.readers))
    every = list(systems)
    for path, documents in corpora.items():
        beside = Task(corpus_name(path), DocumentPassages(documents), task.queries)
        other_systems = systems_of(runner, beside, request)
        relevance = runner.relabel(beside, other_systems)
        labelled_task = LabelledTask(beside.name, beside.passages, beside.queries, relevance)
        other_systems = [replace(system, task=labelled_task) for system in other_systems]
        if request.bounds:
            first_stages = [system for system in other_systems if not system.reranker]
            other_systems += [runner.oracle_rerank(system, relevance) for system in first_stages]
        scores.append(_score(runner, labelled_task, other_systems, request.readers))
        every += other_systems
    note("evaluate")
    results, comparisons = _write(request, runner, task, every, scores, circular, out)
    for label, counts in runner.replies.items():
        note(f"{label}: {replies_in_words(counts)}")
    return Outcome(results, comparisons, runner.stages.seconds)


def circularity(request: BenchmarkRequest, runner: Runner) -> Circularity:
    """Return which of the models under test are labelers of the release, or of a labeler's family."""
    families = {info.name: family(info.identity) for info in runner.dataset.labelers}
    models = {reader.name: reader.model or reader.name for reader in runner.context.settings.readers}
    related: dict[str, list[str]] = {}
    for name in (*request.retrievers, *request.rerankers, *request.readers):  # NAME, NAME:MODEL or NAME:MODEL,MODEL
        own = {family(models.get(part, part)) for part in re.split("[:,]", name)}
        if labelers := [labeler for labeler in families if labeler == name or families[labeler] in own]:
            related[name] = labelers
    return Circularity([*families], related)


def _independent_tasks(
    request: BenchmarkRequest, runner: Runner, task: ReleaseTask, circular: Circularity, systems: Sequence[System]
) -> Iterator[ReleaseTask]:
    """Yield a task for each set of labelers without which no label rests on the models of some system; none where
    ``labels.partial`` left answers out."""
    models = ((system.retriever, system.reranker, reader) for system in systems for reader in ("", *request.readers))
    left_out = {*map(circular.left_out, models)} - {()}
    if left_out and not runner.dataset.partly_asked:
        for names in sorted(left_out):
            yield task_without(task, runner.dataset, names)


def _score(runner: Runner, task: LabelledTask, systems: Sequence[System], readers: Sequence[str]) -> Scores:
    settings = runner.context.settings.benchmark
    scores = Scores(task)
    for system in systems:
        scores.add_system(system, settings.metrics)
    readings: list[ReaderAnswers] = []
    for reader in dict.fromkeys(readers):
        for system in systems:
            readings += runner.read(system, reader)
    for reading in readings:
        scores.add_reading(reading)
    return scores


def _write(
    request: BenchmarkRequest,
    runner: Runner,
    task: ReleaseTask,
    systems: Sequence[System],
    scores: Sequence[Scores],
    circular: Circularity,
    out: Path,
) -> tuple[pa.Table, pa.Table]:
    """Write all files; return the tables of results and comparisons."""
    settings = runner.context.settings
    run_file = out / "run.json"
    run_file.unlink(missing_ok=True)
    runs: dict[str, str] = {}
    for system in systems:
        name = file_name(system.task.name, system.name, runs)
        runs[name] = f"{system.task.name}: {system.name}"
        write_lines(out / "runs" / name, run_lines(system))
    for old in (out / "runs").glob("*.run"):
        if old.name not in runs:
            old.unlink()
    write_lines(out / "qrels.txt", qrels_lines(task))
    results = pa.concat_tables(scored.results(settings.benchmark) for scored in scores)
    comparisons = pa.concat_tables(scored.comparisons(settings.benchmark) for scored in scores)
    values = pa.concat_tables(scored.per_question() for scored in scores)
    paper = [scored for scored in scores if not scored.task.name.startswith(CORPUS)]
    points = figures(paper, systems, settings.benchmark.without_relevant)
    for name, table in (("results", results), ("comparisons", comparisons), ("values", values), ("figures", points)):
        write_table(out / f"{name}.parquet", table)
    write_json(out / "results.json", results.to_pylist())
    facts = described_run(request, runner, task)
    lengths = []
    for name, passages in {system.task.name: system.task.passages for system in systems}.items():
        file = runner.context.cache / f"words-{content_hash(passages.identity)}.npy"  # Wikipedia takes minutes
        lengths.append(f"{name} {stored_array(file, partial(_mean_words, passages)):.2f}")
    facts["mean words of a passage"] = ", ".join(lengths)
    write_lines(out / "leaderboard.html", [page(facts, results, comparisons, points, circular)])
    write_json(
        run_file,
        {
            "content_id": runner.dataset.provenance["content_id"],
            "facts": facts,
            "runs": runs,
            "systems": {f"{system.task.name}: {system.name}": system.identity for system in systems},
            "replies": runner.replies,
            "circular": asdict(circular),
            "settings": settings.benchmark.model_dump(mode="json"),
        },
    )
    return results, comparisons


def _mean_words(passages: Passages) -> np.ndarray:
    return np.array(mean_words(passages))


def described_run(request: BenchmarkRequest, runner: Runner, task: Task) -> dict[str, str]:
    """Return what was run, in words: for the page and ``run.json``."""
    provenance = runner.dataset.provenance
    settings = runner.context.settings
    labelers = ", ".join(labeler.name for labeler in runner.dataset.labelers)
    embedded = " Embedded readers are not language models." if runner.dataset.embedded else ""
    facts = {
        "release": f"{provenance['release']} (content id {provenance['content_id']})",
        "questions": f"{len(task.queries)} of split {request.split}",
        "passages": f"{len(task.passages):,}",
        "labelled by": f"{labelers}.{embedded}",
        "without a relevant passage": POLICIES[settings.benchmark.without_relevant],
        "program": f"QUIT builder {__version__}",
    }
    if request.corpora:
        judges = ", ".join(labeler.name for labeler in settings.labelers)
        facts["other corpora"] = (
            f"{', '.join(corpus_name(path) for path in request.corpora)}; retrieved passages labelled by {judges} "
            f"and the judge {settings.judge.name}; label 2 alone counts"
        )
    if runner.replies:
        facts["listwise replies"] = "; ".join(
            f"{label}: {replies_in_words(counts)}" for label, counts in runner.replies.items()
        )
    return facts
