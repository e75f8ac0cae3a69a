"""Texts: normalising, words, plurals; secrets and control characters taken out."""
