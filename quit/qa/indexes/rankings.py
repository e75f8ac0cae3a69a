"""Rankings over a corpus by other programs, read as a first stage here, as a graph in
:mod:`quit.qa.corpora.neighbours`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from quit.common.checksums import file_checksum
from quit.errors import InputError
from quit.qa.indexes.built import BuiltCorpus
from quit.retrieval.protocols import Ranking
from quit.retrieval.trec import read_run
from quit.sources.fields import quote


@dataclass(frozen=True, slots=True)
class Rankings:
    """What a file ranks. ``by_id``: id of a question or document -> its documents that the corpus has, best first,
    equal scores as in the file. ``checksum``: the file's. ``documents``: ids that are ranked; ``unknown``: those of
    them that the corpus lacks."""

    checksum: str
    by_id: dict[str, Ranking]
    documents: set[str]
    unknown: set[str]


def read_rankings(path: Path, corpus: BuiltCorpus) -> Rankings:
    """Return the rankings of a run (:func:`quit.retrieval.trec.read_run`).

    Ids of documents are the corpus's or its source's (:attr:`BuiltCorpus.rows_by_id`). Raises :class:`InputError` for
    anything else, and where the corpus has none of the documents.
    """
    scores = read_run(path)[1]
    rows = corpus.rows_by_id
    documents = dict.fromkeys(chain.from_iterable(scores.values()))
    if not documents.keys() & rows.keys():
        example = next(map(quote, documents), "nothing")
        raise InputError(
            f"{path} ranks no document of the corpus {corpus.path}: it has {example}, the corpus "
            f"{quote(corpus.ids([0])[0])}. Ids are the corpus's, or those of its sources jsonl and beir."
        )
    by_id = {}
    for name, of_one in scores.items():
        best: dict[int, float] = {}
        for document in sorted(of_one, key=of_one.__getitem__, reverse=True):
            if document in rows:
                best.setdefault(rows[document], of_one[document])
        by_id[name] = Ranking(np.array([*best], dtype=np.int64), np.array([*best.values()], dtype=np.float32))
    return Rankings(file_checksum(path), by_id, {*documents}, documents.keys() - rows.keys())


class RankingStage:
    """Rankings of some questions as a first stage; it knows the texts of these alone. ``by_text``: text -> ranking."""

    def __init__(self, by_text: Mapping[str, Ranking], identity: str) -> None:
        self.identity = identity
        self._by_text = by_text

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` documents per question. Raises ``KeyError`` for another text."""
        rankings = [self._by_text[query] for query in queries]
        return [Ranking(ranking.rows[:depth], ranking.scores[:depth]) for ranking in rankings]
