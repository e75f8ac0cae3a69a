"""Normalisation and metrics: one of each, used everywhere."""
