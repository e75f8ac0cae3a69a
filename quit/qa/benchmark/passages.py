"""Passages of a release or of any other corpus, as the benchmark's retrievers and rerankers see them.

A corpus of passages is seen as groups of parts: a release's group is a question, its parts are the hints, and its
passages ordered selections of them, any number per question. A document of any other corpus is a group with one part
and one passage. A passage is a row; the rows of a group are together, groups in order. Texts are made when they are
asked for: 2.4 million passages are never in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from quit.common.ids import passage_id
from quit.common.progress import note
from quit.common.safe import safe_id
from quit.dataset.dataset import Dataset
from quit.dataset.paper_names import paper_id
from quit.qa.indexes.built import BuiltCorpus
from quit.retrieval.corpus import Corpus
from quit.retrieval.protocols import Documents, Ranking
from quit.stages.labelling.passages import passage_hints

if TYPE_CHECKING:  # SciPy is a tenth of the time to import this module, and many need no units
    from scipy import sparse

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Z0-9])")


@dataclass(frozen=True, eq=False)
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


class Passages(Documents, Protocol):
    """A corpus of passages. ``groups``: number of groups."""

    groups: int

    @property
    def units(self) -> Units: ...

    def parts(self, group: int) -> tuple[str, ...]:
        """Return the parts of a group: a question's hints in rank order."""

    def sentences(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Return each passage's sentences in reading order: a release's hints."""


class ReleasePassages:
    """Every passage of every question of a release, all splits (the paper's QUIT corpus).

    A group is a question of ``question_ids``. ``starts``: each group's first row and, last, the number of passages,
    int64. ``codes``: the place of each row's permutation among ``permutations``, int32, ascending in a group.
    ``given_ids``: the passages' own ids where they were given.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.identity = f"release@{dataset.provenance.get('content_id')}"
        self.question_ids = dataset.ids
        self.groups = len(dataset.ids)
        self._names = [safe_id(question_id) for question_id in dataset.ids]
        self._hints = [tuple(hints) for hints in dataset.hint_lists(np.arange(self.groups))]
        rows = dataset.rows
        self._table, self.codes, self.starts = rows.table, rows.codes, rows.starts
        self.permutations: list[str] = self._table.permutation.to_pylist()
        self.given_ids = None if dataset.given is None else [safe_id(name) for name in dataset.given["id"].to_pylist()]

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def units(self) -> Units:
        """The sets of hints, question by question, each question's in the order of their first permutation."""
        from scipy import sparse

        subsets, table = self._table.subset.dictionary_encode(), self._table
        count, group_of_row = len(subsets.dictionary), np.repeat(np.arange(self.groups), np.diff(self.starts))
        set_of_row = group_of_row * count + subsets.indices.to_numpy()[self.codes]
        ones = np.ones(len(self), np.int8)
        rows = sparse.csr_array((ones, (set_of_row, np.arange(len(self)))), shape=(self.groups * count, len(self)))
        present = np.flatnonzero(np.diff(rows.indptr))
        rows, group = rows[present], present // count
        first_parts = np.cumsum([0, *map(len, self._hints)])
        hints = np.ones(len(table.indices), np.float32), table.indices.astype(np.int32), table.offsets
        parts = sparse.csr_array(hints, shape=(len(self.permutations), first_parts[-1]))
        parts = parts[self.codes[rows.indices[rows.indptr[:-1]]]]
        parts.sort_indices()
        parts.indices += np.repeat(first_parts[group], np.diff(parts.indptr)).astype(np.int32)
        return Units(group, parts, rows)

    def _orders(self, rows: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield the group and the permutation of each row."""
        row_array = np.asarray(rows, dtype=np.int64)
        groups = np.searchsorted(self.starts, row_array, side="right") - 1
        return zip(groups.tolist(), map(self.permutations.__getitem__, self.codes[row_array].tolist()), strict=True)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return passage ids as in our exports: ``{question id}_{subset}_{permutation}``, or given passages' own."""
        if self.given_ids is not None:
            return [self.given_ids[row] for row in rows]
        return [passage_id(self._names[group], permutation) for group, permutation in self._orders(rows)]

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return passages: the hints joined by one space."""
        return [" ".join(hints) for hints in self.sentences(rows)]

    def parts(self, group: int) -> tuple[str, ...]:
        """Return the hints of a question in rank order."""
        return self._hints[group]

    def sentences(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the hints of each passage in reading order."""
        return [passage_hints(self._hints[group], permutation) for group, permutation in self._orders(rows)]


class TitledPassages(ReleasePassages):
    """The same with the question's id, as in the paper's files, before each text: the authors' code reads it as the
    passage's title."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(dataset)
        self.identity += "/titles"

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return each question's id and passage."""
        names = [paper_id(self.question_ids[group]) for group, _ in self._orders(rows)]
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
