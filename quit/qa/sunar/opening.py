"""A corpus with all that a run needs of it, and the questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc

from quit.common.progress import note
from quit.common.rows import tuples
from quit.errors import InputError, SettingsError
from quit.models.factory import Models
from quit.qa.corpora.graph import NeighbourhoodGraph
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.first_stage import index_encoder
from quit.qa.indexes.rankings import RankingStage, read_rankings
from quit.qa.indexes.scorers import CrossEncoderScorer, LateScorer
from quit.qa.opening import check_selection, open_collection, questions, select_questions
from quit.qa.settings import QaSettings, Sunar
from quit.qa.sunar.queries import Query, of_corpus, of_file
from quit.qa.sunar.retrieval import NOTHING, SearchStack, Untitled
from quit.retrieval.protocols import FirstStage, Ranking, Scorer
from quit.sources.fields import quote
from quit.text.words import shell_word


def open_queries(
    corpus: BuiltCorpus,
    settings: Sunar,
    path: Path | None = None,
    source: str | None = None,
    kind: str | None = None,
    count: int | None = None,
) -> list[Query]:
    """Return the questions of a file, or a selection of the corpus's.

    Raises :class:`InputError` for a file that cannot be read or where no question is left, and :class:`SettingsError`
    for a file beside ``source`` or ``kind``.
    """
    check_selection(path, source, kind)
    selection = questions(corpus) if path else select_questions(corpus, source, kind)
    queries = of_corpus(corpus, selection, by_title=settings.relevant == "title")
    return (of_file(path, queries) if path else queries)[:count]


def open_stack(
    settings: QaSettings,
    models: Models,
    corpus: BuiltCorpus,
    queries: Sequence[Query],
    *,
    graph: Path | None = None,
    indexes: Sequence[Path] = (),
    first: Path | None = None,
) -> SearchStack:
    """Return a corpus with all that belongs to it.

    Several ``indexes`` are fused; without any, BM25 is made in memory. ``first``: rankings of the ``queries`` in their
    place (:func:`quit.qa.indexes.rankings.read_rankings`).

    Raises :class:`InputError` for what cannot be opened or belongs to another corpus, and :class:`SettingsError` for an
    index or graph of another encoder than the settings name, and for both ``indexes`` and ``first``.
    """
    sunar = settings.sunar
    if first and indexes:
        raise SettingsError("A run has its first stage by --first or by --index, not by both.")
    stage: FirstStage
    if first:
        stage = _ranking_stage(first, corpus, queries)
    else:
        stage = open_collection(corpus.path, indexes, models, settings).first_stage
    neighbour_graph = NeighbourhoodGraph.open(graph, corpus) if graph else None
    _check_encoders(settings, corpus.path, None if first else indexes, neighbour_graph)
    if neighbour_graph and sunar.neighbours > neighbour_graph.k:
        raise SettingsError(
            f"sunar.neighbours is {sunar.neighbours}, and the graph {graph} stores {neighbour_graph.k} per document."
        )
    scorer: Scorer = LateScorer(models.encoder)
    if sunar.scorer == "cross-encoder":
        scorer = CrossEncoderScorer(sunar.scorer_model, device=sunar.device, batch=sunar.batch)
    return SearchStack(corpus if sunar.titles else Untitled(corpus), stage, neighbour_graph, scorer)


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


def _check_encoders(
    settings: QaSettings, corpus: Path, indexes: Sequence[Path] | None, graph: NeighbourhoodGraph | None
) -> None:
    """Raise ``SettingsError`` unless index and graph of a corpus have the settings' encoders. ``indexes`` None:
    unknown."""
    encoder = "" if indexes is None else settings.sunar.first_encoder
    encoders = [index_encoder(index) for index in indexes or ()] or ["bm25"]
    if encoder and encoder not in encoders:
        raise SettingsError(
            f"sunar.first_encoder is {encoder!r}, and the index is of {', '.join(encoders)}. Make it: "
            f"quit index build --corpus {shell_word(corpus)} --encoder {encoder} --out INDEX, then --index INDEX; or "
            "--set sunar.first_encoder="
        )
    encoder = settings.sunar.graph_encoder
    if encoder and graph and graph.encoder != encoder:
        raise SettingsError(
            f"sunar.graph_encoder is {encoder!r}, and the graph {graph.path} is of {graph.encoder}. "
            f"Make it: quit graph build --corpus {shell_word(corpus)} --encoder {encoder} --out GRAPH, then --graph "
            "GRAPH; or --set sunar.graph_encoder="
        )
