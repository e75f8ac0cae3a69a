from quit.report.tree import Node, tree
from quit.stages.labelling.passages import permutation_table


def _story(hints: int, right: set[str]) -> dict:
    one = permutation_table(hints)
    names = ["".join(map(str, one.indices[start:end])) for start, end in zip(one.offsets, one.offsets[1:])]
    return {
        "hints": [{"hint": f"hint {place}", "selected": True} for place in range(hints)] +
        [{"hint": "aside", "selected": False}],
        "verdicts": [{"answer": "The Nile", "correct": True}, {"answer": "Rhine", "correct": False},
         {"answer": "?!", "correct": None}],
        "passages": [
            {"permutation": name, "label": 2 if name in right else 1,
             "answers": {"z": "?!", "b": "nile" if name in right else "Rhine", "a": "never judged"}}
            for name in reversed(names)
        ],
    }  # fmt: skip


def _all(nodes: list[Node]) -> list[Node]:
    return [child for node in nodes for child in (node, *_all(node.children))]


def test_all_325_passages_stand_under_their_prefix() -> None:
    roots = tree(_story(5, {"0", "01", "014", "40"}), ["b"], ["b", "z"])
    assert [node.permutation for node in roots] == list("01234")
    nodes = _all(roots)
    assert len(nodes) == len({node.permutation for node in nodes}) == 325
    for node in nodes:
        assert all(child.permutation[:-1] == node.permutation for child in node.children)
        assert node.hint == f"hint {node.permutation[-1]}"
        assert len(node.children) == 5 - len(node.permutation)
    # Below one hint stand 4 + 12 + 24 + 24 passages; 0's own label is not below it.
    assert [node.below for node in roots] == [64] * 5
    assert [node.fully for node in roots] == [2, 0, 0, 0, 1]
    assert [node.below for node in roots[0].children] == [15] * 4


def test_answers_come_labelers_first_with_their_verdicts() -> None:
    first = tree(_story(2, {"0"}), ["b"], ["b", "z"])[0]
    # Compared as verdicts are: case and article do not matter. Unreadable and missing verdicts are none.
    assert first.answers == [("b", "nile", True, True), ("z", "?!", None, False), ("a", "never judged", None, False)]
