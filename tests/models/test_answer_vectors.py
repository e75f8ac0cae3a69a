"""Vectors of answers, against numpy's own means."""

import numpy as np
import pytest

from quit.models import answer_vectors
from quit.models.answer_vectors import template_vectors, token_vectors
from tests.qa.corpora.worlds import Dice

ANSWERS = ["Lima", "New York City", "Bonn"]


def test_a_vector_is_the_unit_mean_over_its_templates() -> None:
    templates, dice = ("{}", "It is {}."), Dice()
    vectors = template_vectors(dice, ANSWERS, templates)
    for answer, vector in zip(ANSWERS, vectors, strict=True):
        mean = np.mean([dice.encode([template.format(answer)])[0] for template in templates], axis=0)
        assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-3)
    assert vectors.dtype == np.float32 and vectors.shape == (3, 8)


def test_the_first_tokens_are_kept_and_an_answer_without_any_has_one_of_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_vectors, "_AT_ONCE", 2)
    dice = Dice()
    tokens = token_vectors(dice, [*ANSWERS, ""], 2)
    assert [len(of_answer) for of_answer in tokens] == [1, 2, 1, 1]
    assert np.array_equal(tokens[1], dice.encode_tokens(["New York"])[0].astype(np.float16))
    assert not tokens[3].any() and all(of_answer.dtype == np.float16 for of_answer in tokens)
