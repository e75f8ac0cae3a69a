"""Answer leakage: ``find`` is the way in, over rules, word lists, the equivalence model and people's overrides."""
