"""Repair of text, citation marks, numbering and boiler-plate."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.sources.text import clean_hint, is_boilerplate, repair


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("This characterÂ\xa0is the friend", "This character is the friend"),
        ("Episodes VIIâ\x80\x93IX", "Episodes VII–IX"),
        ("TrophÃ©e des Champions", "Trophée des Champions"),
        ("James Bondâ\x80\x99s car", "James Bond's car"),
        ("Tom &amp; Jerry &lt;3 <b>", "Tom & Jerry <3 <b>"),
        ("cafe\u0301", "café"),
        (" a\tb\n\nc\u2028d\u200be\u00ad ", "a b c de"),
        ("\ud800 lone surrogate", "\ufffd lone surrogate"),
        ("\x1b[31mred\x1b[0m\x00", "red"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_repair(dirty, clean):
    assert repair(dirty) == clean


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("It is both a country and a continent. [^2^]", "It is both a country and a continent."),
        ("following the Tiger[^2^].", "following the Tiger."),
        ("weighs 120–180 kg[^1^]..", "weighs 120–180 kg."),
        ("It is big[^1^][2] and old [3].", "It is big and old."),
        ("It is big [1](https://example.org/a).", "It is big."),
        ("It is old.[citation needed]", "It is old."),
        ("[^1^] It is first.", "It is first."),
        ("1. It is red.", "It is red."),
        ("Hint 3: It is red.", "It is red."),
        ("2) **Hint #2:** It is red.", "It is red."),
        ("- It is red.", "It is red."),
        # content that only looks like a mark or a number
        ("The film [1999] and index [0] stay", "The film [1999] and index [0] stay"),
        ("the interval [0, 1]", "the interval [0, 1]"),
        ("3.5 million people", "3.5 million people"),
        ("10 Downing Street is near", "10 Downing Street is near"),
        ("Hinting is its name", "Hinting is its name"),
        ("He waited... and left [1]...", "He waited... and left..."),
        ("1.", "1."),
    ],
)
def test_clean_hint(dirty, clean):
    assert clean_hint(dirty) == clean


@pytest.mark.parametrize(
    "hint",
    [
        "", "...", "-", "1.", "It", "N/A", "None", "Hints:", "Hint 4", "Sure!", "Good luck!", "https://example.org/x",
        "Sure, here are ten hints for the question:", "Here are some hints that might help you guess the answer.",
        "Of course, I can help you with that.", "I hope these hints help!", "Let me know if you need more hints.",
        "I'm sorry, but I can't help with that.", "As an AI language model, I cannot answer.",
        "Would you like another hint?",
        "Learn more: 1. en.wikipedia.org 2. britannica.com",
    ],
)  # fmt: skip
def test_boilerplate_is_recognised(hint):
    assert is_boilerplate(hint)


@pytest.mark.parametrize(
    "hint",
    [
        "It has 31 days.", "Her parents are dentists.", "東京", "Here is a hint: he was born in 1920.",
        "Let Me Know is a song by it.",
        "He was sure that hints help.", "Great Britain is near.", "Okay is a song by X",
        "Sorry Seems to Be the Hardest Word is his.",
        "The answer is a kind of bird.", "He lived here.", "I hope is what the motto says.",
        "Think about the number of vowels.",
    ],
)  # fmt: skip
def test_hints_are_not_taken_for_boilerplate(hint):
    assert not is_boilerplate(hint)


def test_no_real_hint_is_boilerplate_and_no_mark_is_left(data):
    texts = []
    for path in sorted((data / "triviahg").glob("*.json")):
        texts += [hint for record in json.loads(path.read_text("utf-8")) for hint in record["Hints"]]
    for record in json.loads((data / "wikihint" / "test_first50.json").read_text("utf-8")):
        texts += [hint["hint"] for hint in record["hints"]]
    assert len(texts) == 970 + 898 + 923 + 250
    assert sum("[^" in text for text in texts) == 467
    cleaned = [clean_hint(text) for text in texts]
    # Looked through by hand: these files hold no boiler-plate, so whatever is flagged would be a false alarm.
    assert [text for text in cleaned if is_boilerplate(text)] == []
    assert not [text for text in cleaned if "[^" in text or "Â" in text or "â\x80" in text or "\xa0" in text]
    # Cleaning takes away marks and repairs, never words: no hint loses a fifth of its length.
    assert all(len(text) >= 0.8 * len(before.strip()) for text, before in zip(cleaned, texts, strict=True))


@given(st.text())
def test_repaired_text_is_one_clean_line(text):
    repaired = repair(text)
    assert repaired == " ".join(repaired.split())
    repaired.encode("utf-8")
    cleaned = clean_hint(text)
    assert cleaned == repair(cleaned) and len(cleaned) <= len(repaired)
    assert is_boilerplate(cleaned) or any(char.isalnum() for char in cleaned)
