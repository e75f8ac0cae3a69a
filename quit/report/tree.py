"""A question's passages as a tree: each stands under those that it continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from quit.stages.labelling.passages import passage_hints
from quit.status.story import Story
from quit.text.answers import answer_key


class NodeAnswer(NamedTuple):
    """A reader's answer from a passage. ``correct``: None where there is no verdict that can be read."""

    reader: str
    answer: str
    correct: bool | None
    is_labeler: bool


@dataclass
class Node:
    """One passage. ``hint``: what it adds to its parent, the longest passage that it begins with; ``below``,
    ``fully``: passages under it, of these label 2."""

    permutation: str
    hint: str
    label: int | None
    answers: list[NodeAnswer]
    children: list[Node] = field(default_factory=list)
    below: int = 0
    fully: int = 0


def tree(story: Story, labelers: Sequence[str], readers: Sequence[str]) -> list[Node]:
    """Return the passages that continue no other, each with those that continue it, in hint order.

    ``labelers`` come first among a passage's answers, then ``readers``, then any others.
    """
    hints = [hint["hint"] for hint in story["hints"] if hint["selected"]]
    verdicts = {answer_key(row["answer"]): row["correct"] for row in story["verdicts"]}
    order = {name: position for position, name in enumerate(dict.fromkeys([*labelers, *readers]))}
    roots: list[Node] = []
    nodes: dict[str, Node] = {}
    for passage in sorted(story["passages"], key=lambda row: row["permutation"]):
        permutation = passage["permutation"]
        pairs = sorted(passage["answers"].items(), key=lambda item: (order.get(item[0], len(order)), item[0]))
        answers = [
            NodeAnswer(reader, answer, verdicts.get(answer_key(answer)), reader in labelers) for reader, answer in pairs
        ]
        above = [nodes[start] for end in range(1, len(permutation)) if (start := permutation[:end]) in nodes]
        suffix = permutation[len(above[-1].permutation) :] if above else permutation
        node = Node(permutation, " ".join(passage_hints(hints, suffix)), passage["label"], answers)
        nodes[permutation] = node
        (above[-1].children if above else roots).append(node)
        for each in above:
            each.below += 1
            each.fully += passage["label"] == 2
    return roots
