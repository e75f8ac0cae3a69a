"""Retrievers, rerankers and readers by name. Those that come with the program and those of other packages are entry
points alike.

A package adds one by an entry point in ``quit.retrievers``, ``quit.rerankers`` or ``quit.readers`` that names a
callable (a class will do). It is called with a :class:`PluginContext` and returns, respectively, a
:class:`quit.retrieval.protocols.FirstStage`, a :class:`quit.retrieval.protocols.Scorer` or a
:class:`quit.models.protocols.Reader`. On the command line it is ``NAME`` or ``NAME:ARGUMENT``. A class without an entry
point is named ``package.module:Name``. It has an ``identity``, which changes when results change.

Making one must be cheap: ``identity`` is asked for before it is known whether there is anything to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.dataset.dataset import Dataset
from quit.errors import InputError, SettingsError, did_you_mean
from quit.models.factory import Models
from quit.models.loading import usable_device
from quit.models.protocols import NO_ANSWER, Reader
from quit.models.user_classes import imported_class, user_code
from quit.qa.benchmark.passages import Passages, ranking
from quit.qa.settings import FirstStages, QaSettings
from quit.retrieval.protocols import FirstStage, Ranking, Scorer

# Of the paper's rerankers (section 4) one is missing here: LiT5. A plugin can add it.
GROUPS = ("quit.retrievers", "quit.rerankers", "quit.readers")
ORACLE = "oracle"
"""Retriever and reranker that know the labels: not models, so no plugin can have the name."""

_OURS = {
    "quit.retrievers": {
        "bm25": "retrievers:Bm25Retriever",
        "minilm": "retrievers:MiniLMRetriever",
        "dense": "retrievers:SentenceRetriever",
        "late": "late:LateRetriever",
    },
    "quit.rerankers": {
        "late": "late:LateReranker",
        "cross-encoder": "rerankers:CrossEncoderReranker",
        "monot5": "rerankers:MonoT5",
        "rankt5": "rerankers:RankT5",
        "upr": "rerankers:Upr",
        "listwise": "listwise:ListwiseReranker",
    },
    "quit.readers": {},
}


@dataclass(frozen=True)
class PluginContext:
    """The inputs of a plugin. ``argument``: the part after ``NAME:``. ``cache``: a folder for vectors and the like.

    ``collection``: the release's tables questions, candidates, ranked_hints and descriptions, for readers.
    """

    passages: Passages
    settings: QaSettings
    models: Models
    cache: Path
    collection: Mapping[str, pa.Table]
    argument: str = ""

    @property
    def running(self) -> FirstStages:
        """How encoders run. Raises ``SettingsError`` for a device that is not there."""
        settings = self.settings.benchmark
        return FirstStages(batch=settings.batch, device=usable_device(settings.device, "benchmark.device"))


def split_name(text: str) -> tuple[str, str]:
    """Return name and argument of ``NAME`` or ``NAME:ARGUMENT``."""
    name, _, argument = text.partition(":")
    return name.strip(), argument.strip()


@cache
def available(group: str) -> dict[str, EntryPoint]:
    """Return name -> entry point of a group, ours first. Raises ``SettingsError`` when a name is taken twice."""
    plugins = {name: EntryPoint(name, f"quit.qa.benchmark.{value}", group) for name, value in _OURS[group].items()}
    for entry in entry_points(group=group):
        if entry.name in plugins or entry.name == ORACLE:
            raise SettingsError(
                f"The entry point {entry.value!r} takes the name {entry.name!r} of {group}, which is taken. "
                "Rename it, or uninstall its package."
            )
        plugins[entry.name] = entry
    return plugins


def make_retriever(text: str, context: PluginContext) -> FirstStage:
    """Return the retriever of that name. Raises ``SettingsError`` for an unknown name or what is no retriever."""
    return _make("quit.retrievers", text, context, FirstStage)


def make_reranker(text: str, context: PluginContext) -> Scorer:
    """Return the reranker of that name. Raises as ``make_retriever``."""
    return _make("quit.rerankers", text, context, Scorer)


def make_reader(text: str, context: PluginContext) -> Reader:
    """Return the reader of that name: a reader of the profile, or a plugin. Raises as ``make_retriever``."""
    profile = [reader.name for reader in context.settings.readers]
    if text in profile:
        return context.models.reader(text, context.collection)
    check_name("quit.readers", text, profile)
    return _make("quit.readers", text, context, Reader)


def collection_of(dataset: Dataset) -> dict[str, pa.Table]:
    """Return what embedded readers draw their answers from, out of a release's tables.

    A release has no table of candidates, so these are the answers that any reader gave, all of which have a verdict.
    """
    verdicts = dataset.verdicts.filter(pc.not_equal(dataset.verdicts["answer"], NO_ANSWER))
    candidates = pa.table({"question_id": verdicts["question_id"], "candidate": verdicts["answer"]})
    return {
        "questions": dataset.questions,
        "candidates": candidates,
        "ranked_hints": dataset.ranked_hints,
        "descriptions": dataset.descriptions,
    }


def check_name(group: str, text: str, more: Sequence[str] = ()) -> str:
    """Return what a group's plugins are called in messages. Raises ``SettingsError`` for a name that is neither a
    plugin, nor one of ``more``, nor a class."""
    kind = group.removeprefix("quit.").rstrip("s")
    every = [*available(group), *more]
    if text not in more and split_name(text)[0] not in every:
        unknown = f"There is no {kind} {text!r}.{did_you_mean(text, every)}"
        if ":" not in text:
            raise SettingsError(unknown)
        try:
            imported_class(text, kind)
        except SettingsError as error:
            raise SettingsError(f"{unknown} As a {error}") from error
    return kind


def _make(group: str, text: str, context: PluginContext, protocol: Any) -> Any:
    kind, plugins = check_name(group, text), available(group)
    name, argument = split_name(text)
    if name in plugins:
        value = plugins[name].value
        try:
            factory = plugins[name].load()
        except (ImportError, AttributeError) as error:
            raise SettingsError(f"The {kind} {name!r} ({value}) cannot be loaded: {error}.") from error
        with user_code(f"The {kind} {text!r} ({value}) raised", SettingsError):
            plugin = factory(replace(context, argument=argument))
    else:
        value, own = text, imported_class(text, kind)
        with user_code(f"The {kind} {text!r} cannot be made of a PluginContext:", SettingsError):
            plugin = own(context)
    if not isinstance(plugin, protocol):
        members = ", ".join(
            sorted(member for member in dir(protocol) if not member.startswith("_")) + list(protocol.__annotations__)
        )
        raise SettingsError(f"{value!r} makes no {kind}: it has to have {members}.")
    return plugin


def valid_ranking(name: str, returned: Ranking, passages: int, depth: int) -> Ranking:
    """Return what a retriever gave for a query, in order and cut at ``depth``.

    Raises ``InputError`` for rows out of range, a row twice, or a score that is no number.
    """
    rows, scores = np.asarray(returned.rows), np.asarray(returned.scores, dtype=np.float64)
    if rows.shape != scores.shape or rows.ndim != 1:
        raise InputError(f"The retriever {name!r} returned {rows.shape} rows and {scores.shape} scores.")
    if len(rows) and (rows.min() < 0 or rows.max() >= passages):
        raise InputError(f"The retriever {name!r} returned a row outside 0 to {passages - 1}.")
    if len(np.unique(rows)) < len(rows):
        raise InputError(f"The retriever {name!r} returned a passage twice for one query.")
    if not np.isfinite(scores).all():
        raise InputError(f"The retriever {name!r} returned a score that is not a finite number.")
    return ranking(rows, scores, depth)


def valid_scores(name: str, scores: np.ndarray, texts: int) -> np.ndarray:
    """Return a reranker's scores as float64. Raises ``InputError`` unless there is one finite number per text."""
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (texts,) or not np.isfinite(values).all():
        raise InputError(
            f"The reranker {name!r} returned no finite score per passage (shape {values.shape}, {texts} passages)."
        )
    return values
