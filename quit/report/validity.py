"""The report's chapter "What the labels rest on": one function per part."""

from __future__ import annotations

from typing import Any

from quit.render.table import Table
from quit.review.audit import audit_pieces


def audit(facts: dict[str, Any]) -> list[Table | str]:
    """Return what people's verdicts on a random sample of passages say of all passages."""
    return audit_pieces(facts["audit"]) if facts["audit"] else []
