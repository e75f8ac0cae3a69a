"""Metrics, agreement and significance: one of each, used everywhere."""
