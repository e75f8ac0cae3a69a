"""A benchmark's task: questions, passages, and the relevance of passages to questions.

A corpus of passages is seen as groups of parts: a release's group is a question, its parts are the hints, and its
passages ordered selections of them, any number per question. A document of any other corpus is a group with one part
and one passage. A passage is a row; the rows of a group are together, groups in order. Texts are made when they are
asked for: 2.4 million passages are never in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

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
from quit.stages.labelling.passages import passage_hints

if TYPE_CHECKING:  # SciPy is a tenth of the time to import this module, and many need no units
    from scipy import sparse

_mask = cache(subset_mask)
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


@dataclass(frozen=True)
class Units:
    """Selections of parts of a group: the passages of one unit have the same parts, each in another order.

    ``group``: int64, shape (units,), ascending. ``parts``: CSR of ones, float32, shape (units, parts of all groups in
    order). ``rows``: CSR of ones, int8, shape (units, passages).
    """

    group: np.ndarray
    parts: sparse.csr_array
    rows: sparse.csr_array

    @property
    def sizes(self) -> np.ndarray:
        """Parts of each unit."""
        return np.diff(self.parts.indptr)

    @property
    def firsts(self) -> np.ndarray:
        """The first passage of each unit, in QUIT that in rank order."""
        return self.rows.indices[self.rows.indptr[:-1]]

    @cached_property
    def of_row(self) -> np.ndarray:
        """The unit of each passage."""
        return self.rows.tocsc().indices


class Passages(Protocol):
    """A corpus of passages; it is also :class:`quit.retrieval.protocols.Documents`. ``groups``: number of groups."""

    identity: str
    groups: int

    @property
    def units(self) -> Units: ...

    def __len__(self) -> int: ...

    def ids(self, rows: Sequence[int]) -> list[str]: ...

    def texts(self, rows: Sequence[int]) -> list[str]: ...

    def parts(self, group: int) -> tuple[str, ...]:
        """Return the parts of a group: a question's hints in rank order."""

    def sentences(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Return each passage's sentences in reading order: a release's hints."""


class ReleasePassages:
    """Every passage of every question of a release, all splits (the paper's QUIT corpus).

    ``starts``: each group's first row and, last, the number of passages, int64.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.identity = f"release@{dataset.provenance.get('content_id')}"
        self.groups = len(dataset.ids)
        self._ids = dataset.ids
        self._names = [safe_id(question_id) for question_id in dataset.ids]
        self._hints = [tuple(hints) for hints in dataset.hint_lists(np.arange(self.groups))]
        rows = dataset.rows
        self._table, self._codes, self.starts = rows.table, rows.codes, rows.starts
        self._permutations, self._subsets = self._table.permutation.to_pylist(), self._table.subset.to_pylist()
        self._code_of = {permutation: code for code, permutation in enumerate(self._permutations)}
        self._own = None if dataset.given is None else [safe_id(name) for name in dataset.given["id"].to_pylist()]

    def __len__(self) -> int:
        return len(self._codes)

    @cached_property
    def units(self) -> Units:
        """The sets of hints, question by question, each question's in the order of their first permutation."""
        from scipy import sparse

        subsets, table = self._table.subset.dictionary_encode(), self._table
        count, owner = len(subsets.dictionary), np.repeat(np.arange(self.groups), np.diff(self.starts))
        places = owner * count + subsets.indices.to_numpy()[self._codes], np.arange(len(self))
        rows = sparse.csr_array((np.ones(len(self), np.int8), places), shape=(self.groups * count, len(self)))
        present = np.flatnonzero(np.diff(rows.indptr))
        rows, group = rows[present], present // count
        first_parts = np.cumsum([0, *map(len, self._hints)])
        hints = np.ones(len(table.indices), np.float32), table.indices.astype(np.int32), table.offsets
        parts = sparse.csr_array(hints, shape=(len(self._permutations), first_parts[-1]))
        parts = parts[self._codes[rows.indices[rows.indptr[:-1]]]]
        parts.sort_indices()
        parts.indices += np.repeat(first_parts[group], np.diff(parts.indptr)).astype(np.int32)
        return Units(group, parts, rows)

    def _places(self, rows: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield the group and the permutation of each row."""
        some = np.asarray(rows, dtype=np.int64)
        groups = np.searchsorted(self.starts, some, side="right") - 1
        return zip(groups.tolist(), map(self._permutations.__getitem__, self._codes[some].tolist()), strict=True)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return passage ids as in our exports: ``{question id}_{subset}_{permutation}``, or given passages' own."""
        if self._own is not None:
            return [self._own[row] for row in rows]
        return [passage_id(self._names[group], permutation) for group, permutation in self._places(rows)]

    def rows(self, ids: Sequence[str], question: str = "") -> np.ndarray:
        """Return the rows of passage ids, int64; -1 for an id that no passage has. The question's id is as in exports,
        as it is, or as in the paper's files, whose subsets have one bit per hint. Of a given passage of several
        questions, the row of ``question``, or else its first."""
        if self._own is not None:
            group, row_of = self._groups.get(clean_id(question), -1), self._row_of
            own = {} if group < 0 else {self._own[row]: row for row in range(*self.starts[group : group + 2].tolist())}
            names = [clean_id(name) for name in ids]  # of an export, or as given
            names = [name if name in row_of else safe_id(name) for name in names]
            return np.array([own.get(name, row_of.get(name, -1)) for name in names], np.int64)
        keys = np.full(len(ids), -1, dtype=np.int64)
        for number, name in enumerate(map(clean_id, ids)):
            question, subset, permutation = name.rsplit("_", 2) if name.count("_") > 1 else ("", "", "")
            group, code = self._groups.get(question, -1), self._code_of.get(permutation, -1)
            if min(group, code) >= 0 and subset in (own := self._subsets[code], _mask(own, len(self._hints[group]))):
                keys[number] = group * len(self._permutations) + code
        rows = np.searchsorted(self._keys, keys)
        return np.where(self._keys.take(rows, mode="clip") == keys, rows, -1)

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {name: row for row, name in reversed([*enumerate(self._own or ())])}

    @cached_property
    def _keys(self) -> np.ndarray:
        """What tells the question and the permutation of each row, int64, ascending."""
        return np.repeat(np.arange(self.groups) * len(self._permutations), np.diff(self.starts)) + self._codes

    @cached_property
    def _groups(self) -> dict[str, int]:
        spellings = (map(paper_id, self._ids), self._ids, self._names)
        return {clean_id(name): group for names in spellings for group, name in enumerate(names)}

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return passages: the hints joined by one space."""
        return [" ".join(hints) for hints in self.sentences(rows)]

    def parts(self, group: int) -> tuple[str, ...]:
        """Return the hints of a question in rank order."""
        return self._hints[group]

    def sentences(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the hints of each passage in reading order."""
        return [passage_hints(self._hints[group], permutation) for group, permutation in self._places(rows)]


class TitledPassages(ReleasePassages):
    """The same with the question's id, as in the paper's files, before each text: the authors' code reads it as the
    passage's title."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(dataset)
        self.identity += "/titles"

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return each question's id and passage."""
        names = [paper_id(self._ids[group]) for group, _ in self._places(rows)]
        return [f"{name} {text}" for name, text in zip(names, super().texts(rows), strict=True)]


class DocumentPassages:
    """The documents of any corpus as passages: one each."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self.identity = documents.identity
        self.groups = len(documents)

    def __len__(self) -> int:
        return self.groups

    @cached_property
    def units(self) -> Units:
        """Each document."""
        from scipy import sparse

        alone = [sparse.eye_array(self.groups, dtype=kind, format="csr") for kind in (np.float32, np.int8)]
        return Units(np.arange(self.groups), *alone)

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

    def judgements(self, query: int) -> np.ndarray | None:
        """Return the labels (int8) of all judged passages, highest first; None where only retrieved passages are
        judged."""


@dataclass(frozen=True)
class ReleaseRelevance:
    """A release's own labels. ``groups``: the questions' groups, int64 (Q,). ``starts``: each group's first row and,
    last, the number of passages. ``own``: int8, the label that each passage has for its own question; 0 where that is
    none of these."""

    groups: np.ndarray
    starts: np.ndarray
    own: np.ndarray

    def rows(self, query: int) -> range:
        """Return the rows of a question's own passages."""
        group = self.groups[query]
        return range(*self.starts[group : group + 2].tolist())

    def labels(self, query: int, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return 0 for another question's passages, else the release's label."""
        own, some = self.rows(query), np.asarray(rows, dtype=np.int64)
        return np.where((own.start <= some) & (some < own.stop), self.own[some], 0).astype(np.int8)

    def judgements(self, query: int) -> np.ndarray:
        """Return the labels of the question's own passages, highest first."""
        own = self.rows(query)
        return np.sort(self.own[own.start : own.stop])[::-1]

    def oracle(self, query: int) -> Ranking:
        """Return every relevant passage of a question in the order of its rows, all with one score: nothing but a
        reranker orders them (paper, section 5.3)."""
        own = self.rows(query)
        rows = own.start + np.flatnonzero(self.own[own.start : own.stop] > 0)
        return Ranking(rows, np.ones(len(rows), dtype=np.float32))


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
    passages = ReleasePassages(dataset)
    own = np.zeros(len(passages), dtype=np.int8)
    in_split = np.isin(np.arange(passages.groups), positions)
    own[np.repeat(in_split, np.diff(passages.starts))] = dataset.grades_of(positions)
    return Task("release", passages, queries, ReleaseRelevance(positions.astype(np.int64), passages.starts, own))


def mean_words(passages: Passages) -> float:
    """Return the mean length of all passages in words, split on single spaces (paper, table 1 and section 5.1)."""
    parts = (part for group in range(passages.groups) for part in passages.parts(group))
    words = np.fromiter((len(part.split(" ")) for part in parts), dtype=np.int64)
    units = passages.units
    return float(np.diff(units.rows.indptr) @ (units.parts @ words)) / len(passages)


def expand(passages: Passages, units: np.ndarray, scores: np.ndarray, depth: int) -> Ranking:
    """Return the ranking of the passages behind scored units. All passages of a unit have its score; ties go to the
    lower row."""
    rows = passages.units.rows[units]
    return ranking(rows.indices, np.repeat(scores, np.diff(rows.indptr)), depth)


def ranking(rows: np.ndarray, scores: np.ndarray, depth: int) -> Ranking:
    """Return the ``depth`` best rows, best first, ties by the lower row."""
    order = np.lexsort((rows, -scores))[:depth]
    return Ranking(rows[order].astype(np.int64), scores[order].astype(np.float32))
