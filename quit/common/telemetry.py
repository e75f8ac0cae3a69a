"""What we start sends no telemetry."""

from __future__ import annotations

import os

SILENT = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "COLLECT_ANALYTICS": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
    "LATEST_VERSION_CHECK": "false",
}
"""Variables that switch off usage reports of Prefect, Hugging Face, Ray, vLLM and Label Studio."""


def without_telemetry() -> None:
    """Switch off usage reports in this process and what it starts. Must run before Prefect is imported."""
    os.environ.update(SILENT)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")  # a hub that cannot be reached is said once, by the error
    # A busy machine needs longer than Prefect's 20 s to start the server that a flow reports to.
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")
