"""Every feature against a value worked out by hand."""

import pytest

from quit.models.equivalence.features import NAMES, lexical
from quit.models.protocols import Pair
from tests.rows import cases

CASES = cases(__file__, "features.tsv")


@pytest.mark.parametrize("case", CASES, ids=" | ".join)
def test_a_feature_has_the_value_worked_out_by_hand(case):
    *pair, name, value = case
    assert dict(zip(NAMES, lexical(Pair(*pair)), strict=True))[name] == pytest.approx(float(value), abs=1e-8)


def test_every_feature_is_among_them():
    assert {name for *_, name, _ in CASES} == {*NAMES}
