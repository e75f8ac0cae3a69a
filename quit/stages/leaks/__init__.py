"""Answer leakage: ``find`` is the way in, over rules, word lists, the equivalence model and people's overrides."""

RULES_IDENTITY = "lexical-rules/9"
"""Rises whenever the rules would find something else."""
WORDS_IDENTITY = "hint-words/1"
