"""The embedded equivalence against what a person would say of short pairs, and against its own promises."""

import numpy as np
import pytest

from quit.models.equivalence.embedded import WEIGHTS, EmbeddedEquivalence
from quit.models.equivalence.features import NAMES, clean, focus, folded, lexical, months, numbers
from quit.models.protocols import Pair

Q = {
    "author": "Who wrote the novel?",
    "penicillin": "Who discovered penicillin?",
    "capital": "Which city is the capital of France?",
    "country": "Which country won the war in 1865?",
    "war": "When did the Second World War end?",
    "many": "How many people live in the city?",
    "actor": "Who played the leading role in the film?",
    "animal": "What is the largest animal on earth?",
    "river": "What is the longest river in Africa?",
    "band": "Which band recorded Yesterday?",
    "element": "What is the chemical element with the symbol Au?",
    "disease": "Which disease is caused by a lack of vitamin C?",
    "height": "How tall is the tower?",
}

# Said by hand before the model was tried.
SAME = {
    "capital": [("Paris", "Paris"), ("Paris", "paris."), ("Paris", "the city of Paris")],
    "country": [("United States", "USA"), ("United States", "the United States of America"),
        ("United States", "U.S."), ("United Kingdom", "UK")],
    "penicillin": [("Alexander Fleming", "Sir Alexander Fleming"), ("Alexander Fleming", "Fleming"),
        ("Alexander Fleming", "A. Fleming"), ("Alexander Fleming", "alexander fleming")],
    "author": [("J. K. Rowling", "Joanne Rowling"), ("J. R. R. Tolkien", "John Ronald Reuel Tolkien"),
        ("Gabriel García Márquez", "Gabriel Garcia Marquez"), ("Fyodor Dostoevsky", "Dostoevsky"),
        ("Mark Twain", "It was Mark Twain.")],
    "war": [("2 September 1945", "September 2, 1945"), ("1945", "in 1945")],
    "many": [("seven", "7"), ("2.1 million", "2,100,000"), ("twelve", "12 people")],
    "animal": [("blue whale", "the blue whale"), ("blue whale", "blue whales")],
    "river": [("Nile", "the River Nile"), ("the Nile", "The Nile River")],
    "band": [("The Beatles", "Beatles")],
    "element": [("gold", "Gold (Au)")],
    "disease": [("scurvy", "Scurvy")],
    "actor": [("Robert Downey Jr.", "Robert Downey, Jr."), ("Daren Maxwell Kagasoff", "Daren Kagasoff")],
}  # fmt: skip
DIFFERENT = {
    "capital": [("Paris", "Lyon"), ("Paris", "London"), ("Paris", "city"), ("Paris", "France"), ("Paris", "capital")],
    "author": [("Pauline", "Paul"), ("Mark Twain", "Charles Dickens"), ("J. K. Rowling", "J. R. R. Tolkien"),
        ("Jane Austen", "novel"), ("Jane Austen", "NO ANSWER"), ("Jane Austen", "English")],
    "penicillin": [("Alexander Fleming", "Ian Fleming"), ("Alexander Fleming", "scientist"),
        ("Alexander Fleming", "Louis Pasteur"), ("Alexander Fleming", "penicillin")],
    "country": [("United States", "United Kingdom"), ("South Korea", "North Korea"), ("Niger", "Nigeria")],
    "war": [("1945", "1946"), ("1945", "1918"), ("2 September 1945", "2 October 1945")],
    "many": [("seven", "8"), ("2.1 million", "2.1 billion")],
    "animal": [("blue whale", "elephant"), ("blue whale", "ocean")],
    "river": [("Nile", "Amazon"), ("Nile", "river"), ("Nile", "Egypt")],
    "band": [("The Beatles", "The Rolling Stones"), ("The Beatles", "album")],
    "element": [("gold", "silver")],
    "disease": [("scurvy", "rickets")],
    "actor": [("George Bush", "Kate Bush"), ("Oxford University", "university")],
}  # fmt: skip


def _cases(table: dict[str, list[tuple[str, str]]]) -> list[tuple[str, str, str]]:
    return [(key, *pair) for key, pairs in table.items() for pair in pairs]


@pytest.fixture(scope="module")
def model() -> EmbeddedEquivalence:
    return EmbeddedEquivalence()


def _pair(key: str, reference: str, candidate: str) -> Pair:
    return Pair(Q[key], reference, candidate)


@pytest.mark.parametrize("case", _cases(SAME), ids=" | ".join)
def test_short_answers_that_mean_the_same(model, case):
    assert model.probability([_pair(*case)])[0] >= 0.5


@pytest.mark.parametrize("case", _cases(DIFFERENT), ids=" | ".join)
def test_short_answers_that_do_not(model, case):
    assert model.probability([_pair(*case)])[0] < 0.5


