"""Fine-tuning on a release's own training split (paper, sections 5.2 and 5.3, appendix A.2 and A.3): 1 to 200 positives
a question.

Examples are those of our exports (:mod:`quit.export.training`): passages of label 2 against as many negatives.
:mod:`quit.qa.benchmark.train` trains.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from quit.common.files import read_json, write_json, writing
from quit.common.ids import content_hash
from quit.common.progress import note
from quit.dataset.dataset import Dataset
from quit.errors import InputError, SettingsError, check_known
from quit.export.training import FineTuning, Selection
from quit.models.loading import located, model_identity
from quit.qa.benchmark.benchmark import BenchmarkRequest, Outcome, make_runner, prepare, run_prepared
from quit.qa.benchmark.files import file_stem
from quit.qa.benchmark.passages import ReleasePassages, TitledPassages
from quit.qa.benchmark.train import train
from quit.qa.indexes.encoders import is_multi_vector
from quit.qa.indexes.scorers import has_head
from quit.qa.settings import QaSettings
from quit.text.words import split_names

VERSION = 1


class Kind(NamedTuple):
    """A kind of model: the ``plugin`` that runs it, a reranker or else a retriever; ``is_trained``: whether a folder or
    hub name has a model of this kind already, asked where the program would refuse another."""

    plugin: str
    reranks: bool = False
    is_trained: Callable[[str], bool] = lambda _: True


KINDS = {
    "bi-encoder": Kind("dense"),
    "two-tower": Kind("dense"),
    "cross-encoder": Kind("cross-encoder", reranks=True, is_trained=has_head),
    "monot5": Kind("monot5", reranks=True),
    "multi-vector": Kind("late", is_trained=is_multi_vector),
}


@dataclass(frozen=True, slots=True)
class Tuned:
    """A fine-tuned model: its folder, positives per question, examples, and seconds of training (when it was made)."""

    folder: Path
    positives: int
    examples: int
    seconds: float


def triples(dataset: Dataset, tuning: FineTuning, id_titles: bool = False) -> list[tuple[str, str, str]]:
    """Return (question, positive, negative) of the training split, questions in order; ``id_titles``: passages with
    their question's id.

    Raises ``InputError`` when no question of it has both a positive and a negative.
    """
    selection = Selection(dataset, tuning)
    passages = TitledPassages(dataset) if id_titles else ReleasePassages(dataset)
    triples = []
    for example in selection.examples("train"):
        question = dataset.question_of[example.position]
        for pair in example.pairs():
            positive, negative = passages.texts(pair)
            triples.append((question, positive, negative))
    if not triples:
        raise InputError(
            "The train split has no question with both a passage of label 2 and a negative: there is nothing to "
            "fine-tune on. It holds the questions that a reader answers without hints; build with more of them."
        )
    return triples


def finetune(kind: str, base: str, positives: int, dataset: Dataset, settings: QaSettings, out: Path) -> Tuned:
    """Return ``base`` fine-tuned with so many positives and negatives per question; trained only where ``out`` does not
    have it.

    ``out``: the folder of models; beside each lies ``NAME.json``, written last. Raises ``InputError`` for a model that
    cannot be loaded and a release without examples, ``MissingDependency`` without accelerate.
    """
    tuning, benchmark = settings.finetune, settings.benchmark
    numbers = FineTuning(positives, positives, tuning.negative_kind)
    examples = triples(dataset, numbers, tuning.id_titles)
    key: dict[str, Any] = {
        "version": VERSION,
        "kind": kind,
        "base": "+".join(map(model_identity, split_names(base))),
        "examples": content_hash(examples),
        "settings": tuning.model_dump(mode="json"),
    }
    if KINDS[kind].plugin == "dense":
        key |= {"pooling": benchmark.pooling, "similarity": benchmark.similarity}
    name = f"{file_stem(split_names(base)[0])}-{kind}-{positives}pos-{content_hash(key, size=4)}"
    folder = out / name
    marker = out / f"{name}.json"  # not inside: the folder's content is the model's identity
    if not (folder.is_dir() and marker.is_file() and read_json(marker)):
        note(f"finetune {name}: {len(examples)} examples")
        began = time.monotonic()
        shutil.rmtree(folder, ignore_errors=True)
        with writing(folder):
            train(kind, base, examples, settings, folder)
        counts = {"positives": numbers.positives, "negatives": numbers.negatives, "count": len(examples)}
        facts = {**key, **counts, "seconds": round(time.monotonic() - began, 3)}
        write_json(marker, facts)
    facts = read_json(marker)
    return Tuned(folder, positives, facts["count"], facts["seconds"])


@dataclass(frozen=True)
class TuningRequest:
    """One fine-tuning. ``base``: a model, or ``QUESTIONS,PASSAGES`` for two towers. ``positives``: the numbers of
    positives per question that are tried; ``epochs``: of these, where they are not the settings'. ``retrievers``: their
    passages are reranked, beside the oracle's (tables 7 and 12)."""

    release: Path
    kind: str
    base: str = "minilm"
    positives: tuple[int, ...] = (1, 5, 10)
    split: str = "test"
    retrievers: tuple[str, ...] = ()
    epochs: Mapping[int, float] = field(default_factory=dict)


