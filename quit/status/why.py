"""Why passages of a question have label 2, from its labels alone: for ``quit show --why``."""

from __future__ import annotations

from typing import TypedDict

from quit.common.rows import Row
from quit.errors import InputError
from quit.render.table import Table, percent
from quit.status.story import HintRole, Story, SubsetLabels
from quit.text.words import counted


class WhyFacts(TypedDict):
    """``roles``, ``hint_roles``, ``sets``: as in the story; ``minimal_sets``: that are enough in every order, and hold
    no other such; ``right``: labeler -> on how many passages it is."""

    question_id: str
    roles: Row
    hint_roles: list[HintRole]
    sets: list[SubsetLabels]
    minimal_sets: list[str]
    right: dict[str, int]


def why(story: Story) -> WhyFacts:
    """Return what a question's labels say of its hints.

    Raises ``InputError`` for a question without labels, or a release without these tables.
    """
    if story["roles"] is None:
        name = story["question_id"]
        raise InputError(
            f"{name} has no roles of hints: it was left out, has no labels yet, or its passages are not all orders of "
            "its hints. Leave out --why."
        )
    labelers = [row["correct_labelers"] or () for row in story["passages"]]
    sufficient = [row["subset"] for row in story["sets"] if row["label_2"] == row["orders"]]
    return {
        "question_id": story["question_id"],
        "roles": story["roles"],
        "hint_roles": story["hint_roles"],
        "sets": story["sets"],
        "minimal_sets": [subset for subset in sufficient if not any({*other} < {*subset} for other in sufficient)],
        "right": {name: sum(name in names for names in labelers) for name in story["labelers"]},
    }


def why_pieces(facts: WhyFacts) -> list[Table | str]:
    """Return what :func:`why` says in sentences and a table."""
    sets, without = facts["sets"], facts["roles"]["without_hints"]
    set_names = [f"{'hint' if len(digits) == 1 else 'hints'} {'+'.join(digits)}" for digits in facts["minimal_sets"]]
    in_part = [row for row in sets if 0 < row["label_2"] < row["orders"]]
    such = [f", such as {'+'.join(row['subset'])} (label 2 in {row['label_2']} of {row['orders']})" for row in in_part]
    right = ", ".join(f"{name} on {count:,}" for name, count in facts["right"].items())
    label_2, passages = sum(row["label_2"] for row in sets), sum(row["orders"] for row in sets)
    several = counted(sum(row["orders"] > 1 for row in sets), "set")
    share = "not known, counted as never" if without is None else f"in {percent(without)} of the probe's repetitions"
    lines = [
        f"Label 2: {label_2:,} of {passages:,} passages. Right: {right}.",
        f"Enough in every order: {', '.join(set_names) or 'no set of hints'}.",
        f"Order matters for {len(in_part)} of {several} of two hints or more{such[0] if such else ''}.",
        f"Label 2 without hints: {share}.",
    ]
    others = (len(sets) + 1) // 2  # of n hints there are 2^n - 1 sets; of those without one of them, 2^(n-1) with {}
    rows = [
        (row["digit"], row["hint"], row["shapley"], row["smallest_set"], f"{row['harmed'] * others:.0f} of {others}")
        for row in facts["hint_roles"]
    ]
    note = (
        "contribution: Shapley value of the share of orders with label 2. smallest set: hints in the smallest set that "
        "is enough and needs this one. lowers: sets of other hints of which it lowers that share."
    )
    heads = ("digit", "hint", "contribution", "smallest set", "lowers")
    return ["\n".join(lines), Table("Hints", heads, rows, (1,), note)]
