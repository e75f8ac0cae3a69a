import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quit.contracts.tables import table
from quit.errors import InputError, SettingsError
from quit.stages.labelling import passages
from quit.stages.labelling.passages import (
    PassageRows,
    PermutationTable,
    enumerate_passages,
    iter_passage_texts,
    passage_count,
    passage_texts,
    permutation_name,
    permutation_table,
    permutations,
    subset_of,
)


@pytest.mark.parametrize("n", range(1, 7))
def test_those_of_itertools_depth_first(n):
    """In lexicographic order every passage follows its parent's branch, the children ascending."""
    expected = sorted(one for k in range(1, n + 1) for one in itertools.permutations(range(n), k))
    assert list(permutations(n)) == expected and passage_count(n) == len(expected)
    assert (permutations(), passage_count()) == (permutations(5), 325)
    assert subset_of("402") == subset_of(permutation_name((4, 0, 2))) == "024"


def test_the_table_agrees_with_the_tuples():
    orders, one = permutations(5), permutation_table(5)
    assert permutation_table(5) is one
    assert one.permutation.to_pylist() == ["".join(map(str, p)) for p in orders]
    assert one.subset.to_pylist() == ["".join(map(str, sorted(p))) for p in orders]
    assert one.hints.tolist() == [len(p) for p in orders]
    assert [tuple(one.indices[a:b]) for a, b in itertools.pairwise(one.offsets)] == list(orders)
    assert one.paths == orders and one.full and one.n == 5
    with pytest.raises(ValueError, match="read-only"):
        one.hints[0] = 3


def test_all_orders_of_seven_hints_are_supported_and_of_eight_are_not():
    assert passage_count(9) == 986_409 and len(permutation_table(7)) == passage_count(7) == 13_699
    for wrong in (0, 8, -1):
        with pytest.raises(SettingsError, match="expected 1 to 32,767"):
            permutation_table(wrong)


def test_a_permutation_names_36_hints_and_nothing_else():
    one = PermutationTable.of(["z0", "a", "9a1"])
    assert one.permutation.to_pylist() == ["9a1", "a", "z0"] and one.subset.to_pylist() == ["19a", "a", "0z"]
    assert one.paths == ((9, 10, 1), (10,), (35, 0)) and one.n == 36 and not one.full
    for wrong in ("", "0B", "é", "00"):
        with pytest.raises(InputError, match="is no permutation"):
            PermutationTable.of(["0", wrong])


PASSAGES = st.lists(st.lists(st.sampled_from(["0", "01", "10", "1", "2a", "b"]), unique=True), min_size=1, max_size=5)


@given(PASSAGES, st.randoms())
def test_rows_of_any_number_per_question(names, random):
    """Against loops over lists; the table has a question's rows together or not, and those of another question."""
    names = [sorted(some) for some in names]
    ids = [f"q{place}" for place in range(len(names))]
    pairs = [(question_id, name) for question_id, some in zip(ids, names, strict=True) for name in some]
    shuffled = [("other", "z"), *pairs]
    random.shuffle(shuffled)
    shuffled.sort(key=lambda pair: pair[1])  # a question's rows keep their order
    given_rows = pa.table(
        {"question_id": [pair[0] for pair in shuffled], "permutation": [pair[1] for pair in shuffled]}
    )
    rows = PassageRows.of([given_rows.slice(0, 3), given_rows.slice(3)], pa.array(ids))
    assert rows.permutation.to_pylist() == [name for _, name in pairs]
    assert rows.counts.tolist() == [*map(len, names)]
    assert [ids[place] for place in rows.owner] == [question_id for question_id, _ in pairs]
    assert rows.hints.tolist() == [len(name) for _, name in pairs] and not len(rows.unordered)
    some = np.array([place for place in range(len(ids)) if place % 2 == 0][::-1])
    assert rows.take(some).permutation.to_pylist() == [name for place in some for name in names[place]]
    places, _, _ = rows.places(given_rows, pa.array(ids))
    assert places.tolist() == [pairs.index(pair) if pair in pairs else -1 for pair in shuffled]
    parts = [range(part.start, part.stop) for part in rows.split(3)]
    assert [place for part in parts for place in part] == list(range(len(ids)))
    assert all(len(part) == 1 or sum(len(names[place]) for place in part) <= 3 for part in parts)


