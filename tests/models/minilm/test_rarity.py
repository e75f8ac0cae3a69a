"""How rare words are, by MiniLM's vocabulary."""

import pytest

from quit.models.minilm.rarity import rarity


@pytest.mark.parametrize(("word", "value"), [("the", 0), ("university", 0.27), ("qzaphod", 1), ("7", 0.5)])
def test_rarity_of_the_commonest_and_of_unknown_words(word, value):
    assert rarity(word) == pytest.approx(value, abs=0.01)
