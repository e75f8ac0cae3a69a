"""Which question and which passage an id in somebody's run file is: as in our exports, as it is, or as in the paper's
files, whose subsets have one bit per hint; a question's also as its source has it."""

from __future__ import annotations

from bisect import bisect_left
from collections import ChainMap, Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from quit.common.ids import question_id
from quit.common.rows import first_by, grouped
from quit.common.safe import safe_id
from quit.dataset.paper_names import paper_id, subset_mask
from quit.qa.benchmark.passages import ReleasePassages
from quit.qa.benchmark.task import ReleaseTask
from quit.retrieval.records import clean_id


def names_in_run(task: ReleaseTask, lines: Collection[str]) -> list[str]:
    """Return how the run's ``lines`` name each question of a task; the first spelling where they do not."""
    spellings = [
        [*map(clean_id, (safe_id(query.question_id), query.question_id, paper_id(query.question_id), query.question))]
        for query in task.queries
    ]
    exact = {*chain.from_iterable(spellings)}
    ends = Counter(name.partition("-")[2] for name in task.passages.question_ids)
    of_source = grouped((question_id("", name)[1:], name) for name in lines if name not in exact)
    for query, names in zip(task.queries, spellings, strict=True):  # the source's, where no other can be meant
        end = query.question_id.partition("-")[2]
        names += of_source[end] if len(of_source.get(end, ())) == ends[end] == 1 else []
    return [next((name for name in names if name in lines), names[0]) for names in spellings]


class PassageIndex:
    """The row of each passage of a release by its id."""

    def __init__(self, passages: ReleasePassages) -> None:
        self._passages = passages
        ids = passages.question_ids
        spellings = (map(paper_id, ids), ids, map(safe_id, ids))
        self._group_of = {clean_id(name): group for names in spellings for group, name in enumerate(names)}
        self._code_of = {permutation: code for code, permutation in enumerate(passages.permutations)}
        self._first_row_of = first_by((name, row) for row, name in enumerate(passages.given_ids or ()))

    def rows(self, ids: Sequence[str], question: str) -> np.ndarray:
        """Return the rows of passage ids, int64; -1 for an id that no passage has. Of a given passage of several
        questions, the row of ``question``, or else its first."""
        names = map(clean_id, ids)
        rows = map(self._row, names) if self._passages.given_ids is None else self._given_rows(names, question)
        return np.fromiter(rows, np.int64, len(ids))

    def _row(self, name: str) -> int:
        question, subset, permutation = name.rsplit("_", 2) if name.count("_") > 1 else ("", "", "")
        group, code = self._group_of.get(question, -1), self._code_of.get(permutation, -1)
        if group < 0 or code < 0:
            return -1
        mask = subset_mask(permutation, len(self._passages.parts(group)))
        first, stop = self._passages.starts[group : group + 2].tolist()
        row = bisect_left(self._passages.codes, code, first, stop)
        is_passage = row < stop and self._passages.codes[row] == code and subset in ("".join(sorted(permutation)), mask)
        return row if is_passage else -1

    def _given_rows(self, names: Iterable[str], question: str) -> Iterator[int]:
        given_ids, group = self._passages.given_ids or [], self._group_of.get(clean_id(question), -1)
        own_rows = range(*self._passages.starts[group : group + 2].tolist()) if group >= 0 else ()
        row_of = ChainMap({given_ids[row]: row for row in own_rows}, self._first_row_of)
        for name in names:  # of an export, or as given
            yield row_of.get(name if name in row_of else safe_id(name), -1)