def run_finetune(request: TuningRequest, settings: QaSettings, out: Path) -> tuple[Outcome, list[Tuned]]:
    """Fine-tune with every number of positives and benchmark the models beside the one they were made from.

    A base without a head of its own (a plain encoder made into a cross-encoder) has no row: its scores would be noise.
    So are those of another base that was never trained for the task, such as BERT's as an encoder or T5's as MonoT5;
    nothing tells these from trained ones.
    Raises as :func:`finetune` and :func:`quit.qa.benchmark.benchmark.run_benchmark`, and ``SettingsError`` for an
    unknown kind.
    """
    _check(request)
    kind = KINDS[request.kind]
    benchmark = BenchmarkRequest(request.release, request.split, retrievers=request.retrievers or ("bm25",))
    with prepare(benchmark, settings, out) as (runner, task):  # refuses what it names before hours of training
        tunings = []
        for number in dict.fromkeys(request.positives):
            changes = {"epochs": request.epochs.get(number, settings.finetune.epochs)}
            own = settings.model_copy(update={"finetune": settings.finetune.model_copy(update=changes)})
            tunings.append(finetune(request.kind, request.base, number, runner.dataset, own, out / "models"))
        names = [f"{kind.plugin}:{model.folder}" for model in tunings]
        if kind.is_trained(located(request.base)):
            names.insert(0, f"{kind.plugin}:{request.base}")
        if settings.finetune.id_titles:
            titled = {"id_titles": (*settings.benchmark.id_titles, *names)}
            settings = settings.model_copy(update={"benchmark": settings.benchmark.model_copy(update=titled)})
            runner = make_runner(runner.dataset, task, settings, out)
        if kind.reranks:
            benchmark = replace(benchmark, rerankers=tuple(names))
        else:
            benchmark = replace(benchmark, retrievers=tuple(names), bounds=False)
        return run_prepared(benchmark, runner, task, out), tunings


def _check(request: TuningRequest) -> None:
    """Raise ``SettingsError`` for what cannot be made, before anything is read."""
    check_known(request.kind, [*KINDS], "kind of model")
    if len(split_names(request.base)) not in ((1, 2) if request.kind == "two-tower" else (1,)):
        raise SettingsError(f"--base {request.base!r}: name one model; two-tower also takes QUESTIONS,PASSAGES.")
    for number in request.positives:
        FineTuning(number, number)
    if request.retrievers and not KINDS[request.kind].reranks:
        raise SettingsError(f"--retriever names what is reranked, and {request.kind} is a retriever itself.")
