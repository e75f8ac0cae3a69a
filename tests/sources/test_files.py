"""JSON that is read record by record: what passes, how deep it may be, and which files cannot be used at all."""

import io
import json

import ijson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.errors import InputError
from quit.sources.files import MAX_DEPTH, Shallow
from tests.sources.records import dataset, good, read

TEXTS = st.text('"\\\\[]{}é\u2028x', max_size=6)
PLAIN = st.none() | st.integers() | TEXTS
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))


def _read(data: bytes, size: int) -> bytes:
    file = Shallow(io.BytesIO(data))
    return b"".join(iter(lambda: file.read(size), b""))


@given(st.lists(VALUES, max_size=3), st.integers(1, 9), st.integers(0, 3))
def test_depth_is_counted_whatever_texts_hold_and_wherever_reads_end(values, size, beyond):
    deep = MAX_DEPTH - 1 + beyond
    text = json.dumps(values, ensure_ascii=bool(size % 2))
    data = f"[{text}, {'[' * deep}{']' * deep}]".encode()
    if beyond:
        with pytest.raises(ijson.JSONError, match="levels deep"):
            _read(data, size)
    else:
        assert _read(data, size) == data


TWO = json.dumps([good("triviahg")] * 2)


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        ("triviahg", "no json at all", "is not JSON"),
        ("triviahg", "", "is empty"),
        ("triviahg", b"\xff\xfe[\x00", "not UTF-8"),
        ("triviahg", TWO[:-30], "is it cut off?"),
        ("triviahg", TWO + "x", "after the end of the array"),
        ("triviahg", "[{} {}]", "expected ',' or ']'"),
        ("triviahg", "3", "the number 3"),
        ("triviahg", "[]", "holds no record"),
        ("triviahg", '[{"Q_ID": 1}, 2]', "holds no usable record (missing_field 1, not_an_object 1)"),
        ("triviahg", "[" * 100_000, "nesting too deep"),
        ("triviahg", '[{"Q_ID": ' + "9" * 5000 + "}]", "a number too long"),
        ("hinteval", [], "without 'subsets'"),
        ("hinteval", {"name": "d"}, "without 'subsets'"),
        ("hinteval", {"subsets": {"test": {}}}, "no 'instances'"),
        ("hinteval", dataset(), "holds no record"),
        ("hinteval", dataset(test={}), "holds no record"),
        ("hinteval", dataset(test={"a": 3}), "no usable record"),
        *(("jsonl", text, "xpected") for text in ("", "hello", "3\n4", "\n\n", '{"id": 1}')),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(tmp_path, kind, content, words):
    with pytest.raises(InputError) as error:
        read(kind, tmp_path, content)
    assert words in str(error.value) and "s.json" in str(error.value) and "\n" not in str(error.value)
