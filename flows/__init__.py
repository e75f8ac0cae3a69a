"""Prefect flows: when and where things run. No domain logic."""

from quit.environment import without_telemetry

without_telemetry()  # before Prefect is imported, or its server would report usage
