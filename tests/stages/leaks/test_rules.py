"""Each rule against cases made by hand: what it must catch, and what it must leave alone."""

import pytest

from quit.stages.leaks.number_words import numbers_in
from quit.stages.leaks.rules import RULES, lexical_leaks

LEAKS = [
    ("exact", "It was painted by Leonardo da Vinci.", "Leonardo da Vinci", "Who painted it?"),
    ("exact", "The beatles came from Liverpool.", "The Beatles", "Which band?"),
    ("exact", "He wrote to Édith Piaf.", "Edith Piaf", "Who sang it?"),
    ("exact", "He wrote 50% of it.", "%", "Which symbol?"),
    ("exact", "He served in the US army.", "US", "Which country?"),
    ("inflection", "Australians call it home.", "Australia", "Which country?"),
    ("inflection", "The French eat it.", "France", "Which country?"),
    ("inflection", "Two wombats live here.", "Wombat", "Which animal?"),
    ("inflection", "A Dutch painter lived there.", "The Netherlands", "Which country?"),
    ("part", "Messi played for Barcelona.", "Lionel Messi", "Who holds most titles?"),
    ("initials", "The U.S.A. joined later.", "United States of America", "Which country?"),
    ("initials", "The National Aeronautics and Space Administration runs it.", "NASA", "Which agency?"),
    ("inflection", "In 1995 wolves came back.", "Wolf", "Which animal?"),
    ("inflection", "The Aristotelian school met in gardens.", "Aristotle", "Who taught Alexander?"),
    ("other_name", "The duck that comes from Peking is crisp.", "Beijing", "Which capital?"),
    ("other_name", "The U.S.A. bought Alaska.", "United States", "Which country?"),
    ("initials", "Streets were renamed in honour of MLK.", "Martin Luther King Jr.", "Who had a dream?"),
    ("number", "A face launched a thousand ships.", "1,000", "How many ships?"),
    ("number", "It was built in the eighteenth century.", "18th century", "When?"),
    ("number", "There are twenty-four of them.", "24", "How many?"),
    ("number", "About 1,500 were built.", "fifteen hundred", "How many?"),
    ("compound", "See www.guitarworld.com for more.", "Guitar", "Which instrument?"),
    ("compound", "The keyboardist joined in 1970.", "Keyboard", "Which instrument?"),
    ("spelling", "The prophet Mohammed was born there.", "Muhammad", "Who founded it?"),
    ("spelling", "Chaikovsky wrote its music.", "Tchaikovsky", "Who wrote Swan Lake?"),
]

SAFE = [
    ("It gave us much.", "US", "Which country?"),
    ("It may rain in spring.", "May", "Which month?"),
    ("The war ended in 1945.", "World War II", "Which event?"),
    ("It is the largest city of the state.", "New York City", "Where is it?"),
    ("It has twenty legs.", "4", "How many legs has a dog?"),
    ("Machinations were its ruin.", "China", "Which country?"),
    ("The king of this country lives in Oslo.", "King Lear", "Which play?"),
    ("Kennedy Airport is named after him.", "John F. Kennedy", "Which Kennedy became president?"),
    ("She was born in 1867.", "Marie Curie", "Who discovered radium?"),
    ("It is a mountain in Asia.", "Mount Everest", "Which is the highest mountain?"),
    ("A general of Rome crossed it.", "Rubicon", "Which river?"),
    ("His wife had been married to John Ruskin.", "John Everett Millais", "Who painted Ophelia?"),
    ("The Kelvin scale sets its zero point there.", "Absolute zero", "Which temperature cannot be undercut?"),
    ("He is an icon of American popular culture.", "Captain America", "Which comic hero has a shield?"),
    ("Children stack stones or stamp letters into the sand.", "SOS", "Which signal?"),
    ("Italians call it a snail.", "@", "Which symbol?"),
    ("He would polish his nocturnes for months.", "Polish", "What was Chopin's nationality?"),
    ("He is the eighteenth king of his line.", "18", "How many kings were there?"),
    ("It orbits the Sun twice as fast.", "Saturn", "Which planet?"),
]


@pytest.mark.parametrize(("rule", "hint", "answer", "question"), LEAKS)
def test_leaks_are_found_by_the_rule_for_them(rule: str, hint: str, answer: str, question: str) -> None:
    hits = lexical_leaks(hint, answer, question)
    assert rule in [hit.rule for hit in hits]
    assert all(hit.span and hit.span in hint for hit in hits)


@pytest.mark.parametrize(("hint", "answer", "question"), SAFE)
def test_innocent_hints_are_left_alone(hint: str, answer: str, question: str) -> None:
    assert lexical_leaks(hint, answer, question) == []


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, *_ in LEAKS} == set(RULES)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("one hundred and five", [105]),
        ("two million three hundred thousand", [2_300_000]),
        ("in 1969, twelve men", [1969, 12]),
        ("a dozen", [12]),
        ("3.5 million", [3_500_000]),
        ("one two three", [1, 2, 3]),
        ("the first of many", [1]),
        ("the twenty-first king", [21]),
        ("Louis XIV, a thousand men", [14, 1000]),
        ("forty-two", [42]),
        ("", []),
    ],
)
def test_numbers_are_read_in_words_and_digits(text: str, values: list[float]) -> None:
    found = numbers_in(text)
    assert [value for value, _, _ in found] == values
    assert all(text[start:end].strip() == text[start:end] for _, start, end in found)
