"""Why passages of a question have label 2, from its labels alone: for ``quit show --why``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from quit.errors import InputError
from quit.render.table import Table, percent
from quit.stages.roles import roles_of
from quit.text.words import counted


def why(story: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a question's labels (``story``: :func:`quit.status.story.story`) say of its hints, as JSON-like
    values; sets are written as the digits of their hints.

    Raises ``InputError`` for a question without labels.
    """
    passages, hints = story["passages"], [hint for hint in story["hints"] if hint["selected"]]
    if not passages or passages[0]["label"] is None:
        raise InputError(f"The question {story['question_id']!r} has no labels. See: quit show {story['question_id']}")
    right = np.array([[passage["label"] == 2 for passage in passages]])  # the order by permutation is depth first
    known = story["roles"] or {}  # of a release of an earlier program: not known
    without, n = known.get("without_hints"), len(hints)
    roles = roles_of(right, np.array([np.nan if without is None else without]), n)
    minimal = np.flatnonzero(roles.minimal[0])
    subsets = ["".join(str(hint) for hint in range(n) if number >> hint & 1) for number in range(1 << n)]
    counts = zip(subsets[1:], roles.counts[0, 1:].tolist(), strict=True)
    by_labeler = [passage["correct_labelers"] for passage in passages]
    return {
        "question_id": story["question_id"],
        "passages": len(passages),
        "label_2": int(right.sum()),
        "labelers": {name: sum(name in names for names in by_labeler) for name in story["labelers"]},
        "one_labeler": sum(len(names) == 1 for names in by_labeler),
        "without_hints": without,
        "predicted": known.get("predicted", 0),
        "minimal_sets": sorted((subsets[at] for at in minimal), key=lambda digits: (len(digits), digits)),
        "fewest_in_some_order": int(roles.some[0]) if roles.some[0] <= n else None,
        "sets": [{"subset": name, "orders": math.factorial(len(name)), "label_2": count} for name, count in counts],
        "hints": [
            {"digit": digit, "hint_id": hint["hint_id"], "hint": hint["hint"],
             "shapley": float(roles.shapley[0, digit]),
             "smallest_set": int(roles.smallest[0, digit]) if roles.smallest[0, digit] <= n else None,
             "harmed_sets": round(float(roles.harmed[0, digit]) * (1 << n - 1))}
            for digit, hint in enumerate(hints)
        ],
    }  # fmt: skip


def why_pieces(facts: Mapping[str, Any]) -> list[Table | str]:
    """Return what :func:`why` says in sentences and a table."""
    hints, sets, minimal = facts["hints"], facts["sets"], facts["minimal_sets"]
    right = ", ".join(f"{name} on {count:,}" for name, count in facts["labelers"].items())
    lines = [f"{facts['label_2']:,} of {counted(facts['passages'], 'passage')} have label 2."]
    if right and facts["label_2"]:
        lines.append(f"Labelers are right: {right}; one alone on {facts['one_labeler']:,}.")
    if minimal:
        verb = "suffice" if len(minimal) > 1 or len(minimal[0]) > 1 else "suffices"
        named = ", ".join(f"hint{'s' * (len(digits) > 1)} {'+'.join(digits)}" for digits in minimal)
        spare = ", ".join(str(hint["digit"]) for hint in hints if hint["smallest_set"] is None)
        needed = f"; no minimal set needs {spare}" if spare else ""
        lines.append(f"{named.capitalize()} {verb} in every order{needed}.")
    else:
        least = facts["fewest_in_some_order"]
        some = f"; in some order {counted(least, 'hint')} can" if least else ""
        lines.append(f"No set of hints suffices in every order{some}.")
    several = [one for one in sets if one["orders"] > 1]
    mixed = [one for one in several if 0 < one["label_2"] < one["orders"]]
    lines.append(f"Order matters for {len(mixed)} of {counted(len(several), 'set')} of two hints or more")
    if mixed:
        lines[-1] += (
            f", such as {'+'.join(mixed[0]['subset'])} (label 2 in {mixed[0]['label_2']} of {mixed[0]['orders']})"
        )
    lines[-1] += "."
    others = 1 << len(hints) - 1
    worst = max(hints, key=lambda hint: hint["harmed_sets"])
    if harmed := worst["harmed_sets"]:
        lines.append(f"Hint {worst['digit']} lowers success most often: with {harmed} of {others} sets of other hints.")
    without = facts["without_hints"]
    share = "not known, counted as never" if without is None else f"in {percent(without)} of the repetitions"
    lines.append(f"Without hints a labeler is right: {share}.")
    if facts["predicted"]:
        lines.append(
            f"{counted(facts['predicted'], 'label')} of these passages are predicted: all of this rests on them."
        )
    rows = [
        (hint["digit"], hint["hint"], f"{hint['shapley']:+.3f}", hint["smallest_set"],
         f"{hint['harmed_sets']} of {others}")
        for hint in hints
    ]  # fmt: skip
    note = (
        "contribution: Shapley value; they sum to success (the share of orders with label 2) with all hints, less "
        "success without. smallest set: hints of the smallest minimal set with this one. harms: sets of other hints "
        "whose success it lowers."
    )
    return [
        "\n".join(lines),
        Table("Hints", ("digit", "hint", "contribution", "smallest set", "harms"), rows, (1,), note),
    ]
