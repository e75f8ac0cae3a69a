"""Why passages have label 2, in words and figures."""

import pytest

from quit.errors import InputError
from quit.render.table import markdown
from quit.status.story import story
from quit.status.why import why, why_pieces
from tests.release import small
from tests.report import tiny
from tests.running import call_quit


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return tiny.workspace(tmp_path_factory.mktemp("why") / "W")


def test_which_hints_suffice_and_whether_order_matters(workspace) -> None:
    facts = why({**story(workspace, "q2"), "labelers": ["one"]})  # label 2 of 0 and 01, not of 1 and 10
    assert facts["minimal_sets"] == ["0"] and facts["right"] == {"one": 2}
    sets = [("0", 1, 1), ("1", 1, 0), ("01", 2, 1)]
    assert [tuple(row.values()) for row in facts["sets"]] == sets
    text = markdown(why_pieces(facts))
    for words in ("Label 2: 2 of 4 passages. Right: one on 2.", "Enough in every order: hint 0.",
                  "Label 2 without hints: not known",
                  "Order matters for 1 of 1 set of two hints or more, such as 0+1 (label 2 in 1 of 2).",
                  "| 1 | He died in Mougins. | -0.25 | – | 1 of 2 |"):  # fmt: skip
        assert words in text, words


def test_a_minimal_set_holds_no_other(workspace) -> None:
    life = story(workspace, "q1")
    label_2 = {"0": 0, "1": 1, "2": 0, "01": 2, "02": 2, "12": 1, "012": 6}
    orders = {1: 1, 2: 2, 3: 6}
    life["sets"] = [{"subset": one, "orders": orders[len(one)], "label_2": two} for one, two in label_2.items()]
    life["roles"]["without_hints"] = 1 / 3
    facts = why(life)
    assert facts["minimal_sets"] == ["1", "02"]
    text = markdown(why_pieces(facts))
    for words in ("order: hint 1, hints 0+2.", "in 33.3% of the probe's"):
        assert words in text, words


def test_a_question_that_was_left_out_has_no_roles(workspace) -> None:
    with pytest.raises(
        InputError, match="q4 has no roles of hints: it was left out, has no labels yet, or its passages"
    ):
        why(story(workspace, "q4"))


def test_a_release_says_the_same(workspace, tmp_path) -> None:
    small.freeze(tmp_path / "v1", small.rows())
    places = (tmp_path / "v1", workspace.path)
    shown, same = (call_quit("show", "-w", place, "q3", "--why", "--json").json() for place in places)
    assert shown["sets"] == same["sets"] and shown["hint_roles"] == same["hint_roles"]
    assert "Enough in every order: hint 0." in call_quit("show", "-w", tmp_path / "v1", "q3", "--why").out
