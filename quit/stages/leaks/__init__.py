"""Leak rules and the word lists they read."""
