"""JSON that is read record by record: what passes, and how deep it may be."""

import io
import json

import ijson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.sources.files import MAX_DEPTH, Shallow

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
