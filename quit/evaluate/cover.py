"""cover-EM (Rosset et al. 2021): is a gold answer contained in what was said?"""

from __future__ import annotations

from collections.abc import Sequence

from quit.evaluate.normalize import normalize_answer


def cover_em(prediction: str, answers: Sequence[str]) -> bool:
    """Return whether any gold answer occurs in the prediction, both normalised, on token boundaries.

    A gold answer that normalises to nothing covers nothing; no gold answers, no cover.
    """
    said = f" {normalize_answer(prediction)} "
    return any(gold and f" {gold} " in said for gold in map(normalize_answer, answers))
