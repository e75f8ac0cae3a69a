"""What people did, for the report: progress and their agreement with one another. No one is named."""

from __future__ import annotations

from typing import Any, cast

from quit.engine.workspace import Workspace
from quit.review.status import ReviewFigures, ReviewStatus


def review_progress(workspace: Workspace, status: ReviewStatus) -> ReviewFigures | None:
    """Return the figures of ``status`` that the report shows, or None before the first review.

    Annotators are numbered by address, and addresses are left out.
    """
    if not status["reviews"]["rows"]:
        return None
    people = workspace.rows("SELECT DISTINCT annotator FROM reviews ORDER BY 1", ["reviews"])
    numbers = {name: f"annotator {number}" for number, (name,) in enumerate(people, start=1)}
    figures = {name: value for name, value in status.items() if name in ReviewFigures.__annotations__}
    return cast(ReviewFigures, _with_numbers(figures, numbers))


def _with_numbers(value: Any, number: dict[str, str]) -> Any:
    """Return JSON-like values with numbers in place of names."""
    if isinstance(value, dict):
        return {key: _with_numbers(entry, number) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_numbers(entry, number) for entry in value]
    return number.get(value, value) if isinstance(value, str) else value
