"""Designs of passages against loops over itertools, and sums by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from quit.errors import SettingsError
from quit.settings import PassageDesign
from quit.stages.labelling.design import design_passages, design_table, extremes, hints_of, planned_paths
from quit.stages.labelling.passages import permutation_table

ORDERS = ("source", "ascending", "descending")


def _own(convergence: list[float], position: list[int]) -> dict[str, list[dict[str, Any]]]:
    """A question's hints as rank has them: by convergence, with their places in the source."""
    ranked = sorted(zip(convergence, position, strict=True), reverse=True)
    return {"q": [{"convergence": value, "position": place} for value, place in ranked]}


@given(st.data())
def test_sizes_and_orders_are_those_of_itertools(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    sizes = tuple(data.draw(st.lists(st.integers(1, n), min_size=1, unique=True)))
    some_orders = [some for size in (1, 2, 3) for some in itertools.permutations(ORDERS, size)]
    orders = data.draw(st.sampled_from(["all", *some_orders]))
    design = PassageDesign(hints="all", sizes=sizes, orders=orders)
    values = data.draw(st.lists(st.integers(0, 9).map(lambda value: value / 10), min_size=n, max_size=n))
    own = _own(values, data.draw(st.permutations(range(n))))
    expected = set()
    for some in itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in sizes):
        by_source = sorted(some, key=lambda rank: own["q"][rank]["position"])
        named = {"source": by_source, "descending": list(some), "ascending": list(some)[::-1]}
        chosen = itertools.permutations(some) if orders == "all" else (named[order] for order in orders)
        expected |= {"".join(map(str, order)) for order in chosen}
    rows = design_passages(design, own)
    assert rows["permutation"].to_pylist() == sorted(expected)
    assert len(rows) <= design.count(n) and (len(rows) == design.count(n) or orders != "all")


def test_quits_design_is_the_default_and_has_325_passages() -> None:
    design = PassageDesign()
    assert design.is_full and design.count(5) == 325
    assert design_table(5, design).permutation.equals(permutation_table(5).permutation)
    assert not PassageDesign(sizes=(3, 4, 5)).is_full and not PassageDesign(hints="all").is_full


def test_the_convergence_papers_design_of_ten_hints() -> None:
    """C(10, 3) + C(10, 4) + C(10, 5) = 120 + 210 + 252 sets, each in two orders; ten lowest and ten highest of each."""
    every = PassageDesign(hints="all", sizes=(3, 4, 5), orders=("ascending", "descending"))
    assert every.count(10) == 2 * (120 + 210 + 252) == len(design_table(10, every))
    ends = every.model_copy(update={"extremes": 10})
    convergence = [round(1 - place * 0.07, 2) for place in range(10)]
    own = _own(convergence, list(range(10)))
    rows = design_passages(ends, own)
    sets = [some for size in (3, 4, 5) for some in itertools.combinations(range(10), size)]
    mean_of = {some: math.fsum(convergence[rank] for rank in some) / len(some) for some in sets}
    in_order = sorted(sets, key=lambda some: (round(mean_of[some], 9), sets.index(some)))
    highest = sorted(sets, key=lambda some: (-round(mean_of[some], 9), sets.index(some)))
    expected = {"".join(map(str, some)) for some in (*in_order[:10], *highest[:10])}
    assert {*rows["subset"].to_pylist()} == expected and len(rows) == 40 == ends.count(10)


def test_extremes_by_cosine_and_convergence_are_joined() -> None:
    design = PassageDesign(hints="all", sizes=(1,), orders=("source",), extremes=1, by=("convergence", "cosine"))
    for cosines, chosen in (([0.2, 0.9, 0.1, 0.3], ["0", "1", "2", "3"]), ([0.9, 0.6, 0.3, 0.1], ["0", "3"])):
        rows = design_passages(
            design,
            _own([0.9, 0.6, 0.3, 0.1], [0, 1, 2, 3]),
            lambda _, sets, cosines=cosines: extremes(np.array(cosines), sets, 1),
        )
        assert rows["permutation"].to_pylist() == chosen


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hints": 7, "sizes": range(1, 8)}, None),  # 13,699
        (
            {"hints": 8, "sizes": range(1, 9)},
            r"8 \+ 56 \+ 336 \+ 1,680 \+ .* = 109,600 passages",
        ),
        ({"hints": 2, "sizes": [3]}, "2 hints make 0 passages"),
        ({"hints": 9, "sizes": [1, 9], "extremes": 1}, "9 hints make 1 \\+ 362,880 = 362,881 passages"),
        ({"hints": 36, "sizes": [12], "orders": "source", "extremes": 1}, "have 1,251,677,700 sets to choose from"),
        ({"sizes": [1, 1]}, "name at least one, none twice, and `all` alone"),
        ({"orders": ["source", "all"]}, "name at least one, none twice"),
        ({"orders": []}, "name at least one"),
        ({"hints": 37}, "less than or equal to 36"),
    ],
)
def test_the_number_of_passages_is_checked_with_its_sum(values: dict[str, Any], message: str | None) -> None:
    if message is None:
        PassageDesign.model_validate(values)
        return
    with pytest.raises(ValidationError, match=message):
        PassageDesign.model_validate(values)


def test_a_question_of_too_many_hints_is_named_where_all_make_passages() -> None:
    with pytest.raises(SettingsError, match=r"^12 hints make 12 \+ 132 \+ .* = 108,384 passages"):
        design_table(12, PassageDesign(hints="all"))


def test_a_plan_has_as_many_passages_as_the_design() -> None:
    design = PassageDesign(hints="all", sizes=(2, 3), orders=("descending",), extremes=2)
    assert len(planned_paths(design, 8)) == design.count(8) == 4
    assert planned_paths(PassageDesign(), 5) == list(permutation_table(5).paths)


def test_hints_of_questions_have_their_place_in_the_source() -> None:
    hints = pa.table({"hint_id": ["a", "b", "c"], "position": [0, 1, 2]})
    ranked = pa.table({"question_id": ["q"] * 3, "hint_id": ["c", "a", "b"], "rank": [0, 1, 2],
                       "selected": [True, True, False]})  # fmt: skip
    own = hints_of(pa.array(["q", "of no hint"]), hints, ranked)
    assert [(row["hint_id"], row["position"]) for row in own["q"]] == [("c", 2), ("a", 0)] and [*own] == ["q"]
