"""Which passages a question's hints make: the settings ``passages``.

QUIT's design is all ordered selections of five hints (paper, section 3.2.1). Other designs take some sizes, some
orders, or only the sets of hints with the lowest and highest mean convergence or cosine, as Mozafari, Piryani and
Jatowt (SIGIR 2026) do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.arithmetic import products
from quit.common.columns import plain
from quit.common.rows import Row, grouped
from quit.errors import SettingsError
from quit.models.protocols import Encoder
from quit.settings import PassageDesign
from quit.stages.labelling.passages import PermutationTable, enumerate_passages, permutation_name

Subset = tuple[int, ...]


@lru_cache(maxsize=64)
def design_table(n: int, design: PassageDesign, source: Subset = ()) -> PermutationTable:
    """Return the passages of a question of ``n`` hints before a choice of extremes. ``source``: the hints (by rank) in
    the order of their source, where the design has it. Raises ``SettingsError`` for too many passages, or none."""
    if not design.extremes:
        check_passages(n, design)
    return _ordered(subsets(n, design), design, source)


def planned_paths(design: PassageDesign, n: int) -> Sequence[Subset]:
    """Return the passages of a question of ``n`` hints, as its hints in reading order; with extremes, as many as it
    has at most, evenly from those before the choice. Raises as :func:`design_table`."""
    paths = design_table(n, design, tuple(range(n))).paths
    places = np.linspace(0, len(paths) - 1, min(len(paths), design.count(n))).round().astype(int)
    return [paths[place] for place in places]


def subsets(n: int, design: PassageDesign) -> Iterator[Subset]:
    """Yield the sets of ``n`` hints that make passages, before a choice of extremes."""
    return itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in sorted(design.sizes))


def extremes(values: np.ndarray, sets: Sequence[Subset], count: int) -> list[int]:
    """Return the places of the ``count`` sets with the lowest mean of their hints' values, lowest first, then of those
    with the highest, highest first; ties go to the earlier set. ``values``: float64, shape (hints,)."""
    means = np.round([values[list(ranks)].sum() / len(ranks) for ranks in sets], 9)
    places = np.arange(len(sets))
    return [place for key in (means, -means) for place in np.lexsort((places, key))[:count].tolist()]


def cosines(encoder: Encoder, questions: Sequence[str], hints: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Return the cosines of each question and its hints: float64, shape (hints,) each. All are encoded together."""
    vectors = encoder.encode([text for question, texts in zip(questions, hints) for text in (question, *texts)])
    parts = np.split(vectors, np.cumsum([1 + len(texts) for texts in hints])[:-1])
    return [products(part[:1], part[1:])[0].astype(np.float64) for part in parts]


def design_passages(
    design: PassageDesign,
    questions: Mapping[str, Sequence[Row]],
    by_cosine: Callable[[str, Sequence[Subset]], Iterable[int]] | None = None,
) -> pa.Table:
    """Return the table ``passages``. ``questions``: of :func:`hints_of`; ``by_cosine``: the places of the sets that a
    question's cosines choose, asked only where the design has them. Raises ``SettingsError`` as :func:`design_table`
    does."""
    tables = {question_id: _table(design, question_id, hints, by_cosine) for question_id, hints in questions.items()}
    pieces = [contracts.table("passages").schema.empty_table()]
    for _, same in itertools.groupby(tables, key=lambda question_id: id(tables[question_id])):
        question_ids = list(same)
        pieces.append(enumerate_passages(question_ids, tables[question_ids[0]]))
    return pa.concat_tables(pieces)


def hints_of(ids: pa.Array, hints: pa.Table, ranked_hints: pa.Table) -> dict[str, list[Row]]:
    """Return question id -> its rows of ``ranked_hints`` that make passages, in rank order, with ``position``: the
    hint's place in the source (from ``hints``)."""
    selected = ranked_hints.filter(ranked_hints["selected"]).sort_by("rank")
    places = pc.index_in(plain(selected["hint_id"]), plain(hints["hint_id"]))
    rows = selected.append_column("position", pc.fill_null(hints["position"].take(places), 0)).to_pylist()
    by_question = grouped((row["question_id"], row) for row in rows)
    return {question_id: by_question[question_id] for question_id in ids.to_pylist() if question_id in by_question}


def _table(
    design: PassageDesign,
    question_id: str,
    hints: Sequence[Row],
    by_cosine: Callable[[str, Sequence[Subset]], Iterable[int]] | None,
) -> PermutationTable:
    source: Subset = ()
    if "source" in design.orders:
        source = tuple(sorted(range(len(hints)), key=lambda rank: hints[rank]["position"]))
    if not design.extremes:
        return design_table(len(hints), design, source)
    check_passages(len(hints), design)
    sets, places = list(subsets(len(hints), design)), set[int]()
    if "convergence" in design.by:
        places.update(extremes(np.array([hint["convergence"] or 0.0 for hint in hints]), sets, design.extremes))
    if "cosine" in design.by:
        assert by_cosine is not None
        places.update(by_cosine(question_id, sets))
    return _ordered((sets[place] for place in places), design, source)


def _ordered(sets: Iterable[Subset], design: PassageDesign, source: Subset) -> PermutationTable:
    """Return the passages of some sets of hints: their orders."""
    if design.all_orders:
        orders = itertools.chain.from_iterable(map(itertools.permutations, sets))
        return PermutationTable.of(map(permutation_name, orders))
    order_of: dict[str, Callable[[Subset], Sequence[int]]] = {
        "descending": lambda ranks: ranks,
        "ascending": lambda ranks: ranks[::-1],
        "source": lambda ranks: sorted(ranks, key=source.index),
    }
    names = {permutation_name(order_of[order](ranks)) for ranks in sets for order in design.orders}
    return PermutationTable.of(names)


def check_hint_counts(question_ids: pa.ChunkedArray, design: PassageDesign) -> None:
    """Raise as :func:`check_passages` for a question of usable hints. ``question_ids``: of each hint."""
    for count in {*pc.value_counts(plain(question_ids)).field("counts").to_pylist()}:
        check_passages(min(count, design.most_hints), design)


def check_passages(n: int, design: PassageDesign) -> None:
    """Raise ``SettingsError`` where a question of ``n`` hints has no passage, or too many."""
    try:
        design.check(n)
    except ValueError as error:
        raise SettingsError(f"{error}.") from error
