"""Retrieval over a corpus: documents, indexes, first stages, scorers."""
