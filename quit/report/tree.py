"""A question's passages as a tree by prefix: passage ``402`` continues ``40``, which continues ``4``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quit.text.normalize import normalize_answer


@dataclass
class Node:
    """One passage. ``hint``: the hint that it adds to its parent; ``answers``: reader, answer, whether it is correct
    (None: no verdict that can be read), whether the reader is a labeler; ``below``, ``fully``: passages under it, of
    these label 2; ``predicted``: probability of label 2 where the label is predicted."""

    permutation: str
    hint: str
    label: int | None
    answers: list[tuple[str, str, bool | None, bool]]
    children: list[Node] = field(default_factory=list)
    below: int = 0
    fully: int = 0
    predicted: float | None = None


def tree(story: Mapping[str, Any], labelers: Sequence[str], readers: Sequence[str]) -> list[Node]:
    """Return the passages of one hint, each with those that continue it, in hint order.

    ``story``: of :func:`quit.status.story.story`. ``labelers`` come first among a passage's answers, then ``readers``,
    then any others.
    """
    hints = [hint["hint"] for hint in story["hints"] if hint["selected"]]
    verdicts = {normalize_answer(row["answer"]): row["correct"] for row in story["verdicts"]}
    order = {name: position for position, name in enumerate(dict.fromkeys([*labelers, *readers]))}
    roots: list[Node] = []
    nodes: dict[str, Node] = {}
    for passage in sorted(story["passages"], key=lambda row: row["permutation"]):
        permutation = passage["permutation"]
        pairs = sorted(passage["answers"].items(), key=lambda item: (order.get(item[0], len(order)), item[0]))
        answers = [
            (reader, answer, verdicts.get(normalize_answer(answer)), reader in labelers) for reader, answer in pairs
        ]
        node = Node(
            permutation, hints[int(permutation[-1])], passage["label"], answers, predicted=passage.get("predicted")
        )
        nodes[permutation] = node
        parent = nodes.get(permutation[:-1])
        (parent.children if parent else roots).append(node)
        for end in range(1, len(permutation)):
            above = nodes[permutation[:end]]
            above.below += 1
            above.fully += passage["label"] == 2
    return roots
