"""Repair of text, citation marks, numbering and boiler-plate."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.sources.text import clean_hint, is_boilerplate, repair
from tests.rows import cases

CALLS = {"repair": repair, "clean_hint": clean_hint, "boilerplate": is_boilerplate}


@pytest.mark.parametrize(("name", "text", "expected"), cases(__file__, "texts.jsonl"))
def test_texts_by_hand(name: str, text: str, expected: str | bool) -> None:
    """Repairs; marks and numbers, and content that only looks like one; boiler-plate, and hints that are none."""
    assert CALLS[name](text) == expected


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
