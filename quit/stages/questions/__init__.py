"""What ``rank`` and ``describe`` find out about a question: its type, difficulty and candidate answers."""
