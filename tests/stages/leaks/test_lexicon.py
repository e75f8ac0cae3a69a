"""The lexicon against a dictionary; findings of the rules that use it are in ``rules.tsv``."""

from quit.stages.leaks.lexicon import lexicon, plain_name


def test_words_are_known_with_their_inflections() -> None:
    assert all(map(lexicon().has, ("goose", "geese", "swam", "planets")))
    assert not lexicon().has("mayonaise")
    assert lexicon().base_forms("geese") == {"geese", "goose"}
    assert "newton" in lexicon().units
    assert "pound" not in lexicon().units
    assert plain_name("São Paulo’s") == "sao paulo"
