"""The lexicon against a dictionary; findings of the rules that use it are in ``rules.tsv``."""

from quit.stages.leaks.lexicon import lexicon, plain_name


def test_words_are_known_with_their_inflections() -> None:
    assert all(map(lexicon().has, ("goose", "geese", "swam", "planets")))
    assert not lexicon().has("mayonaise")
    assert lexicon().base_forms("geese") == {"geese", "goose"}
    assert "newton" in lexicon().units
    assert "pound" not in lexicon().units
    assert plain_name("São Paulo’s") == "sao paulo"


def test_what_means_it_leads_to_it_and_what_means_it_among_other_things_does_not() -> None:
    assert "Au" in lexicon().other_names("gold") and "diabetic" in lexicon().family("diabetes")
    for name, word in (
        ("autumn", "fall"),  # mostly a verb
        ("king", "Martin Luther King"),  # the name of many
        ("rome", "capital of Italy"),  # says what it is
    ):
        assert word not in lexicon().other_names(name) + lexicon().family(name)