@pytest.mark.parametrize(
    "make",
    [list, pa.array, lambda ids: pa.array(ids).dictionary_encode(), lambda ids: pa.chunked_array([ids[:1], ids[1:]])],
)
def test_enumerate_repeats_the_permutations_for_each_question(make):
    ids = ["b", "a", "c"]
    passage_rows = enumerate_passages(make(ids), permutation_table(3))
    assert passage_rows.schema.equals(table("passages").schema)
    expected = [(q, "".join(map(str, sorted(p))), "".join(map(str, p)), len(p)) for q in ids for p in permutations(3)]
    assert list(zip(*passage_rows.to_pydict().values(), strict=True)) == expected
    assert enumerate_passages([], permutation_table(3)).num_rows == 0


def test_enumerate_over_several_chunks():
    ids = [f"q{number}" for number in range(4_000)]
    rows = enumerate_passages(ids, permutation_table(5))
    assert rows["question_id"].to_numpy()[::325].tolist() == ids
    assert np.array_equal(rows["hints"].to_numpy().reshape(4_000, 325), np.tile(permutation_table(5).hints, (4_000, 1)))
    shared = {chunk.buffers()[2].address for chunk in rows["permutation"].chunks}
    assert rows["permutation"].num_chunks > 1 and len(shared) == 1


HINTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), min_size=3, max_size=4)


@given(st.lists(HINTS, max_size=4), st.integers(1, 3))
@example([], 1)
@settings(deadline=None)
def test_text_equals_join(hints, n):
    joined = [" ".join(one[index] for index in order) for one in hints for order in permutations(n)]
    assert passage_texts(pa.array(hints, pa.list_(pa.string())), PassageRows.full(len(hints), n)).to_pylist() == joined


def test_text_of_a_slice_of_a_list_array_and_of_several_ranges():
    hints = pa.array([["x", "y"], ["a", "b"], ["c", "d"]]).slice(1)
    assert passage_texts(hints, PassageRows.full(2, 2)).to_pylist() == ["a", "a b", "b", "b a", "c", "c d", "d", "d c"]
    hints = [[f"{number}-{index}" for index in range(5)] for number in range(600)]
    expected = [" ".join(one[index] for index in p) for one in hints for p in permutations(5)]
    assert passage_texts(hints, PassageRows.full(600, 5)).to_pylist() == expected
    assert len(list(iter_passage_texts(hints, PassageRows.full(600, 5)))) > 1


def test_too_few_hints_or_too_much_text_is_refused(monkeypatch):
    for short, count in ((["a", "b"], 2), (None, 0)):
        with pytest.raises(InputError, match=f"position 1 has {count} hints; a passage of it needs more"):
            passage_texts([["a", "b", "c"], short], PassageRows.full(2, 3))
    with pytest.raises(InputError, match="null"):
        passage_texts([["a", None]], PassageRows.full(1, 2))
    with pytest.raises(InputError, match="more than an array can"):
        passage_texts([["a" * 2_000_000] * 5], PassageRows.full(1, 5))
    hints, orders = [["0123456789", "abcdefgh"]], PassageRows.full(1, 2)
    joined = ["0123456789", "0123456789 abcdefgh", "abcdefgh", "abcdefgh 0123456789"]
    for make, size in (  # a range: 3 * (10 + 8) and a space per hint; the whole: the text and four bytes per passage
        (lambda: next(iter_passage_texts(hints, orders)), 54 + 6),
        (lambda: passage_texts(hints, orders), sum(map(len, joined)) + 4 * 4),
    ):
        monkeypatch.setattr(passages, "_MAX_BYTES", size)
        assert make().to_pylist() == joined
        monkeypatch.setattr(passages, "_MAX_BYTES", size - 1)
        with pytest.raises(InputError, match=f"1 questions hold {size} bytes"):
            make()
