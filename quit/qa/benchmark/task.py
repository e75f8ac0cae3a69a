"""A benchmark's task: questions, passages, and the relevance of passages to questions.

A corpus of passages is seen as groups of parts: a release's group is a question, its parts are the five hints, and its
passages all ordered selections of them. A document of any other corpus is a group with one part and one passage. A
passage is a row: group * P + place among the group's P passages. Texts are made when they are asked for: 2.4 million
passages are never in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from quit.common.ids import passage_id
from quit.common.progress import note
from quit.common.safe import safe_id
from quit.dataset.dataset import SPLITS, Dataset
from quit.dataset.paper_names import paper_id, subset_mask
from quit.errors import InputError
from quit.qa.indexes.built import BuiltCorpus
from quit.retrieval.corpus import Corpus
from quit.retrieval.protocols import Documents, Ranking
from quit.retrieval.records import clean_id
from quit.stages.labelling.passages import passage_hints, subset_of

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Z0-9])")


@dataclass(frozen=True, slots=True)
class BenchmarkQuery:
    """A question. ``answers``: the valid ones, for EM; ``gold``: for the judge, those of the source that people did not
    reject, or all valid ones where none is left."""

    question_id: str
    question: str
    answers: tuple[str, ...]
    gold: tuple[str, ...]
    coarse: str | None = None
    fine: str | None = None


class Passages(Protocol):
    """A corpus of passages; it is also :class:`quit.retrieval.protocols.Documents`.

    ``groups``: number of groups; ``subsets``: the parts of each distinct selection, ascending; ``members``: of each
    subset its places among a group's passages; ``size``: passages per group.
    """

    identity: str
    groups: int
    subsets: tuple[tuple[int, ...], ...]
    members: tuple[np.ndarray, ...]
    size: int

    def __len__(self) -> int: ...

    def ids(self, rows: Sequence[int]) -> list[str]: ...

    def texts(self, rows: Sequence[int]) -> list[str]: ...

    def parts(self, group: int) -> tuple[str, ...]:
        """Return the parts of a group: a question's hints in rank order."""

    def sentences(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Return each passage's sentences in reading order: a release's hints."""


class ReleasePassages:
    """Every passage of every question of a release, all splits (the paper's QUIT corpus)."""

    def __init__(self, dataset: Dataset) -> None:
        self.identity = f"release@{dataset.provenance.get('content_id')}"
        self.groups = len(dataset.ids)
        table = dataset.permutations
        self.size = len(table)
        self._ids = dataset.ids
        self._names = [safe_id(question_id) for question_id in dataset.ids]
        self._hints = [tuple(hints) for hints in dataset.hint_lists(np.arange(self.groups))]
        self._permutations = table.permutation.to_pylist()
        codes = table.subset.dictionary_encode()
        self.subsets = tuple(tuple(map(int, text)) for text in codes.dictionary.to_pylist())
        self._subset_of = codes.indices.to_numpy()
        self.members = tuple(np.flatnonzero(self._subset_of == code) for code in range(len(self.subsets)))

    def __len__(self) -> int:
        return self.groups * self.size

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return passage ids as in our exports: ``{question id}_{subset}_{permutation}``."""
        pairs = (divmod(int(row), self.size) for row in rows)
        return [passage_id(self._names[group], self._permutations[permutation]) for group, permutation in pairs]

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Return the rows of passage ids, int64; -1 for an id that no passage has. The question's id is as in exports,
        as it is, or as in the paper's files, whose subsets have one bit per hint."""
        rows = []
        for name in map(clean_id, ids):
            question, subset, permutation = name.rsplit("_", 2) if name.count("_") > 1 else ("", "", "")
            group, place = self._groups.get(question, -1), self._places.get(permutation, -1)
            exists = min(group, place) >= 0 and subset in self._subset_names[place]
            rows.append(group * self.size + place if exists else -1)
        return np.array(rows, dtype=np.int64)

    def first_of_sets(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return, in rank order, the label of the first passage of each set of hints; each unknown row (-1) is a set of
        its own. ``rows``, ``labels``: of ranked passages."""
        groups, places = np.divmod(rows, self.size)
        sets = np.where(rows < 0, -1 - np.arange(len(rows)), groups * len(self.subsets) + self._subset_of[places])
        return labels[np.sort(np.unique(sets, return_index=True)[1])]

    @cached_property
    def _groups(self) -> dict[str, int]:
        spellings = (map(paper_id, self._ids), self._ids, self._names)
        return {clean_id(name): group for names in spellings for group, name in enumerate(names)}

    @cached_property
    def _subset_names(self) -> list[tuple[str, str]]:
        subsets = map(subset_of, self._permutations)
        return [(subset, subset_mask(subset, len(self._hints[0]))) for subset in subsets]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {permutation: place for place, permutation in enumerate(self._permutations)}

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return passages: the hints joined by one space."""
        return [" ".join(hints) for hints in self.sentences(rows)]

    def parts(self, group: int) -> tuple[str, ...]:
        """Return the hints of a question in rank order."""
        return self._hints[group]

    def sentences(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the hints of each passage in reading order."""
        places = (divmod(int(row), self.size) for row in rows)
        return [passage_hints(self._hints[group], self._permutations[place]) for group, place in places]


class TitledPassages(ReleasePassages):
    """The same with the question's id, as in the paper's files, before each text: the authors' code reads it as the
    passage's title."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(dataset)
        self.identity += "/titles"

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return each question's id and passage."""
        names = [paper_id(self._ids[int(row) // self.size]) for row in rows]
        return [f"{name} {text}" for name, text in zip(names, super().texts(rows), strict=True)]


class DocumentPassages:
    """The documents of any corpus as passages: one each."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self.identity = documents.identity
        self.groups, self.size = len(documents), 1
        self.subsets: tuple[tuple[int, ...], ...] = ((0,),)
        self.members: tuple[np.ndarray, ...] = (np.zeros(1, dtype=np.int64),)

    def __len__(self) -> int:
        return self.groups

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the documents' ids, escaped as run files need."""
        return list(map(safe_id, self._documents.ids(rows)))

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the documents' texts."""
        return self._documents.texts(rows)

    def parts(self, group: int) -> tuple[str, ...]:
        """Return the document's text."""
        return (self.texts([group])[0],)

    def sentences(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Return each document's sentences, split where a stop is followed by a capital or a digit."""
        return [tuple(_SENTENCE_END.split(text)) for text in self.texts(rows)]


def open_documents(path: Path) -> Documents:
    """Return the documents of a corpus: of ``quit corpus build``, of a JSONL file, or of a folder of such, of which
    stderr says how many are left out.

    Raises ``InputError`` when there are none.
    """
    if path.is_dir() and BuiltCorpus.read_manifest(path) is not None:
        return BuiltCorpus.open(path)
    corpus = Corpus(path)
    if rejects := corpus.rejects:
        note(f"{path}: documents left out: {len(rejects):,}, the first: {rejects[0].detail}", loud=True)
    return corpus


class Relevance(Protocol):
    """Labels of passages for a task's questions, by place of the question."""

    def labels(self, query: int, rows: np.ndarray) -> np.ndarray:
        """Return the label of each passage, int8; one without a judgement has 0."""

    def judgements(self, query: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return rows and labels (int8) of all judged passages, highest label first; None where only retrieved passages
        are judged."""


@dataclass(frozen=True)
class ReleaseRelevance:
    """A release's own labels. ``groups``: the questions' groups, int64 (Q,); ``own``: their labels, int8 (Q, P)."""

    groups: np.ndarray
    own: np.ndarray

    def labels(self, query: int, rows: np.ndarray) -> np.ndarray:
        """Return 0 for another question's passages, else the release's label."""
        size = self.own.shape[1]
        rows = np.asarray(rows, dtype=np.int64)
        return np.where(rows // size == self.groups[query], self.own[query, rows % size], 0).astype(np.int8)

    def judgements(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and labels of the question's own passages, highest label first."""
        order = np.argsort(-self.own[query], kind="stable")
        return self.groups[query] * self.own.shape[1] + order, self.own[query][order]

    def oracle(self, query: int) -> Ranking:
        """Return every relevant passage of a question in the order of its rows, all with one score: nothing but a
        reranker orders them (paper, section 5.3)."""
        places = np.flatnonzero(self.own[query] > 0)
        return Ranking(self.groups[query] * self.own.shape[1] + places, np.ones(len(places), dtype=np.float32))


@dataclass(frozen=True)
class Task:
    """Questions over one corpus. ``relevance`` is None until retrieved passages are relabelled."""

    name: str
    passages: Passages
    queries: tuple[BenchmarkQuery, ...]
    relevance: Relevance | None

    @cached_property
    def question_ids(self) -> list[str]:
        return [query.question_id for query in self.queries]


def release_task(dataset: Dataset, split: str) -> Task:
    """Return a split's questions over all passages of a release; ``split`` ``all`` takes every question.

    Raises ``InputError`` when the split has no question, saying how many the others have.
    """
    positions = np.arange(len(dataset.ids)) if split == "all" else dataset.positions(split)
    if not len(positions):
        counts = ", ".join(f"{name} {len(dataset.positions(name))}" for name in SPLITS)
        raise InputError(f"The split {split!r} of the release has no question ({counts}). Name another with --split.")
    types = dataset.aligned("descriptions").select(["coarse", "fine"]).to_pylist()
    queries = tuple(
        BenchmarkQuery(
            dataset.ids[position],
            dataset.question_of[position],
            tuple(dataset.valid_answers_of[position]),
            tuple(dataset.gold_answers_of[position]),
            types[position]["coarse"],
            types[position]["fine"],
        )
        for position in positions.tolist()
    )
    relevance = ReleaseRelevance(positions.astype(np.int64), dataset.labels_of(positions))
    return Task("release", ReleasePassages(dataset), queries, relevance)


def mean_words(passages: Passages) -> float:
    """Return the mean length of all passages in words, split on single spaces (paper, table 1 and section 5.1)."""
    copies: Counter[int] = Counter()  # part -> passages of a group that hold it
    for subset, members in zip(passages.subsets, passages.members, strict=True):
        for part in subset:
            copies[part] += len(members)
    words = 0
    for group in range(passages.groups):
        for part, text in enumerate(passages.parts(group)):
            words += len(text.split(" ")) * copies[part]
    return words / len(passages)


def expand(passages: Passages, units: np.ndarray, scores: np.ndarray, depth: int) -> Ranking:
    """Return the ranking of the passages behind scored subsets: unit = group * len(subsets) + subset. All permutations
    of a subset have its score; ties go to the lower row."""
    if not len(units):
        return Ranking(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))
    groups, subsets = np.divmod(units, len(passages.subsets))
    rows = [group * passages.size + passages.members[subset] for group, subset in zip(groups, subsets, strict=True)]
    row_scores = np.repeat(scores, [len(group_rows) for group_rows in rows])
    return ranking(np.concatenate(rows), row_scores, depth)


def ranking(rows: np.ndarray, scores: np.ndarray, depth: int) -> Ranking:
    """Return the ``depth`` best rows, best first, ties by the lower row."""
    order = np.lexsort((rows, -scores))[:depth]
    return Ranking(rows[order].astype(np.int64), scores[order].astype(np.float32))
