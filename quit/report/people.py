"""What people did, for the report: progress and their agreement with one another. No one is named."""

from __future__ import annotations

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
    agreement = status["agreement"]
    return {
        "reviews": status["reviews"],
        "annotators": [{**row, "annotator": numbers[row["annotator"]]} for row in status["annotators"]],
        "kinds": status["kinds"],
        "flags": status["flags"],
        "agreement": {
            **agreement,
            "pairs": [
                {**row, "first": numbers[row["first"]], "second": numbers[row["second"]]} for row in agreement["pairs"]
            ],
            "annotators": [{**row, "annotator": numbers[row["annotator"]]} for row in agreement["annotators"]],
        },
        "controls": [{**row, "annotator": numbers[row["annotator"]]} for row in status["controls"]],
        "decided": status["decided"],
        "open": status["open"],
        "coverage": status["coverage"],
        "applied": status["applied"],
    }
