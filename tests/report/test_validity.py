"""The chapter on what the labels rest on: its figures by hand and by loops over the rows."""

from collections import defaultdict
from itertools import permutations

import pytest

from quit.render.table import Plot
from quit.report.validity import role_figures, roles
from tests.release import small
from tests.report import tiny


@pytest.fixture
def data():
    rows = tiny.rows()
    _, q2, q3 = rows["question_roles"]
    q2 |= {"fewest_in_every_order": None, "without_hints": 0.75}
    q3["fewest_in_every_order"] = 2
    return rows


def test_figures_are_those_of_the_rows(data, tmp_path) -> None:
    with tiny.workspace(tmp_path / "W", data).connect() as connection:
        figures = role_figures(connection)
    counts = {"questions": 3, "in_every": 2, "in_some": 3, "not_probed": 2, "without": 0.25}
    assert figures["questions"] == [counts]
    rows = [("1", 1, 0, 0, 1), ("2", 0, 0, 1, 1), ("no set", 0, 1, 0, 1)]
    assert [tuple(row.values()) for row in figures["fewest"]] == rows
    labels = {(row["question_id"], row["permutation"]): row["label"] for row in data["labels"]}
    mixed = sum(len({labels[one, "".join(order)] for order in permutations("01")}) > 1 for one in small.SPLIT)
    assert figures["order"] == [{"hints": 2, "sets": 3, "mixed": mixed}]
    by_rank = defaultdict(list)
    for row in data["hint_roles"]:
        by_rank[row["rank"]].append(row["shapley"])
    means = {rank: sum(values) / 3 for rank, values in by_rank.items()}
    assert {row["rank"]: row["mean"] for row in figures["ranks"]} == pytest.approx(means)
    assert figures["ranks"][1]["error"] == pytest.approx((0.0625 / 3 / 3) ** 0.5)  # 0, -1/4, -1/4: variance 1/48


def test_the_chapter_says_what_its_figures_are(data, tmp_path) -> None:
    with tiny.workspace(tmp_path / "W", data).connect() as connection:
        text, *rest = roles(role_figures(connection))
    for words in ("Of 3 questions, 2 have a set", "3 one that suffices in some order", "which counts as 0: 2.",
                  "Of the passages with all hints 91.7% have",
                  "25.0% is success without hints, 66.7% the sum"):  # fmt: skip
        assert words in text, words
    assert all(isinstance(piece, Plot) for piece in rest) and len(rest) == 3


def test_without_roles_there_is_no_chapter(tmp_path) -> None:
    rows = {name: rows for name, rows in tiny.rows().items() if not name.endswith("_roles")}
    with tiny.workspace(tmp_path / "W", rows).connect() as connection:
        assert [*roles(role_figures(connection))] == []
