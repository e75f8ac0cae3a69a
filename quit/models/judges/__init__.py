"""Judges: is a generated answer correct? Exact matches and NO ANSWER never reach a model."""

from quit.models.judges.base import Ruling, rule
from quit.models.judges.equivalence import EquivalenceJudge

__all__ = ["EquivalenceJudge", "Ruling", "rule"]
