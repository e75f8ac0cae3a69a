"""The systems and ablations that the paper compares, by name, and their runs over one corpus, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from quit.common.files import read_json
from quit.common.progress import note
from quit.common.rows import tuples
from quit.errors import InputError, SettingsError, check_known, shell_word
from quit.models.factory import Models
from quit.qa.corpora.graph import NeighbourhoodGraph
from quit.qa.indexes.built import BuiltCorpus, building
from quit.qa.indexes.first_stage import MANIFEST
from quit.qa.indexes.rankings import RankingStage, read_rankings
from quit.qa.indexes.scorers import CrossEncoderScorer, LateScorer
from quit.qa.opening import check_selection, open_collection, questions, select_questions
from quit.qa.settings import QaSettings, Sunar
from quit.qa.sunar.assembly import Assembly
from quit.qa.sunar.queries import Query, of_corpus, of_file
from quit.qa.sunar.retrieval import NOTHING, SearchStack, Untitled
from quit.qa.sunar.run import Run
from quit.retrieval.protocols import FirstStage, Ranking, Scorer
from quit.sources.fields import quote

_PLAIN: dict[str, Any] = {"asu": False, "mer": False}
_READ: dict[str, Any] = {"planner": "none", **_PLAIN}
_THINK: dict[str, Any] = {"reading": "chain-of-thought", **_READ}

VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "sunar": ("SUNAR", {"retrieval": "nar", "asu": True, "mer": True}),
    "no-asu": ("SUNAR -ASU", {"retrieval": "nar", "asu": False, "mer": True}),
    "no-mer": ("SUNAR -MER", {"retrieval": "nar", "asu": True, "mer": False}),
    "sunar-r": ("SUNAR_R: -ASU -MER", {"retrieval": "nar", **_PLAIN}),
    "rerank": ("plain re-ranking of every sub-question's documents", {"retrieval": "rerank", **_PLAIN}),
    "first": ("every sub-question's first-stage documents", {"retrieval": "first", **_PLAIN}),
    "prf": ("re-ranking with pseudo-relevance feedback", {"retrieval": "prf", **_PLAIN}),
    "read": ("retrieve and read", {"retrieval": "first", **_READ}),
    "rerank-read": ("retrieve, re-rank and read", {"retrieval": "rerank", **_READ}),
    "prf-read": ("feedback, re-rank and read", {"retrieval": "prf", **_READ}),
    "zero-shot": ("zero-shot chain of thought", {"retrieval": "first", **_READ, "reading": "zero-shot"}),
    "chain-of-thought": ("few-shot chain of thought", {"retrieval": "first", **_THINK}),
    "chain-of-thought-prf": ("the same with feedback", {"retrieval": "prf", **_THINK}),
    "chain-of-thought-nar": ("the same with NAR", {"retrieval": "nar", **_THINK}),
    "gold-evidence": ("the same on relevant documents, an oracle", {"retrieval": "gold", **_THINK}),
    "nar-read": ("SUNAR_R without query understanding", {"retrieval": "nar", **_READ}),
    "react": ("ReAct with SUNAR", {"retrieval": "nar", "asu": True, "mer": True, "planner": "react"}),
    "searchain": ("SearChain with SUNAR", {"retrieval": "nar", "asu": True, "mer": True, "planner": "searchain"}),
    "react-first": ("ReAct on the first stage", {"retrieval": "first", "planner": "react", **_PLAIN}),
    "react-rerank": ("ReAct with re-ranking", {"retrieval": "rerank", "planner": "react", **_PLAIN}),
    "decomp-first": ("Decomp on the first stage", {"retrieval": "first", "planner": "decomp", **_PLAIN}),
    "decomp-rerank": ("Decomp with re-ranking", {"retrieval": "rerank", "planner": "decomp", **_PLAIN}),
    "ircot": (
        "IRCoT on the first stage",
        {"retrieval": "first", "planner": "ircot", "reading": "chain-of-thought", **_PLAIN},
    ),
    "searchain-first": ("SearChain on the first stage", {"retrieval": "first", "planner": "searchain", **_PLAIN}),
    "searchain-rerank": ("SearChain with re-ranking", {"retrieval": "rerank", "planner": "searchain", **_PLAIN}),
    "as-set": ("the settings as they are", {}),
}
"""Name -> (what it is, settings over the profile's)."""
_SAME = ("workers", "batch", "device")  # settings that change no trace


def effective(settings: Sunar, name: str) -> Sunar:
    """Return the settings that a variant runs with, over those of a profile; ``planner`` is never ``auto``.

    Raises :class:`SettingsError` for another name.
    """
    check_known(name, VARIANTS, "variant")
    sunar = settings.model_copy(update=dict(VARIANTS[name][1]))
    if sunar.planner == "auto":
        sunar = sunar.model_copy(update={"planner": "self-ask" if sunar.language_model else "gold"})
    if sunar.retrieval in ("rerank", "prf") and sunar.rerank_first:
        sunar = sunar.model_copy(update={"first": sunar.rerank_first, "c": sunar.rerank_first})
    return sunar


def open_library(
    settings: QaSettings,
    models: Models,
    corpus: Path,
    *,
    graph: Path | None = None,
    indexes: Sequence[Path] = (),
    first: Path | None = None,
    queries: Path | None = None,
    source: str | None = None,
    kind: str | None = None,
    count: int | None = None,
) -> tuple[SearchStack, list[Query]]:
    """Return a corpus with all that belongs to it, and its questions, those of a file, or a selection.

    Several ``indexes`` are fused; without any, BM25 is made in memory. ``first``: rankings of the questions in their
    place (:func:`quit.qa.indexes.rankings.read_rankings`).

    Raises :class:`InputError` for what cannot be opened, belongs to another corpus, or leaves no question, and
    :class:`SettingsError` for an index or graph of another encoder than the settings name, for both ``indexes`` and
    ``first``, and for ``queries`` beside ``source`` or ``kind``.
    """
    sunar = settings.sunar
    check_selection(queries, source, kind)
    if first and indexes:
        raise SettingsError("A run has its first stage by --first or by --index, not by both.")
    documents = BuiltCorpus.open(corpus)
    selection = questions(documents) if queries else select_questions(documents, source, kind)
    selected_queries = of_corpus(documents, selection, by_title=sunar.relevant == "title")
    if queries:
        selected_queries = of_file(queries, selected_queries)
    selected_queries = selected_queries[:count]
    if first:
        stage: FirstStage = _ranking_stage(first, documents, selected_queries)
    else:
        stage = open_collection(corpus, indexes, models, settings).first_stage
    neighbour_graph = NeighbourhoodGraph.open(graph, documents) if graph else None
    _check_encoders(settings, documents.path, None if first else indexes, neighbour_graph)
    if neighbour_graph and sunar.neighbours > neighbour_graph.k:
        raise SettingsError(
            f"sunar.neighbours is {sunar.neighbours}, and the graph {graph} stores {neighbour_graph.k} per document."
        )
    scorer: Scorer = LateScorer(models.encoder)
    if sunar.scorer == "cross-encoder":
        scorer = CrossEncoderScorer(sunar.scorer_model, device=sunar.device, batch=sunar.batch)
    read = documents if sunar.titles else Untitled(documents)
    return SearchStack(read, stage, neighbour_graph, scorer), selected_queries


def _ranking_stage(path: Path, corpus: BuiltCorpus, queries: Sequence[Query]) -> RankingStage:
    """Return the rankings of a file as a first stage; what does not fit is counted on stderr."""
    rankings = read_rankings(path, corpus)
    whole = corpus.queries.filter(pc.is_null(corpus.queries["parent_id"]))
    record_of = dict(tuples(whole, "query_id", "record_id"))
    by_record = {query_id: rankings.by_id[name] for query_id, name in record_of.items() if name in rankings.by_id}
    by_id = by_record | rankings.by_id
    absent = [query.query_id for query in queries if query.query_id not in by_id]
    if len(absent) == len(queries):
        raise InputError(
            f"{path} ranks documents for none of the questions: it has {quote(next(iter(rankings.by_id)))}, the run "
            f"{quote(absent[0])}. Ids are the corpus's or the source's."
        )
    ids, by_text = [query.query_id for query in queries], dict[str, Ranking]()
    for query in queries:
        ranking = by_id.get(query.query_id, NOTHING)
        if by_text.setdefault(query.text, ranking).rows.tolist() != ranking.rows.tolist():
            raise InputError(f"{path} has two rankings for questions with the text {quote(query.text)}: leave one out.")
    others = len(rankings.by_id.keys() - {name for query_id in ids for name in (query_id, record_of.get(query_id))})
    for what, number, of, then in (
        ("documents that the corpus lacks", len(rankings.unknown), len(rankings.documents), "; they are left out"),
        ("questions that this run does not ask", others, len(rankings.by_id), ""),
        ("questions of this run without a ranking", len(absent), len(queries), "; they find no document"),
    ):
        if number:
            note(f"{path}: {what}: {number:,} of {of:,}{then}.", loud=True)
    return RankingStage(by_text, f"rankings@{rankings.checksum[:32]}/{corpus.identity[:12]}")


def run_variants(
    settings: QaSettings, models: Models, library: SearchStack, queries: list[Query], names: Sequence[str], out: Path
) -> dict[str, dict[str, Any]]:
    """Run variants over questions, each in a folder of its name below ``out``; return their figures."""
    if not names:
        raise SettingsError("No variant is named: --variant.")
    settings_of = {name: effective(settings.sunar, name) for name in names}  # a wrong name before any work
    assembly = Assembly(settings, models)
    systems = {name: (sunar, *assembly.system(library, sunar)) for name, sunar in settings_of.items()}
    figures = {}
    for name, (sunar, system, identity) in systems.items():
        description = {"settings": sunar.model_dump(mode="json", exclude=set(_SAME)), "identity": identity.splitlines()}
        with building(out / name, "run"):
            run = Run(out / name, description)
            note(f"{name}: {len(run.missing(queries))} of {len(queries)} questions to answer")
            run.work(system, queries, sunar.workers)
            figures[name] = run.finish(queries, name)
    return figures


def _check_encoders(
    settings: QaSettings, corpus: Path, indexes: Sequence[Path] | None, graph: NeighbourhoodGraph | None
) -> None:
    """Raise ``SettingsError`` unless index and graph of a corpus have the settings' encoders. ``indexes`` None:
    unknown."""
    encoder = "" if indexes is None else settings.sunar.first_encoder
    encoders = [(read_json(index / MANIFEST) or {}).get("encoder") for index in indexes or ()] or ["bm25"]
    if encoder and encoder not in encoders:
        raise SettingsError(
            f"sunar.first_encoder is {encoder!r}, and the index is of {', '.join(map(str, encoders))}. Make it: "
            f"quit index build --corpus {shell_word(corpus)} --encoder {encoder} --out INDEX, then --index INDEX; or "
            "--set sunar.first_encoder="
        )
    encoder = settings.sunar.graph_encoder
    if encoder and graph and graph.facts["plan"]["encoder"] != encoder:
        raise SettingsError(
            f"sunar.graph_encoder is {encoder!r}, and the graph {graph.path} is of {graph.facts['plan']['encoder']}. "
            f"Make it: quit graph build --corpus {shell_word(corpus)} --encoder {encoder} --out GRAPH, then --graph "
            "GRAPH; or --set sunar.graph_encoder="
        )
