"""Names as QUIT's published files have them, which the authors' scripts take apart at underscores.

A question's id has three parts, a subset has one bit per hint (``10100``), and a passage's id is both and its
permutation: ``{part}_{part}_{part}_{subset}_{permutation}``.
"""

from __future__ import annotations

from collections.abc import Iterable

from quit.common.ids import HINT_CHARACTERS
from quit.errors import SettingsError
from quit.sources.fields import quote


def paper_id(question_id: str) -> str:
    """Return an id in three parts: further underscores become dashes, missing parts are ``0``.

    >>> paper_id("train_7"), paper_id("a_b_c_d")
    ('train_7_0', 'a_b_c-d')
    """
    first, second, third = [*question_id.split("_", 2), "0", "0"][:3]
    return "_".join((first, second, third.replace("_", "-")))


def paper_ids(question_ids: Iterable[str]) -> list[str]:
    """Return ids in three parts. Raises ``SettingsError`` where two questions would have the same."""
    owners: dict[str, str] = {}
    for question_id in question_ids:
        if (owner := owners.setdefault(paper_id(question_id), question_id)) != question_id:
            raise SettingsError(
                f"The questions {quote(owner)} and {quote(question_id)} would both be {quote(paper_id(owner))} in the "
                "paper's files, whose ids have three parts: export without --paper-keys (paper_keys=False)."
            )
    return list(owners)


def subset_mask(subset: str, hints: int) -> str:
    """Return a subset of a question's hints as one bit per hint.

    >>> subset_mask("02", 5)
    '10100'
    >>> subset_mask("0a", 11)
    '10000000001'
    """
    return "".join("1" if hint in subset else "0" for hint in HINT_CHARACTERS[:hints])
