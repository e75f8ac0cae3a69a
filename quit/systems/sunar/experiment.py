"""Variants over one corpus, one after the other: what ``quit sunar run`` does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from quit.common.estimate import Estimate
from quit.common.files import read_json
from quit.common.progress import note
from quit.corpora.graph import NeighbourhoodGraph
from quit.errors import SettingsError
from quit.models.factory import Models
from quit.retrieval.built import BuiltCorpus
from quit.retrieval.first_stage import MANIFEST
from quit.retrieval.protocols import FirstStage, NeighbourGraph
from quit.settings import Settings
from quit.systems.collection import chosen, questions
from quit.systems.opening import open_collection
from quit.systems.sunar.assembly import Assembly
from quit.systems.sunar.queries import Query, of_corpus, of_file
from quit.systems.sunar.run import Run
from quit.systems.sunar.variants import effective

_EVERY = 20.0  # seconds between two lines of progress
_SAME = ("workers", "batch", "device")  # settings that change no trace


@dataclass(frozen=True)
class Place:
    """What a run works on: a corpus, its first stage and graph, and the questions."""

    corpus: BuiltCorpus
    first_stage: FirstStage
    graph: NeighbourGraph | None
    queries: list[Query]


def open_place(
    settings: Settings,
    models: Models,
    corpus: Path,
    *,
    graph: Path | None = None,
    indexes: Sequence[Path] = (),
    queries: Path | None = None,
    source: str | None = None,
    kind: str | None = None,
    count: int | None = None,
) -> Place:
    """Open a corpus and what belongs to it; ``indexes`` are fused, without any BM25 is made in memory.

    Raises :class:`InputError` for what cannot be opened, belongs to another corpus, or leaves no question, and
    :class:`SettingsError` for an index or graph of another encoder than the settings name.
    """
    collection = open_collection(corpus, indexes, models, settings)
    documents = collection.corpus
    selection = questions(documents) if queries and source is None and kind is None else chosen(documents, source, kind)
    selected_queries = of_corpus(documents, selection)
    if queries:
        selected_queries = of_file(queries, selected_queries)
    neighbour_graph = NeighbourhoodGraph.open(graph, documents) if graph else None
    _check_encoders(settings, indexes, neighbour_graph)
    if neighbour_graph and settings.sunar.neighbours > neighbour_graph.k:
        raise SettingsError(
            f"sunar.neighbours is {settings.sunar.neighbours}, and the graph {graph} stores {neighbour_graph.k} "
            "per document."
        )
    return Place(documents, collection.first_stage, neighbour_graph, selected_queries[:count])


def run_variants(
    settings: Settings, models: Models, place: Place, names: Sequence[str], out: Path
) -> dict[str, dict[str, Any]]:
    """Run variants over the questions of a place, each in a folder of its name below ``out``; returns their figures."""
    settings_of = {name: effective(settings.sunar, name) for name in names}  # a wrong name before any work
    assembly = Assembly(settings, models)
    library = assembly.library(place.corpus, place.first_stage, place.graph)
    systems = {name: (how, *assembly.system(library, how)) for name, how in settings_of.items()}
    figures = {}
    for name, (how, system, identity) in systems.items():
        described = {"settings": how.model_dump(mode="json", exclude=set(_SAME)), "identity": identity.splitlines()}
        run = Run(out / name, described)
        missing = len(run.missing(place.queries))
        note(f"{name}: {missing} of {len(place.queries)} questions to answer")
        started = time.monotonic()
        run.work(system, place.queries, how.workers, _progress(name, missing))
        if missing:
            note(f"{name}: {missing} questions in {time.monotonic() - started:.1f} s")
        figures[name] = run.finish(place.queries, name)
    return figures


def _check_encoders(settings: Settings, indexes: Sequence[Path], graph: NeighbourhoodGraph | None) -> None:
    encoder = settings.sunar.first_encoder
    encoders = [(read_json(index / MANIFEST) or {}).get("encoder") for index in indexes] or ["bm25"]
    if encoder and encoder not in encoders:
        raise SettingsError(
            f"sunar.first_encoder is {encoder!r}, and the index is of {', '.join(map(str, encoders))}. Make it: "
            f"quit index build --corpus CORPUS --encoder {encoder} --out INDEX, then --index INDEX; or --set "
            "sunar.first_encoder="
        )
    encoder = settings.sunar.graph_encoder
    if encoder and graph and graph.facts["plan"]["encoder"] != encoder:
        raise SettingsError(
            f"sunar.graph_encoder is {encoder!r}, and the graph {graph.path} is of {graph.facts['plan']['encoder']}. "
            f"Make it: quit graph build --encoder {encoder}; or --set sunar.graph_encoder="
        )


def _progress(name: str, total: int) -> Callable[[Query], None]:
    """Return what counts finished questions and says now and then how far it is; called from any thread."""
    estimate, lock = Estimate(total), Lock()
    count, said_at = 0, time.monotonic()

    def done(query: Query) -> None:
        nonlocal count, said_at
        with lock:
            count += 1
            if time.monotonic() - said_at >= _EVERY:
                said_at = time.monotonic()
                note(f"{name}: {estimate.at(count)}")

    return done
