"""BM25 on disk is BM25 in memory; its weights by hand are in test_hybrid."""

from pathlib import Path

import numpy as np

from quit.retrieval.lexical import Bm25, term_counts, terms

TEXTS = ["The cats sat on a mat", "A cat chased the dog", "", "dogs and dogs"]


def test_terms_are_stems_without_stop_words() -> None:
    assert terms("The cats of Rome were running") == ["cat", "rome", "run"]


def test_counts_are_those_of_each_text() -> None:
    vocabulary, counts = term_counts(TEXTS)
    assert counts.toarray()[3].tolist() == [2.0 * (term == "dog") for term in vocabulary]
    assert not counts.toarray()[2].any()


def test_a_saved_index_finds_the_same(tmp_path: Path) -> None:
    index = Bm25.of(TEXTS)
    index.save(tmp_path / "index")
    saved = Bm25.load(tmp_path / "index")
    for query in ("dog", "cat mat cat", "nothing here"):
        for mine, theirs in zip(index.search(query, 3), saved.search(query, 3), strict=True):
            assert np.array_equal(mine, theirs)
    rows, scores = index.search("dogs", 3)
    assert rows.tolist() == [3, 1] and (np.diff(scores) < 0).all()


def test_a_row_may_stand_for_several_texts() -> None:
    vocabulary, counts = term_counts(["cat", "dog"])
    several = Bm25.of_counts(vocabulary, counts, np.array([3, 1]), k1=1.2, b=0.75)
    each = Bm25.of(["cat", "cat", "cat", "dog"])
    assert several.scores("cat")[0] == each.scores("cat")[0] and several.scores("dog")[1] == each.scores("dog")[3]
