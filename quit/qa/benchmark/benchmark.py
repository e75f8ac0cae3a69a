"""``quit benchmark run``: which systems over which corpora, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from quit.common.arrays import stored_array
from quit.common.cache import cache_folder
from quit.common.files import remove_leftovers
from quit.common.ids import content_hash
from quit.common.progress import note
from quit.dataset.dataset import Dataset
from quit.engine.plan import check_labelers
from quit.errors import SettingsError
from quit.evaluate.metrics import POLICIES, READING, Measure
from quit.models.factory import Models
from quit.qa.benchmark.files import write
from quit.qa.benchmark.independent import circularity, independent_tasks
from quit.qa.benchmark.listwise import replies_in_words
from quit.qa.benchmark.passages import DocumentPassages, Passages, mean_words, open_documents
from quit.qa.benchmark.plugins import ORACLE, PluginContext, check_name, collection_of
from quit.qa.benchmark.reading import read, read_passages
from quit.qa.benchmark.relabel import label_retrieved
from quit.qa.benchmark.results import Scores
from quit.qa.benchmark.run import Runner, System
from quit.qa.benchmark.stages import CheckpointedTables
from quit.qa.benchmark.task import LabelledTask, ReleaseTask, Task, release_task
from quit.qa.folders import building
from quit.qa.settings import QaSettings
from quit.qa.settings.benchmark import Benchmark
from quit.retrieval.protocols import Documents
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
    for kind, names, more in (
        ("retriever", request.retrievers, [ORACLE]),
        ("reranker", request.rerankers, [ORACLE]),
        ("reader", request.readers, profile_readers),
    ):
        for name in names:
            check_name(kind, name, more)
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
    corpora = ["release", *map(corpus_name, request.corpora)]
    if len({*corpora}) < len(corpora):
        raise SettingsError(
            f"Two corpora have the same name ({', '.join(corpora)}): rename one of the files or folders."
        )


def make_runner(dataset: Dataset, task: Task, settings: QaSettings, out: Path) -> Runner:
    """Return what carries out the steps for a release's task."""
    collection, cache = collection_of(dataset), cache_folder("benchmark")
    context = PluginContext(task.passages, settings, Models(settings), cache, collection)
    stages = CheckpointedTables(out / "stages")
    return Runner(context, stages, dataset)


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
    corpora = {corpus_name(path): open_documents(path) for path in request.corpora}  # before hours of work
    _warn_of_depth(runner.settings)
    systems = systems_of(runner, task, request)
    own = _score(runner, task, systems, request.readers)
    if request.bounds:
        for reader in dict.fromkeys(request.readers):
            own.add_optimal(reader, read_passages(runner, task, reader))
    circular = circularity((*request.retrievers, *request.rerankers, *request.readers), runner)
    if circular.related:
        note(circular.sentence(), loud=True)
    no_bounds = [system for system in systems if ORACLE not in (system.retriever, system.reranker)]
    independent = [
        _score(runner, without, no_bounds, request.readers)
        for without in independent_tasks(runner.dataset, task, circular, no_bounds, request.readers)
    ]
    others = [_score_corpus(request, runner, task, name, documents) for name, documents in corpora.items()]
    note("evaluate")
    facts = described_run(request, runner, [task, *(scores.task for scores in others)])
    results, comparisons = write(out, runner, task, [own, *independent, *others], circular, facts)
    for label, counts in runner.replies.items():
        note(f"{label}: {replies_in_words(counts)}")
    return Outcome(results, comparisons, runner.stages.seconds)


def _score_corpus(
    request: BenchmarkRequest, runner: Runner, task: ReleaseTask, name: str, documents: Documents
) -> Scores:
    """Return the values of the release's questions over another corpus, labelled by what the systems retrieve."""
    unlabelled = Task(name, DocumentPassages(documents), task.queries)
    retrieved = systems_of(runner, unlabelled, request)
    relevance = label_retrieved(runner, unlabelled, retrieved)
    labelled = LabelledTask(name, unlabelled.passages, task.queries, relevance)
    systems = [replace(system, task=labelled) for system in retrieved]
    if request.bounds:
        systems += [runner.oracle_rerank(system, relevance) for system in systems if not system.reranker]
    return _score(runner, labelled, systems, request.readers)


def _score(runner: Runner, task: LabelledTask, systems: Sequence[System], readers: Sequence[str]) -> Scores:
    scores = Scores(task)
    for system in systems:
        scores.add_system(system, runner.settings.metrics)
    for reader in dict.fromkeys(readers):
        for system in systems:
            for reading in read(runner, system, reader):
                scores.add_reading(reading)
    return scores


def described_run(request: BenchmarkRequest, runner: Runner, tasks: Sequence[Task]) -> dict[str, str]:
    """Return what was run, in words, for the page and ``run.json``. ``tasks``: the release's, then of other corpora."""
    provenance, task = runner.dataset.provenance, tasks[0]
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
    if len(tasks) > 1:
        judges = ", ".join(labeler.name for labeler in settings.labelers)
        facts["other corpora"] = (
            f"{', '.join(other.name for other in tasks[1:])}; retrieved passages labelled by {judges} "
            f"and the judge {settings.judge.name}; label 2 alone counts"
        )
    if runner.replies:
        facts["listwise replies"] = "; ".join(
            f"{label}: {replies_in_words(counts)}" for label, counts in runner.replies.items()
        )
    lengths = [f"{each.name} {_mean_words(each.passages, runner.context.cache):.2f}" for each in tasks]
    return {**facts, "mean words of a passage": ", ".join(lengths)}


def _mean_words(passages: Passages, cache: Path) -> float:
    """Return the mean length of all passages in words, from the cache where it is: Wikipedia's take minutes."""
    file = cache / f"words-{content_hash(passages.identity)}.npy"
    return float(stored_array(file, lambda: np.array(mean_words(passages))))
