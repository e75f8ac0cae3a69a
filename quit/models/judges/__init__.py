"""Judges: is a generated answer correct? Exact matches and NO ANSWER never reach a model."""

from quit.models.judges.base import EquivalenceJudge, Ruling, rule
from quit.models.judges.gpt_eval import GptEvalJudge

__all__ = ["EquivalenceJudge", "GptEvalJudge", "Ruling", "rule"]
