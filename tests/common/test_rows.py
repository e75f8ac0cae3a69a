"""Values by a key, against loops."""

from hypothesis import given
from hypothesis import strategies as st

from quit.common.rows import first_by

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers()))


@given(PAIRS)
def test_the_first_value_of_a_key_counts_and_has_its_place(pairs: list[tuple[int, int]]) -> None:
    firsts = [pair for place, pair in enumerate(pairs) if pair[0] not in [key for key, _ in pairs[:place]]]
    assert list(first_by(pairs).items()) == firsts