def test_an_expansion_of_other_words_is_refused(model):
    maser = "Microwave Amplification by Stimulated Emission of Radiation"
    assert model.probability([Pair("What does laser stand for?", maser.replace("Microwave", "Light"), maser)])[0] < 0.5


def test_broken_encodings_are_repaired(model):
    broken, whole = (Pair("Who became king?", name, "Dáin Ironfoot") for name in ("DÃ¡in", "Dáin"))
    assert model.probability([broken])[0] == model.probability([whole])[0] >= 0.5


def test_equal_after_normalisation_is_nearly_certain(model):
    equal = [("capital", "Paris", "PARIS"), ("band", "The Beatles", "the beatles"), ("many", "seven", "Seven.")]
    assert model.probability([_pair(*case) for case in equal]).min() > 0.95


def test_a_word_of_a_hint_is_no_answer(model):
    hint = "This port on the Seine was named after a Celtic tribe and is famous for its iron tower and its museums"
    skipped = {"this", "on", "the", "was", "after", "a", "and", "is", "for", "its"}
    asked = [_pair("capital", "Paris", word) for word in hint.split() if word.lower() not in skipped]
    assert model.probability(asked).max() < 0.5


def test_company_and_order_do_not_change_a_bit(model):
    pairs = [_pair(*case) for case in _cases(SAME) + _cases(DIFFERENT)]
    together = EmbeddedEquivalence().probability(pairs)
    alone = np.array([EmbeddedEquivalence().probability([pair])[0] for pair in pairs[:6]])
    backwards = EmbeddedEquivalence().probability(pairs[::-1] + pairs)[: len(pairs)][::-1]
    assert together[:6].tobytes() == alone.tobytes()
    assert together.tobytes() == np.ascontiguousarray(backwards).tobytes()
    assert model.probability(pairs).tobytes() == together.tobytes()


def test_strange_texts_are_answered_not_refused(model):
    texts = ["", " ", "?", "العربية", "東京", "x" * 5000, "word " * 3000, "\u0000", "1e999", "٣", "½", "9" * 400]
    p = model.probability([Pair("", a, b) for a in texts for b in texts])
    assert np.isfinite(p).all() and p.min() >= 0 and p.max() <= 1
    assert model.probability([Pair("Where?", "東京", "東京")])[0] > 0.9 and model.probability([]).shape == (0,)


def test_identity_is_that_of_the_weights(tmp_path):
    copy = tmp_path / "other.npz"
    copy.write_bytes(WEIGHTS.read_bytes())
    assert EmbeddedEquivalence(weights=copy).identity == EmbeddedEquivalence().identity
    copy.write_bytes(WEIGHTS.read_bytes() + b"\0")
    assert EmbeddedEquivalence(weights=copy).identity != EmbeddedEquivalence().identity


@pytest.mark.slow
def test_agrees_with_people_on_questions_it_was_not_trained_on(model, data):
    """The figure of the model card, on the part of EVOUNA (Apache-2.0) that training leaves out."""
    import hashlib
    import json

    right = asked = 0
    for record in json.loads((data / "evouna" / "NQ.json").read_text(encoding="utf-8")):
        flat = " ".join(record["question"].lower().split())
        if record["improper"] or int.from_bytes(hashlib.blake2b(flat.encode(), digest_size=8).digest(), "big") % 10:
            continue
        golds = [gold.strip() for gold in record["golden_answer"].split("/") if gold.strip()]
        for system in ("fid", "gpt35"):
            verdict, answer = record[f"judge_{system}"], record[f"answer_{system}"]
            if isinstance(verdict, bool) and isinstance(answer, str):
                chance = model.probability([Pair(record["question"], gold, answer) for gold in golds]).max()
                right, asked = right + ((chance >= 0.5) == verdict), asked + 1
    assert asked > 500
    assert right / asked > 0.92


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2.1 million", (2_100_000.0,)),
        ("1,234 and 7", (1234.0, 7.0)),
        ("twelve", (12.0,)),
        ("no number", ()),
        ("the 3rd of May 1999", (3.0, 1999.0)),
    ],
)
def test_numbers_are_read(text, values):
    assert numbers(text) == values


def test_months_are_read_and_the_verb_may_is_none():
    assert months("2 September 1945") == {9}
    assert months("May 5") == {5}
    assert months("it may be") == frozenset()


def test_folded_forms():
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


def test_features_have_their_names():
    features = dict(zip(NAMES, lexical("When?", "May 14, 2002", "November 16, 2002"), strict=True))
    assert features["month_clash"] == 1 and features["year_clash"] == 0 and features["equal"] == 0
