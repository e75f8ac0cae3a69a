"""Logs without secrets, and without tracebacks of users' mistakes."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from quit.errors import QuitError
from quit.text.invisible import visible
from quit.text.secrets import without_secrets


def without_secrets_in_logs() -> None:
    """Take secrets out of every log record of this process as it is made, whoever makes it and wherever it goes; and
    the traceback of an error whose message says what to do."""
    make = logging.getLogRecordFactory()
    if hasattr(make, "without_secrets"):
        return

    def record_of(*arguments: Any, **more: Any) -> logging.LogRecord:
        record = make(*arguments, **more)
        try:
            message = record.getMessage()
        except Exception:  # a format that does not fit its values
            message = record.msg = f"{record.msg} {record.args!r}"
            record.args = ()
        if (clean := visible(without_secrets(message))) != message:
            record.msg, record.args = clean, ()
        if record.exc_info and isinstance(record.exc_info[1], QuitError):
            record.exc_info = None
        elif record.exc_info and record.exc_info[0] is not None:
            trace = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            if (clean := visible(without_secrets(trace))) != trace:
                record.exc_info, record.exc_text = None, clean
        return record

    record_of.without_secrets = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(record_of)
