"""Retrievers against other tools and brute force over every passage."""

import itertools
from functools import partial
from types import SimpleNamespace

import bm25s
import numpy as np
import pyarrow as pa
import pytest

from quit.errors import InputError
from quit.qa.benchmark.passages import ReleasePassages
from quit.qa.benchmark.plugins import make_retriever
from quit.qa.benchmark.retrievers import Bm25Retriever, DenseRetriever
from quit.retrieval.protocols import FirstStage
from tests.qa.corpora.worlds import Dice


def passages_of(
    seed: int = 0,
    parts: list[tuple[str, ...]] | None = None,
    sizes: tuple[int, ...] = (3, 3, 3, 3),
    share: float = 1.0,
) -> ReleasePassages:
    """Passages of ``parts``, else of four questions with so many hints of random words. ``share``: of all orders of at
    most three hints, drawn, at least one per question."""
    draw = np.random.default_rng(seed)
    words = [f"w{i}x" for i in range(25)]
    words_of_hints = [[draw.choice(words, draw.integers(1, 9)) for _ in range(size)] for size in sizes]
    hints = parts or [tuple(map(" ".join, of_question)) for of_question in words_of_hints]
    own = []
    for texts in hints:
        digits = "0123456789abcdef"[: len(texts)]
        every = ["".join(order) for size in (1, 2, 3) for order in itertools.permutations(digits, size)]
        own.append(sorted(draw.choice(every, max(1, round(share * len(every))), replace=False).tolist()))
    names = sorted({name for of_question in own for name in of_question})
    table = SimpleNamespace(
        permutation=pa.array(names),
        subset=pa.array(["".join(sorted(name)) for name in names]),
        indices=np.array([int(digit, 16) for name in names for digit in name], dtype=np.int8),
        offsets=np.cumsum([0, *map(len, names)], dtype=np.int32),
    )
    codes = [names.index(name) for of_question in own for name in of_question]
    fake = SimpleNamespace(
        ids=[f"q{number}" for number in range(len(hints))],
        rows=SimpleNamespace(table=table, codes=np.array(codes, np.int32), starts=np.cumsum([0, *map(len, own)])),
        hint_lists=lambda _: hints,
        provenance={"content_id": "fake"},
        given=None,
    )
    return ReleasePassages(fake)


DESIGNS = (passages_of, partial(passages_of, sizes=(2, 14, 1, 5), share=0.06))
"""All orders of three hints, 15 each; and some, of different numbers of hints."""


def texts_of(passages: ReleasePassages, names: list[str]) -> list[str]:
    """Texts by the passages' ids alone: hints of the question in the order of the permutation."""
    pairs = ((int(name.split("_")[0][1:]), name.rpartition("_")[2]) for name in names)
    return [" ".join(passages.parts(group)[int(digit, 16)] for digit in permutation) for group, permutation in pairs]


QUERIES = ["w1x w2x w3x", "w4x w4x w5x", "w20x", "nothing known"]


@pytest.mark.parametrize("make", DESIGNS)
def test_bm25_has_the_scores_of_an_index_of_every_permutation(world, make) -> None:
    passages = make()
    vocabulary: dict[str, int] = {"": 0}
    texts = passages.texts(range(len(passages)))
    ids = [[vocabulary.setdefault(term, len(vocabulary)) for term in text.split()] for text in texts]
    index = bm25s.BM25(k1=0.9, b=0.4, method="lucene", backend="numpy")
    index.index((ids, vocabulary), show_progress=False)
    retriever = Bm25Retriever(world.context(passages=passages))
    rankings = retriever.search(QUERIES, 1000)
    for query, one in zip(QUERIES, rankings, strict=True):
        terms = [vocabulary[term] for term in query.split() if term in vocabulary]
        theirs = index.get_scores_from_ids(terms) if terms else np.zeros(len(texts))
        expected = np.flatnonzero(theirs > 0)
        assert sorted(one.rows.tolist()) == expected.tolist()
        assert one.scores == pytest.approx(theirs[one.rows], rel=1e-5)
        ranks = list(zip((-one.scores).tolist(), one.rows.tolist(), strict=True))
        assert ranks == sorted(ranks)
    assert len(rankings[3]) == 0  # shares no term
    assert retriever.search(QUERIES[:1], 7)[0].rows.tolist() == rankings[0].rows[:7].tolist()
    stop_words = passages_of(parts=[("the", "of", "a")] * 4)
    assert [len(one) for one in Bm25Retriever(world.context(passages=stop_words)).search(["the of"], 5)] == [0]


@pytest.mark.parametrize("make", DESIGNS)
def test_dense_search_is_brute_force_over_chunks_and_encodes_once(world, make) -> None:
    passages, tower = make(5), Dice()
    context = world.context("benchmark.chunk=7", passages=passages)
    retriever = DenseRetriever(context, tower)
    assert isinstance(retriever, FirstStage)
    rankings = retriever.search(QUERIES, 10)
    every = Dice().encode(passages.texts(range(len(passages))))
    for query, one in zip(Dice().encode(QUERIES), rankings, strict=True):
        scores = every @ query
        assert one.rows.tolist() == np.argsort(-scores, kind="stable")[:10].tolist()
        assert one.scores == pytest.approx(scores[one.rows])
    assert tower.encoded == len(passages) + len(QUERIES)
    again = DenseRetriever(context, tower).search(QUERIES, 10)
    assert tower.encoded == len(passages) + 2 * len(QUERIES)  # the vectors were on disk
    assert [one.rows.tolist() for one in again] == [one.rows.tolist() for one in rankings]


@pytest.mark.parametrize("make", DESIGNS)
def test_dense_by_subset_encodes_the_first_passage_of_a_subset_for_all_its_permutations(world, make) -> None:
    passages, tower = make(5), Dice()
    context = world.context("benchmark.granularity=subset", "benchmark.chunk=15", passages=passages)
    [rankings] = DenseRetriever(context, tower).search(QUERIES[:1], len(passages))
    names = passages.ids(range(len(passages)))
    first = {name.rpartition("_")[0]: name for name in reversed(names)}
    assert tower.encoded == len(first) + 1 and sorted(rankings.rows.tolist()) == list(range(len(passages)))
    texts = texts_of(passages, [first[names[row].rpartition("_")[0]] for row in rankings.rows])
    if make is passages_of:  # in rank order
        assert all(name.rpartition("_")[2] == "".join(sorted(name.rpartition("_")[2])) for name in first.values())
    assert rankings.scores == pytest.approx(tower.encode(texts) @ tower.encode(QUERIES[:1])[0], abs=1e-6)


def test_a_dense_retriever_needs_a_model(world) -> None:
    with pytest.raises(InputError, match="Name the model"):
        make_retriever("dense", world.context()).search(["x"], 3)
