"""Prefect flows: when and where things run. No domain logic."""

from quit.environment import without_telemetry
from quit.logs import without_secrets_in_logs

without_telemetry()  # before Prefect is imported, or its server would report usage
without_secrets_in_logs()  # Prefect stores them
