import csv
import io
import json
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.common.safe import EXAMPLES, escapes, json_inside, json_text, one_line, safe_id
from quit.errors import InputError

TEXT = st.text(st.characters(exclude_categories=("Cs",)))


@given(TEXT.filter(bool))
def test_a_safe_id_is_one_field_for_every_reader_and_can_be_undone(text):
    safe = safe_id(text)
    assert safe.split() == [safe] and safe.splitlines() == [safe] and safe.isprintable() >= text.isprintable()
    assert list(csv.reader(io.StringIO(f"{safe}\tx\n"), delimiter="\t")) == [[safe, "x"]]
    assert unquote(safe) == text, "so that distinct ids stay distinct"


def test_safe_ids_by_hand_and_an_empty_one_is_refused():
    texts = ("jsonl-geo-003", "a b", "a%20b", "é\t", "\u2028")
    assert [*map(safe_id, texts)] == ["jsonl-geo-003", "a%20b", "a%2520b", "é%09", "%E2%80%A8"]
    with pytest.raises(InputError, match="empty id"):
        safe_id("")


@given(TEXT)
def test_one_line_is_one_field_of_one_line(text):
    safe = one_line(text)
    assert len(safe) == len(text) and "\t" not in safe and "\0" not in safe
    assert safe.splitlines() in ([safe], []), "no reader sees a line end"
    assert all(old == new or new == " " for old, new in zip(text, safe, strict=True))
    assert one_line(safe) == safe


@given(st.lists(TEXT, min_size=1))
def test_json_escaped_by_parts_is_the_json_of_the_whole(texts):
    line = '{"a": "' + " ".join(json_inside(text) for text in texts) + '"}'
    assert json.loads(line) == {"a": " ".join(texts)}
    assert line.splitlines() == [line] and line == json_text({"a": " ".join(texts)})


def test_what_was_escaped_is_counted_and_named():
    counts = escapes(["ok", "a b", "c%"], ["fine", "two\nlines", "tab\t"])
    assert (counts["ids"], counts["texts"]) == (2, 2)
    assert counts["id_examples"] == {"a b": "a%20b", "c%": "c%25"}
    assert len(escapes([f"{number} x" for number in range(99)])["id_examples"]) == EXAMPLES
