"""NAR over subsets of hints: passages against brute force, a walk by hand."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from quit.errors import InputError
from quit.qa.benchmark import neighbours
from quit.qa.benchmark.neighbours import Selected
from quit.qa.benchmark.plugins import make_retriever
from tests.qa.benchmark.test_retrievers import DESIGNS, passages_of, texts_of


@pytest.mark.parametrize("first_order", [False, True])
@pytest.mark.parametrize("hints", [0, 1, 2, 3])
@pytest.mark.parametrize("make", DESIGNS)
def test_selected_passages_are_those_of_so_many_hints(make, hints: int, first_order: bool) -> None:
    passages = make()
    selected = Selected(passages, hints, first_order=first_order)
    wanted: dict[str, list[str]] = {}  # set of hints -> its passages
    for name in passages.ids(range(len(passages))):
        subset, _, permutation = name.rpartition("_")
        if hints in (0, len(permutation)):
            wanted.setdefault(subset, []).append(name)
    wanted = {subset: names[:1] if first_order else names for subset, names in wanted.items()}
    rows = range(len(selected))
    names = selected.ids(rows)
    assert sorted(names) == sorted(itertools.chain(*wanted.values()))
    assert selected.texts(rows) == [" ".join(own) for own in selected.sentences(rows)] == texts_of(passages, names)
    units, parts = selected.units, [part for group in range(4) for part in passages.parts(group)]
    for number, of_unit in enumerate(np.split(np.array(names, dtype=object), units.rows.indptr[1:-1])):
        assert of_unit.tolist() == wanted.pop(of_unit[0].rpartition("_")[0])
        [own] = selected.sentences([units.firsts[number]])
        assert sorted(own) == sorted(parts[part] for part in units.parts[[number]].indices)
    assert not wanted
    assert [f"q{group}" for group in np.repeat(range(4), np.diff(selected.starts))] == [name[:2] for name in names]


VECTORS = {
    **dict.fromkeys(("apple", "apple tree", "apple apple tree"), (1.0, 0.0)),
    **{"pear": (0.8, 0.6), "pear plum": (0.6, 0.8), "plum": (0.0, 1.0)},
}
SCORES = {"apple": 0.2, "apple tree": 0.4, "apple apple tree": 0.5, "pear": 0.9}
FAKE = SimpleNamespace(  # MiniLM and late interaction of a few texts
    name="fake",
    identity="fake",
    documents=lambda texts: np.array([VECTORS[text] for text in texts], dtype=np.float32),
    score=lambda _, texts: np.array([SCORES[text] for text in texts]),
)


@pytest.mark.parametrize(
    ("count", "rows"),
    [
        # R by BM25: apple apple tree, apple, apple tree. Every apple's nearest text of the other question is pear.
        # Batches of one: apple apple tree (R), pear (N), apple (R). Passages: both orders of apple apple tree.
        (1, [4, 1, 3, 0]),
        (0, [1, 3, 2, 0]),  # no graph: all of R
    ],
)
def test_nar_walks_to_another_question(world, monkeypatch, count: int, rows: list[int]) -> None:
    for name in ("EmbeddedEncoder", "LateReranker"):
        monkeypatch.setattr(neighbours, name, lambda _: FAKE)
    passages = passages_of(parts=[("apple", "apple tree"), ("pear", "plum")])  # of each: 0, 01, 1, 10
    context = world.context("sunar.b=1", "sunar.c=3", passages=passages)
    retriever = make_retriever(f"nar:bm25,{count}", context)
    [ranking] = retriever.search(["apple"], 10)
    assert ranking.rows.tolist() == rows
    [again] = make_retriever(f"nar:bm25,{count}", context).search(["apple"], 2)  # the graph is kept
    assert again.rows.tolist() == rows[:2]
    for other in ("nar:bm25,2", "nar:minilm,1"):
        assert make_retriever(other, context).identity != retriever.identity


@pytest.mark.parametrize("name", ["nar", "nar:,3"])
def test_nar_needs_a_retriever_to_begin_with(world, name: str) -> None:
    with pytest.raises(InputError, match="nar:FIRST"):
        make_retriever(name, world.context())
