from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
import snowballstemmer
from hypothesis import example, given
from hypothesis import strategies as st

from quit.text.normalize import normalize_question, squad_normalised, strip_accents
from quit.text.tokens import stem, word_spans, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("The Beatles", "beatles"), ("an Apple a day", "apple day"), ("  U.S.A. ", "usa"), ("the '80s", "80s")),
        *(("1914–1918", "19141918"), ("1914-1918", "19141918"), ("Ｐａｒｉｓ\u00a0(France)", "paris france")),
        *(("%", "%"), ("C++", "c"), ("", "")),
        ("A", "a"),  # blood type A, not an article of something
    ],
)
def test_answers_are_compared_as_squad_does(text: str, expected: str) -> None:
    assert squad_normalised(text) == expected


_tricky = st.text(
    st.sampled_from("aAe xÉ-.'%$ßΐıİ\u0345\u0301\u0323\u0308\u00a0ﬁǰ가\u1100\u1161") | st.characters(), max_size=12
)


@given(st.text() | _tricky)
@example("e-\u0301")  # without the hyphen these are one letter, é
@example("\u0345-\u0301")
@example("x\u0301-\u0323")  # without it the marks stand in another order
@example("\u0130\u0331")  # lower case, it is an i with the upper mark before the lower one
def test_normalising_twice_changes_nothing_and_only_blanks_vanish(text: str) -> None:
    for normalize in (squad_normalised, normalize_question):
        once = normalize(text)
        assert normalize(once) == once
    assert bool(squad_normalised(text)) == bool("".join(text.split()))


def test_questions_keep_their_articles_and_words_have_places() -> None:
    assert normalize_question("Who played in “The Wall”?") == "who played in the wall"
    assert normalize_question("Is C++, C# or A+ at −40, not 1914-18?") == (
        "is c plus plus c sharp or a plus at minus 40 not 1914 18"
    )
    texts = ("7 + 3", "7 - 3", "7 × 3", "1/2", "1.2", "50%", "50", "3 < 4", "3 > 4", '"-40"', "40")
    assert len({normalize_question(text) for text in texts}) == len(texts), "a sign makes another question"
    assert normalize_question("1914–1918") == normalize_question("1914-1918") == "1914 1918"
    assert words("Édouard’s don't, 3.5!") == ["Édouard’s", "don't", "3", "5"]
    text = "It's a test."
    assert [text[start:end] for start, end in word_spans(text)] == words(text)
    assert strip_accents("Édouard Ångström") == "Edouard Angstrom"


def test_stems_are_the_same_from_many_threads_at_once() -> None:
    parts = product(("relation", "nation", "hop", "conspire"), ("al", "ing", "izations", "ly"), map(str, range(500)))
    texts = list(map("".join, parts))
    alone = snowballstemmer.stemmer("english")
    stem.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(stem, texts)) == [alone.stemWord(text) for text in texts]
