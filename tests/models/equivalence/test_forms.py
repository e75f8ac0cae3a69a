"""Answers cleaned and cut, and the forms of their words."""

from quit.models.equivalence.forms import clean, focus, folded, months, numbers


def test_numbers_months_and_folded_forms():
    texts = ("2.1 million", "1,234 and 7", "twelve", "no number", "the 3rd of May 1999")
    assert [numbers(text) for text in texts] == [(2_100_000,), (1234, 7), (12,), (), (3, 1999)]
    assert [months(text) for text in ("2 September 1945", "May 5", "it may be")] == [{9}, {5}, set()]
    assert folded("The United States of America") == folded("U.S.A.") == ("usa",)
    assert folded("seven") == folded("7")
    assert folded("1910–1939") == ("1910", "1939")
    assert folded("García") == ("garcia",)


def test_footnotes_of_web_assistants_are_removed_from_running_text_only():
    text = "The song was performed byRufus and Chaka Khan and released in19741."
    assert clean(text) == "The song was performed by Rufus and Chaka Khan and released in 1974."
    assert clean("Boeing 7471") == "Boeing 7471"


def test_long_answers_keep_their_beginning_and_the_stretch_about_the_reference():
    text = " ".join(f"filler{n}" for n in range(60)) + " then Alexander Fleming came " + " ".join(["tail"] * 40)
    short = focus("Alexander Fleming", text)
    assert short.startswith("filler0 filler1") and "Alexander Fleming" in short and len(short.split()) < 30
    assert focus("x", "few words") == "few words"
