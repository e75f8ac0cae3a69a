"""Each rule against cases made by hand: what it must catch, and what it must leave alone."""

import pytest

from quit.stages.leaks.number_words import dates_in, numbers_in
from quit.stages.leaks.rules import RULES, lexical_leaks, rules_only

LEAKS = [
    ("exact", "It was painted by Leonardo da Vinci.", "Leonardo da Vinci", "Who painted it?"),
    ("exact", "The beatles came from Liverpool.", "The Beatles", "Which band?"),
    ("exact", "He wrote to Édith Piaf.", "Edith Piaf", "Who sang it?"),
    ("exact", "He wrote 50% of it.", "%", "Which symbol?"),
    ("exact", "He served in the US army.", "US", "Which country?"),
    ("inflection", "Australians call it home.", "Australia", "Which country?"),
    ("family", "The French eat it.", "France", "Which country?"),
    ("inflection", "Two wombats live here.", "Wombat", "Which animal?"),
    ("family", "A Dutch painter lived there.", "The Netherlands", "Which country?"),
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
    ("inflection", "The keyboardist joined in 1970.", "Keyboard", "Which instrument?"),
    ("compound", "Children built a snowman.", "Snow", "What is white?"),
    ("compound", "A U2 was shot down.", "U-2", "Which spy plane?"),
    ("compound", "He went to play foot ball.", "Football", "Which sport?"),
    ("inflection", "His streets are called Dickensian.", "Charles Dickens", "Who wrote it?"),
    ("inflection", "It was pasteurised, or pasteurized, overnight.", "Louis Pasteur", "Who made a vaccine?"),
    ("part", "The unit of force is the newton.", "Isaac Newton", "Who saw an apple fall?"),
    ("part", "His brother Robert Kennedy was shot too.", "John F. Kennedy", "Which president?"),
    ("reordered", "Relativity theory was confirmed in 1919.", "Theory of Relativity", "Which theory?"),
    ("reordered", "Henry the Eighth had six wives.", "Henry VIII", "Which king?"),
    ("initials", "It was decided late in WW2.", "World War II", "Which war?"),
    ("initials", "He won seven F1 titles.", "Formula One", "Which sport?"),
    ("initials", "The Group of Seven met.", "G7", "Which group?"),
    ("other_name", "The graveyard is old.", "Cemetery", "Where do people lie?"),
    ("other_name", "The fridge hums.", "Refrigerator", "What keeps milk cold?"),
    ("other_name", "Satchmo sang it.", "Louis Armstrong", "Who sang it?"),
    ("other_name", "Its symbol is Au.", "Gold", "Which metal?"),
    ("other_name", "H2SO4 fills batteries.", "Sulfuric acid", "Which acid?"),
    ("family", "Lunar rocks are old.", "The Moon", "What goes around the Earth?"),
    ("family", "The abduction was long planned.", "Kidnapping", "Which crime?"),
    ("family", "A beekeeper lives there.", "Bee", "Which insect?"),
    ("number", "It begins with 3.14159.", "3.14", "What is pi?"),
    ("number", "It ended in nineteen forty-five.", "1945", "When?"),
    ("date", "The attacks of 9/11 shocked us.", "September 11, 2001", "When?"),
    ("date", "They came on the fourteenth of July.", "14 July", "When?"),
    ("spelling", "Add some mayonaise.", "Mayonnaise", "Which sauce?"),
    ("spelling", "A paino stands there.", "Piano", "What has 88 keys?"),
    ("spelling", "An anasthesiolgist came.", "Anesthesiologist", "Who makes you sleep?"),
    ("spelling", "The prophet Mohammed was born there.", "Muhammad", "Who founded it?"),
    ("spelling", "Chaikovsky wrote its music.", "Tchaikovsky", "Who wrote Swan Lake?"),
    ("exact", "A year has 365.25 days.", "365", "How many days has a year?"),  # but 36 is no part of it
    ("exact", "In 1990,Paris was the host.", "Paris", "Which city?"),
    ("exact", "It is Polish for a fool.", "polish", "Which language?"),
    ("inflection", "The cats slept.", "Cat", "Which animal?"),
    ("inflection", "Parisian cafes are full.", "Paris", "Which city?"),
    ("inflection", "Chinese silk was dear.", "China", "Which country?"),
    ("inflection", "Koreans invented it.", "Korea", "Which peninsula?"),
    ("inflection", "It has a Nietzschean hero.", "Friedrich Nietzsche", "Who wrote of Zarathustra?"),
    ("inflection", "His inspection took hours.", "Inspector", "Who looks after safety?"),
    ("other_name", "The fridges hum.", "Refrigerators", "What keeps milk cold?"),
    ("part", "Climbers of Everest need oxygen.", "Mount Everest", "Which is the highest mountain?"),
    ("part", "The French Bourbon kings ruled.", "Louis XIV Bourbon", "Who built Versailles?"),
    ("part", "The captain was Bobby Frederick Moore.", "Bobby Moore", "Who lifted the cup?"),
    ("part", "Joanne Rowling wrote it.", "J. K. Rowling", "Who wrote of Hogwarts?"),
    ("part", "The brave Zidane lost his temper.", "Zinedine Zidane", "Who was sent off?"),
    ("part", "At Wembley, Moore lifted the cup.", "Bobby Moore", "Who captained England?"),
    ("part", "Captain Twain went down the river.", "Mark Twain", "Who wrote of Tom Sawyer?"),
    ("reordered", "He fought in the 1812 war", "War of 1812", "Where did Jackson fight?"),
    ("inflection", "It has a freudian subtext.", "Sigmund Freud", "Who wrote of dreams?"),
    ("inflection", "Arabic coffee is strong.", "Arabia", "Which peninsula?"),
    ("other_name", "An automobile needs petrol.", "Cars", "What did Ford make?"),
    ("part", "The Bohr model has shells.", "Niels Bohr", "Who described the atom?"),
    ("part", "Its unit is the volt.", "Alessandro Volta", "Who built the first battery?"),
    ("part", "The Kennedys sailed there.", "John F. Kennedy", "Which president was shot in Dallas?"),
    ("part", "Great Zidane lost his temper.", "Zinedine Zidane", "Who was sent off?"),
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
    ("It was filmed with Roger Moore.", "Bobby Moore", "Who captained England?"),
    ("The Panama Canal is younger.", "Suez Canal", "Which canal is in Egypt?"),
    ("A house of white marble stands there.", "White House", "Where does the president live?"),
    ("He was thinking of leaving.", "King", "Who rules?"),
    ("The rebellion failed.", "Lion", "Which animal?"),
    ("It has 9,026 points.", "9", "How many?"),
    ("They met on September 11, 1973.", "September 11, 2001", "When?"),
    ("This area of London is lively.", "AOL", "Which firm?"),
    ("He played at home.", "Helium", "Which gas?"),
    ("It is a country in North America.", "USA", "Which country has fifty states?"),
    ("The planet is far away.", "Plane", "Which machine flies?"),
    ("This city is the capital of Italy.", "Rome", "Where are the Spanish Steps?"),
    ("Its people live mainly by fishing.", "Maine", "Which state has Augusta as its capital?"),
    ("At such moments it stops.", "Momentum", "What is mass times velocity?"),
    ("Jan van Eyck painted it.", "January", "Which month is first?"),
    ("Twelve men sat there.", "Hands", "What do people clap with?"),
    ("Look for it there.", "Three", "How many?"),
    ("It orbits the Sun twice as fast.", "Saturn", "Which planet?"),
    ("A week has 7.5 of them.", "7", "How many?"),
    ("It cost 15,026 dollars.", "15", "How many?"),
    ("A year has 365.25 days.", "36", "How many?"),
    ("A pianist and a violinist played.", "Player piano", "Which instrument?"),
    ("The ship is made of wood.", "Woods", "Which golfer?"),
    ("That joke was a corker.", "Cork", "Which county is the largest of Ireland?"),
    ("Water is a constituent of air.", "Constitution", "What was signed in Philadelphia?"),
    ("The graveyard is old.", "Cemetery", "What is another word for graveyard?"),
    ("It was filmed with Mark Hopper.", "Grace Hopper", "Who found the first bug?"),
    ("It was filmed with Thurlow Hopper.", "Grace Hopper", "Who found the first bug?"),
    ("A newt lives in the pond.", "Isaac Newton", "Who saw an apple fall?"),
    ("An airplane landed.", "Planet", "What goes around a star?"),
]


