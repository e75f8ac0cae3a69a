"""Logs without secrets, and log lines for machines: one JSON object a line, with what a run says of its shards."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

from quit.common.secrets import without_secrets
from quit.common.visible import visible

FIELDS = (
    *("flow", "workspace", "stage", "shard", "shards", "first_question", "end_question", "endpoint"),
    *("rows", "seconds", "outcome"),
)
"""Fields that a record may carry (``extra``) beside time, level, logger, message and the names of its runs."""
_RUNS = ("flow_name", "flow_run_name", "flow_run_id", "task_run_name")


def without_secrets_in_logs() -> None:
    """Take secrets out of every log record of this process as it is made, whoever makes it and wherever it goes."""
    make = logging.getLogRecordFactory()
    if hasattr(make, "without_secrets"):
        return

    def record_of(*arguments: Any, **more: Any) -> logging.LogRecord:
        record = make(*arguments, **more)
        try:
            message = record.getMessage()
        except Exception:  # the handler says what is wrong with it
            return record
        if (clean := visible(without_secrets(message))) != message:
            record.msg, record.args = clean, ()
        if record.exc_info and record.exc_info[0] is not None:
            trace = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            if (clean := visible(without_secrets(trace))) != trace:
                record.exc_info, record.exc_text = None, clean
        return record

    record_of.without_secrets = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(record_of)


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
        if record.exc_text:
            line["traceback"] = record.exc_text
        elif record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(line, ensure_ascii=False, default=str))
