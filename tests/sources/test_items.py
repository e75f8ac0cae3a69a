"""JSON that is read record by record: the same values wherever reads end; which files cannot be used at all."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.errors import InputError
from quit.sources.items import AT_ONCE, array_items
from tests.sources.records import dataset, good, read

TEXTS = st.text('"\\[]{}é\u2028x😀', max_size=6)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))


def values_of(data: bytes, at_once: int = AT_ONCE) -> Iterator[Any]:
    return (item.value for item in array_items(io.BytesIO(data), Path("s.json"), "an array", None, at_once))


@given(st.lists(VALUES, max_size=4), st.integers(1, 9), st.sampled_from([None, 2]), st.booleans(), st.booleans())
def test_values_are_those_of_the_whole_wherever_reads_end(values, at_once, indent, escaped, marked) -> None:
    data = json.dumps(values, ensure_ascii=escaped, indent=indent).encode("utf-8-sig" if marked else "utf-8")
    assert list(values_of(data, at_once)) == values
    with pytest.raises(InputError):
        list(values_of(data[:-1], at_once))
    line = data.count(b"\n") + 2
    with pytest.raises(InputError, match=rf"unexpected text after the end of the array \(line {line}, column 3\)"):
        list(values_of(data + b"\n  1", at_once))


@pytest.mark.parametrize(("text", "count", "message"), [
    (b"", 0, "no array at its beginning"), (b'{"a": []}', 0, "no array at its beginning"),
    (b"[1,\n2 3]", 2, r"expected ',' or '\]' after record 2 \(line 2, column 3\)"),
    (b"[1, ]", 1, "Expecting value|trailing comma"), (b'["\xff"]', 0, r"UTF-8 text \(byte 2\)"),
    (b'["a\nb"]', 0, "control character"),
    (b"[1,\n{a: 1}" + b" " * 99 + b"]", 1, r"Expecting property name .* in record 2 \(line 2, column 2\)"),
    (b"[" * 200_000 + b"]" * 200_000, 0, "nesting too deep"), (b"[1, " + b"9" * 5000 + b"]", 1, "number too long"),
])  # fmt: skip
def test_what_is_no_array_is_refused_after_the_values_before(text: bytes, count: int, message: str) -> None:
    for at_once in (1, 1 << 20):
        values = []
        with pytest.raises(InputError, match=message):
            for value in values_of(text, at_once):
                values.append(value)
        assert values == [1, 2][:count]


TWO = json.dumps([good("triviahg")] * 2)
BAD_RECORDS = [
    ("no json at all", "is not JSON"), ("", "is empty"), (b"\xff\xfe[\x00", "not UTF-8"), ("3", "the number 3"),
    (TWO[:-30], "is it cut off?"), (TWO + "x", "after the end of the array"), ("[{} {}]", "expected ',' or ']'"),
    ("[]", "holds no record"), ('[{"Q_ID": 1}, 2]', "holds no usable record (missing_field 1, not_an_object 1)"),
    ("[" * 100_000, "nesting too deep"), ('[{"Q_ID": ' + "9" * 5000 + "}]", "a number too long"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        *(("triviahg", *case) for case in BAD_RECORDS),
        *(("hinteval", value, "without 'subsets'") for value in ([], {"name": "d"})),
        *(("hinteval", value, "holds no record") for value in (dataset(), dataset(test={}))),
        ("hinteval", {"subsets": {"test": {}}}, "no 'instances'"),
        ("hinteval", dataset(test={"a": 3}), "no usable record"),
        *(("jsonl", text, "xpected") for text in ("", "hello", "3\n4", "\n\n", '{"id": 1}')),
        ("jsonl", '{"id": 1}'.encode("utf-16"), "UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(tmp_path, kind, content, words):
    with pytest.raises(InputError) as error:
        read(kind, tmp_path, content)
    assert words in str(error.value) and "s.json" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["triviahg", "wikihint"])
def test_forms_of_a_file_of_records(tmp_path, kind):
    name = {"triviahg": "Q_ID", "wikihint": "id"}[kind]
    one, two, bare = good(kind), good(kind, **{name: "q2"}), good(kind, **{name: ...})
    for value, expected in (
        ({"a": one, "b": two}, ["s.json 0 q1", "s.json 1 q2"]),
        ({"a": bare, "b": bare}, ["s.json 0 a", "s.json 1 b"]),
        ({"train": [one], "test": [one, two]}, ["s.json#train 0 q1", "s.json#test 0 q1", "s.json#test 1 q2"]),
        ({"data": [one]}, ["s.json 0 q1"]),
        (one, ["s.json 0 q1"]),
        (" " * 5000 + json.dumps([one]), ["s.json 0 q1"]),
        (
            "\n".join([json.dumps(one), json.dumps(two), "{broken", ""]),
            ["s.json 0 q1", "s.json 1 q2", "not_json line 3"],
        ),
    ):
        records = read(kind, tmp_path, value)
        found = [record.question for record in records if record.question]
        questions = [f"{question.file} {question.position} {question.record_id}" for question in found]
        faults = [f"{reject.reason} {reject.detail[:6]}" for record in records for reject in record.rejects]
        assert [*questions, *faults] == expected
