"""Retrievers, rerankers and readers by name: those that come with the program, and classes of users.

Ours is ``NAME`` or ``NAME:ARGUMENT``, a user's class ``package.module:Name``. It is made of a :class:`PluginContext`
and is, respectively, a :class:`quit.retrieval.protocols.FirstStage`, a :class:`quit.retrieval.protocols.Scorer` or a
:class:`quit.models.protocols.Reader`. It has an ``identity``, which changes when results change.

Making one must be cheap: ``identity`` is asked for before it is known whether there is anything to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
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
ORACLE = "oracle"
"""Retriever and reranker that know the labels."""

OURS = {
    "retriever": {
        "bm25": "retrievers:Bm25Retriever",
        "minilm": "retrievers:MiniLMRetriever",
        "dense": "retrievers:SentenceRetriever",
        "late": "late:LateRetriever",
    },
    "reranker": {
        "late": "late:LateReranker",
        "cross-encoder": "rerankers:CrossEncoderReranker",
        "monot5": "rerankers:MonoT5",
        "rankt5": "rerankers:RankT5",
        "upr": "rerankers:Upr",
        "listwise": "listwise:ListwiseReranker",
    },
    "reader": {},
}
"""Kind -> name -> class, below this package."""


@dataclass(frozen=True)
class PluginContext:
    """The inputs of a plugin. ``argument``: of ours, the part after ``NAME:``. ``cache``: a folder for vectors and the
    like.

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


def make_retriever(text: str, context: PluginContext) -> FirstStage:
    """Return the retriever of that name. Raises ``SettingsError`` for an unknown name or what is no retriever."""
    return _make("retriever", text, context, FirstStage)


def make_reranker(text: str, context: PluginContext) -> Scorer:
    """Return the reranker of that name. Raises as ``make_retriever``."""
    return _make("reranker", text, context, Scorer)


def make_reader(text: str, context: PluginContext) -> Reader:
    """Return the reader of that name: a reader of the profile, or a class. Raises as ``make_retriever``."""
    profile = [reader.name for reader in context.settings.readers]
    if text in profile:
        return context.models.reader(text, context.collection)
    check_name("reader", text, profile)
    return _make("reader", text, context, Reader)


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


def check_name(kind: str, text: str, more: Sequence[str] = ()) -> None:
    """Raise ``SettingsError`` for a name that is neither one of ours, nor one of ``more``, nor a class. ``kind``: of
    :data:`OURS`."""
    every = [*OURS[kind], *more]
    if text in more or split_name(text)[0] in every:
        return
    unknown = f"There is no {kind} {text!r}.{did_you_mean(text, every)}"
    if ":" not in text:
        raise SettingsError(unknown)
    try:
        imported_class(text, kind)
    except SettingsError as error:
        raise SettingsError(f"{unknown} As a {error}") from error


def _make(kind: str, text: str, context: PluginContext, protocol: Any) -> Any:
    check_name(kind, text)
    name, argument = split_name(text)
    if ours := OURS[kind].get(name):
        module, _, attribute = ours.partition(":")
        maker = getattr(import_module(f"{__package__}.{module}"), attribute)
    else:
        maker, argument = imported_class(text, kind), ""
    with user_code(f"The {kind} {text!r} cannot be made of a PluginContext:", SettingsError):
        plugin = maker(replace(context, argument=argument))
    if not isinstance(plugin, protocol):
        members = ", ".join(
            sorted(member for member in dir(protocol) if not member.startswith("_")) + list(protocol.__annotations__)
        )
        raise SettingsError(f"{text!r} makes no {kind}: it has to have {members}.")
    return plugin


def valid_ranking(name: str, returned: Ranking, passages: int, depth: int) -> Ranking:
    """Return what a retriever gave for a query, in order and cut at ``depth``.

    Raises ``InputError`` for rows out of range, a row twice, or a score that is no number.
    """
    rows, scores = returned.rows, returned.scores
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
