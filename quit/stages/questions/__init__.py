"""What ``rank`` and ``describe`` find out about a question: its type, difficulty and candidate answers."""

CANDIDATES_IDENTITY = "collection/2"
"""Rises whenever other candidates would be drawn."""
DIFFICULTY_IDENTITY = "retrieval-complexity/4"
"""Rises whenever the same corpus would give other values."""
