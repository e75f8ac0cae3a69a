"""Retrieval complexity's formulas by hand, its edge cases, and the heads."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from quit.retrieval import complexity

TEXTS = ["Lesotho lies inside South Africa.", "Bread is made of flour."]


def test_entropy_by_hand() -> None:
    entropy = complexity.normalised_entropy(np.array([[1.0, 1, 1, 1], [1, 1, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0]]))
    assert entropy.tolist() == pytest.approx([1.0, 0.5, 0.0, 0.0])
    skewed = complexity.normalised_entropy(np.array([[3.0, 1.0]]))[0]
    assert skewed == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)) / math.log(2))
    assert complexity.normalised_entropy(np.array([[0.3], [0.0]])).tolist() == [1.0, 1.0]  # one token
    assert complexity.completeness(np.zeros((0, 4))) == 0.0
    assert complexity.completeness(np.array([[1.0, 1.0], [2.0, 0.0]])) == pytest.approx(0.5)


@given(arrays(np.float64, (3, 5), elements=st.floats(0, 1e6)))
def test_entropy_is_between_none_and_all_and_knows_no_scale(relevance: np.ndarray) -> None:
    entropy = complexity.normalised_entropy(relevance)
    assert ((entropy >= 0) & (entropy <= 1 + 1e-12)).all()
    assert entropy == pytest.approx(complexity.normalised_entropy(relevance * 8))


def test_answers_are_found_on_word_boundaries() -> None:
    texts = ["He was born in Rome, Italy.", "A romance", "The U.S.A. won"]
    assert complexity.contains_answer(texts, ["rome"]).tolist() == [True, False, False]
    assert complexity.contains_answer(texts, ["the usa", "  "]).tolist() == [False, False, True]
    assert complexity.contains_answer(texts, [""]).tolist() == [False, False, False]
    assert complexity.contains_answer([], ["x"]).tolist() == []


def test_embedded_heads(encoder) -> None:
    texts = [TEXTS[0], "A kingdom in the south of Africa."]
    vectors = encoder.encode(texts)
    head = complexity.ContainedOrNear(encoder)
    near = float(vectors[1] @ encoder.encode(["Lesotho"])[0])
    scores = head.scores("Which country?", ["Lesotho"], texts, vectors).tolist()
    assert scores == [1.0, pytest.approx((near - 0.1) / 0.5)] and 0 < scores[1] < 1
    assert head.scores("Which country?", [], texts, vectors).tolist() == [0.0, 0.0]
    tokens = complexity.LateInteraction(encoder)
    for least, share in ((scores[1], 1.0), (1.0, 0.5)):
        figures = complexity.measure("Which country?", ["Lesotho"], texts, vectors, vectors[0], head, tokens, least)
        assert (figures.answerability, figures.answer_share, figures.documents) == (1.0, share, 2)
        assert figures.similarity == pytest.approx((1 + float(vectors[0] @ vectors[1])) / 2)
    tokens = complexity.LateInteraction(encoder).relevance("South Africa bread", TEXTS)
    asked, first = encoder.encode_tokens(["South Africa bread", TEXTS[0]])
    assert tokens.shape == (2, len(asked)) and (tokens >= 0).all()
    assert tokens[0] == pytest.approx(np.clip((asked @ first.T).max(axis=1), 0, None))
    assert tokens[0, 0] > tokens[1, 0] and tokens[1, -1] > tokens[0, -1]


def test_preparing_changes_no_bit(encoder) -> None:
    texts = [*TEXTS, ""]
    head = complexity.LateInteraction(encoder)
    before = head.relevance("Which country?", texts)
    head.prepare(["Which country?", *texts, "another", "Which country?"])
    assert (head.relevance("Which country?", texts) == before).all() and before.shape == (3, 3)
    head.prepare([])
    assert (head.relevance("Which country?", texts) == before).all()


def test_measure_without_documents(encoder) -> None:
    vectors = np.zeros((0, encoder.dimension), dtype=np.float32)
    heads = complexity.ContainedOrNear(encoder), complexity.LateInteraction(encoder)
    retrieved = complexity.measure("Q?", ["a"], [], vectors, encoder.encode(["Q?"])[0], *heads, 0.5)
    assert retrieved == complexity.Retrieved(0.0, 0.0, 0.0, 0.0, 0)