@pytest.mark.parametrize(("rule", "hint", "answer", "question"), LEAKS)
def test_leaks_are_found_by_the_rule_for_them(rule: str, hint: str, answer: str, question: str) -> None:
    hits = lexical_leaks(hint, answer, question)
    assert rule in [hit.rule for hit in hits]
    assert all(hit.span and hit.span in hint for hit in hits)


@pytest.mark.parametrize(("hint", "answer", "question"), SAFE)
def test_innocent_hints_are_left_alone(hint: str, answer: str, question: str) -> None:
    assert lexical_leaks(hint, answer, question) == []


@pytest.mark.parametrize(
    ("span", "answer", "alone"),
    [
        ("Moore", "Bobby Moore", True),  # the rule for parts of a name knows
        ("Bobby", "Bobby Moore", False),
        ("planet", "Plane", True),  # begins as the answer, and is a word of its own
        ("planex", "Plane", False),
        ("cat", "Plane", False),
        ("bowl", "punch bowl", False),  # no name
    ],
)
def test_a_name_s_last_word_and_a_word_that_begins_as_the_answer_are_for_rules(span, answer, alone) -> None:
    assert rules_only(span, answer) is alone


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
        ("in nineteen forty-five", [1945]),
        ("four score and seven", [87]),
        ("two dozen", [24]),
        ("", []),
    ],
)
def test_numbers_are_read_in_words_and_digits(text: str, values: list[float]) -> None:
    found = numbers_in(text)
    assert [value for value, _, _ in found] == values
    assert all(text[start:end].strip() == text[start:end] for _, start, end in found)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on September 11, 2001", [(9, 11, 2001)]),
        ("the 4th of July", [(7, 4, None)]),
        ("25 Dec", [(12, 25, None)]),
        ("1944-06-06", [(6, 6, 1944)]),
        ("on 9/11", [(9, 11, None), (11, 9, None)]),
        ("in May 1968", []),
        ("12 men came in May", []),
        ("9" * 400 + " May", []),
        ("24/7 and 1/2", [(24, 7, None), (7, 24, None), (1, 2, None), (2, 1, None)]),
        ("won 3-2", []),
    ],
)
def test_dates_are_read_in_any_notation(text: str, days: list[tuple[int, int, int | None]]) -> None:
    assert [(month, day, year) for month, day, year, _, _ in dates_in(text)] == days
