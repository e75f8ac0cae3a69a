"""Retrieval complexity's formulas by hand, its edge cases, and the heads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from quit.corpora.complexity import (
    ContainedOrNear,
    LateInteraction,
    Retrieved,
    completeness,
    contains_answer,
    measure,
    normalised_entropy,
)


def test_entropy_by_hand() -> None:
    made = normalised_entropy(
        np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0], [0, 0, 0, 0]])
    )
    assert made.tolist() == pytest.approx([1.0, 0.5, 0.0, 0.0])
    skewed = normalised_entropy(np.array([[3.0, 1.0]]))[0]
    assert skewed == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)) / math.log(2))


def test_edge_cases() -> None:
    assert normalised_entropy(np.array([[0.3], [0.0]])).tolist() == [1.0, 1.0]  # one token
    assert completeness(np.zeros((0, 4))) == 0.0
    assert completeness(np.array([[1.0, 1.0], [2.0, 0.0]])) == pytest.approx(0.5)


@given(arrays(np.float64, (3, 5), elements=st.floats(0, 1e6)))
def test_entropy_is_between_none_and_all_and_knows_no_scale(relevance: np.ndarray) -> None:
    made = normalised_entropy(relevance)
    assert ((made >= 0) & (made <= 1 + 1e-12)).all()
    assert made == pytest.approx(normalised_entropy(relevance * 8))


def test_answers_are_found_on_word_boundaries() -> None:
    texts = ["He was born in Rome, Italy.", "A romance", "The U.S.A. won"]
    assert contains_answer(texts, ["rome"]).tolist() == [True, False, False]
    assert contains_answer(texts, ["the usa", "  "]).tolist() == [False, False, True]
    assert contains_answer(texts, [""]).tolist() == [False, False, False]
    assert contains_answer([], ["x"]).tolist() == []


def test_embedded_heads(encoder) -> None:
    texts = ["Lesotho lies inside South Africa.", "Bread is made of flour."]
    vectors = encoder.encode(texts)
    head = ContainedOrNear(encoder, 0.1, 0.6)
    made = head.scores("Which country?", ["Lesotho"], texts, vectors)
    near = float(vectors[1] @ encoder.encode(["Lesotho"])[0])
    assert made.tolist() == [1.0, pytest.approx(min(1.0, max(0.0, (near - 0.1) / 0.5)))]
    assert head.scores("Which country?", [], texts, vectors).tolist() == [0.0, 0.0]
    tokens = LateInteraction(encoder).relevance("South Africa bread", texts)
    asked, first = encoder.encode_tokens(["South Africa bread", texts[0]])
    assert tokens.shape == (2, len(asked)) and (tokens >= 0).all()
    assert tokens[0] == pytest.approx(np.clip((asked @ first.T).max(axis=1), 0, None))
    assert tokens[0, 0] > tokens[1, 0] and tokens[1, -1] > tokens[0, -1]


def test_preparing_changes_no_bit(encoder) -> None:
    texts = ["Lesotho lies inside South Africa.", "Bread is made of flour.", ""]
    head = LateInteraction(encoder)
    before = head.relevance("Which country?", texts)
    head.prepare(["Which country?", *texts, "another", "Which country?"])
    assert (head.relevance("Which country?", texts) == before).all() and before.shape == (3, 3)
    head.prepare([])
    assert (head.relevance("Which country?", texts) == before).all()


def test_measure_without_documents(encoder) -> None:
    vectors = np.zeros((0, encoder.dimension), dtype=np.float32)
    made = measure(
        "Q?",
        ["a"],
        [],
        vectors,
        encoder.encode(["Q?"])[0],
        ContainedOrNear(encoder, 0, 1),
        LateInteraction(encoder),
        0.5,
    )
    assert made == Retrieved(0.0, 0.0, 0.0, 0.0, 0)
