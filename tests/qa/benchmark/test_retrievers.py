"""Retrievers against other tools and brute force over every passage."""

from types import SimpleNamespace

import bm25s
import numpy as np
import pytest

from quit.errors import InputError
from quit.qa.benchmark.late import LateRetriever
from quit.qa.benchmark.plugins import make_retriever
from quit.qa.benchmark.retrievers import Bm25Retriever, DenseRetriever
from quit.qa.benchmark.task import ReleasePassages
from quit.qa.indexes.encoders import TokenVectors
from quit.retrieval.protocols import FirstStage
from quit.stages.labelling.passages import permutation_table
from tests.qa.corpora.worlds import Dice


def passages_of(seed: int = 0, parts: list[tuple[str, ...]] | None = None) -> ReleasePassages:
    """Passages of ``parts``, else of four questions with three hints of random words: 15 each."""
    draw = np.random.default_rng(seed)
    words = [f"w{i}x" for i in range(25)]
    words_of_hints = [[draw.choice(words, draw.integers(1, 9)) for _ in range(3)] for _ in range(4)]
    hints = parts or [tuple(map(" ".join, of_question)) for of_question in words_of_hints]
    names = [f"q{number}" for number in range(len(hints))]
    table = permutation_table(len(hints[0]))
    facts = {"content_id": "fake"}
    fake = SimpleNamespace(ids=names, permutations=table, hint_lists=lambda rows: hints, provenance=facts)
    return ReleasePassages(fake)


QUERIES = ["w1x w2x w3x", "w4x w4x w5x", "w20x", "nothing known"]


def test_bm25_has_the_scores_of_an_index_of_every_permutation(world) -> None:
    passages = passages_of()
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
        assert (np.diff(one.scores) <= 0).all()
    assert len(rankings[3]) == 0  # shares no term
    assert retriever.search(QUERIES[:1], 7)[0].rows.tolist() == rankings[0].rows[:7].tolist()
    stop_words = passages_of(parts=[("the", "of", "a")] * 4)
    assert [len(one) for one in Bm25Retriever(world.context(passages=stop_words)).search(["the of"], 5)] == [0]


def test_dense_search_is_brute_force_over_chunks_and_encodes_once(world) -> None:
    passages, tower = passages_of(5), Dice()
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


def test_dense_by_subset_encodes_a_subset_in_rank_order_for_all_its_permutations(world) -> None:
    passages, tower = passages_of(5), Dice()
    context = world.context("benchmark.granularity=subset", "benchmark.chunk=15", passages=passages)
    [rankings] = DenseRetriever(context, tower).search(QUERIES[:1], len(passages))
    assert tower.encoded == 4 * 7 + 1 and len(rankings) == len(passages)
    hints = zip(rankings.rows.tolist(), passages.sentences(rankings.rows.tolist()), strict=True)
    texts = [" ".join(sorted(own, key=passages.parts(row // passages.size).index)) for row, own in hints]
    assert rankings.scores == pytest.approx(tower.encode(texts) @ tower.encode(QUERIES[:1])[0], abs=1e-6)


def test_late_interaction_over_hints_is_maxsim_over_their_tokens(world, monkeypatch) -> None:
    passages = passages_of(2)
    monkeypatch.setattr("quit.qa.benchmark.late.token_encoder", lambda _: TokenVectors(Dice()))
    for chunk in (1, 8192):
        context = world.context(f"benchmark.chunk={chunk}", passages=passages)
        rankings = LateRetriever(context).search([*QUERIES, ""], len(passages))
        with monkeypatch.context() as no_corpus:  # token vectors are kept: other questions encode no text again
            no_corpus.setattr(passages, "parts", None)
            cut = LateRetriever(context).search([*QUERIES, ""], 7)
        assert [one.rows.tolist() for one in cut] == [one.rows[:7].tolist() for one in rankings]
        for query, one in zip([*QUERIES, ""], rankings, strict=True):
            [terms] = Dice().encode_tokens([query])
            for row, score in zip(one.rows.tolist(), one.scores.tolist(), strict=True):
                # Tokens do not see their neighbours here, so a passage's tokens are those of its hints.
                [tokens] = Dice().encode_tokens(passages.texts([row]))
                assert score == pytest.approx(float((terms @ tokens.T).max(axis=1).sum()), abs=2e-3)
            assert sorted(one.rows.tolist()) == list(range(len(passages)))
    broken = TokenVectors(Dice())
    broken.queries = lambda texts: [np.full_like(tokens, np.nan) for tokens in Dice().encode_tokens(texts)]
    monkeypatch.setattr("quit.qa.benchmark.late.token_encoder", lambda _: broken)
    with pytest.raises(InputError, match=f"NaN or infinity for {QUERIES[0]!r}"):
        LateRetriever(context).search(QUERIES, 7)


def test_a_dense_retriever_needs_a_model(world) -> None:
    with pytest.raises(InputError, match="Name the model"):
        make_retriever("dense", world.context()).search(["x"], 3)
