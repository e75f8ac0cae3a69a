"""The lexicon against what any dictionary says."""

import pytest

from quit.stages.leaks.lexicon import lexicon, plain_name


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("cemetery", "graveyard"),
        ("mark twain", "Samuel Langhorne Clemens"),
        ("iran", "Persia"),
        ("gold", "Au"),
        ("hiv", "human immunodeficiency virus"),
        ("margaret thatcher", "Iron Lady"),
        ("murder", "homicide"),  # the more general one, and near
        ("stomach", "belly"),  # not the first meaning of both
    ],
)
def test_names_for_the_same_thing_lead_to_each_other(name: str, other: str) -> None:
    assert other in lexicon().other_names(name)
    if " " not in other and other != "Au":  # people are found by their full names only
        assert name in map(plain_name, lexicon().other_names(plain_name(other)))


@pytest.mark.parametrize(
    ("name", "word"), [("naples", "Neapolitan"), ("dutch", "Netherlands"), ("moon", "lunar"), ("bee", "beehive")]
)
def test_a_family_has_adjectives_inhabitants_and_compounds(name: str, word: str) -> None:
    assert word in lexicon().family(name)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("autumn", "fall"),  # mostly a verb
        ("king", "Martin Luther King"),  # the name of many
        ("rome", "capital of Italy"),  # says what it is
        *(("lion", "rebellion"), ("car", "machine"), ("hands", "men")),
    ],
)
def test_what_means_it_among_other_things_is_left_out(name: str, word: str) -> None:
    assert word not in lexicon().other_names(name) + lexicon().family(name)


def test_words_are_known_with_their_inflections() -> None:
    assert all(map(lexicon().has, ("goose", "geese", "swam", "planets")))
    assert not lexicon().has("mayonaise")
    assert lexicon().base_forms("geese") == {"geese", "goose"}
    assert "newton" in lexicon().units
    assert "pound" not in lexicon().units
    assert plain_name("São Paulo’s") == "sao paulo"
