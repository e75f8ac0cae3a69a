"""Log lines for machines: one JSON object a line, with what a run says of its shards."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from quit.secrets import without_secrets

FIELDS = (
    *("flow", "workspace", "stage", "shard", "shards", "first_question", "end_question", "endpoint"),
    *("rows", "seconds", "outcome"),
)
"""Fields that a record may carry (``extra``) beside time, level, logger, message and the names of its runs."""
_RUNS = ("flow_name", "flow_run_name", "flow_run_id", "task_run_name")


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON; values of secret environment variables are taken out."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in (*_RUNS, *FIELDS):
            value = record.__dict__.get(name)
            if value is not None:
                line[name] = value
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(line, ensure_ascii=False, default=str))
