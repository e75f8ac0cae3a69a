"""Retrieval complexity of questions (Gabburo et al. 2024): heads and runs."""
