"""Prefect flows: when and where things run. No domain logic."""

from quit.common.logs import without_secrets_in_logs
from quit.common.telemetry import without_telemetry

without_telemetry()  # before Prefect is imported, or its server would report usage
without_secrets_in_logs()  # Prefect stores them
