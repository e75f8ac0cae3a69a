"""What labelers leave open, by hand: of 10 passages A is right on 4, B on 5 (3 of them A's), C on 1 alone."""

from collections import Counter
from types import SimpleNamespace

import pytest

from quit.operations import partial
from quit.operations.partial import partial_plan, share_open

FULL = Counter({(7, 0b001): 1, (7, 0b011): 3, (7, 0b010): 2, (7, 0b100): 1, (7, 0): 3})


def test_what_labelers_leave_open_is_counted_by_hand() -> None:
    assert [share_open(FULL, earlier) for earlier in ([], [0], [1], [0, 1], [0, 1, 2])] == [1, 0.6, 0.5, 0.4, 0.3]
    assert share_open(Counter(), []) is None


def test_a_partly_asked_build_tells_of_its_own_order_only() -> None:
    waves = Counter({(0b001, 0b001): 4, (0b011, 0b010): 2, (0b111, 0b100): 1, (0b111, 0): 3})
    assert [share_open(waves, earlier) for earlier in ([], [0], [0, 1])] == [1, 0.6, 0.4]
    assert share_open(waves, [1]) is None


@pytest.mark.parametrize(
    ("left", "ranges"),
    [
        ([("read", "c"), ("label", None)], None),  # of other readers nothing is said
        ([("read", "b")], [("a", 0, 0), ("b", 0, 325), ("total", 0, 325)]),
        ([("read", "a"), ("read", "b")], [("a", 325, 325), ("b", 0, 325), ("total", 325, 650)]),
    ],
)
def test_a_plan_asks_nothing_of_labelers_that_were_asked(monkeypatch, left, ranges) -> None:
    monkeypatch.setattr(partial, "_measured_patterns", lambda *_: Counter())
    runs = [SimpleNamespace(stage=SimpleNamespace(name=name), reader=reader) for name, reader in left]
    strategy = SimpleNamespace(in_turn=True, labelers=["a", "b"])
    plan = partial_plan(SimpleNamespace(strategy=strategy, left_to_do=runs), 325, {})
    assert (plan and [(row.labeler, row.least, row.most) for row in plan.ranges]) == ranges
