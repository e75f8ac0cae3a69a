"""What people said, for the report: progress, their agreement with one another, and the judge's with them. No one is
named."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

import pyarrow as pa

from quit.dataset.release import Release
from quit.engine.questions import counting_reviews
from quit.engine.workspace import Workspace
from quit.release.view import reader_families
from quit.report.facts import Judges, PageAgreement
from quit.review.status import ReviewFigures, ReviewStatus
from quit.settings import Review, Settings
from quit.stages.labelling.verdicts import decide, rows_of_pages
from quit.status.judges import PEOPLE, judge_agreements


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


def judge_figures(opened: Workspace | Release, settings: Settings) -> Judges:
    """Return how far judges agree with people and with one another, and the labels' judge with people by page."""
    live = counting_reviews(opened)
    agreements = judge_agreements(opened, reader_families(opened, settings), decide(live, settings.review))
    return {"agreements": [*map(asdict, agreements)], "pages": _on_pages(opened, settings.review, live)}


def _on_pages(opened: Workspace | Release, settings: Review, live: pa.Table) -> list[PageAgreement]:
    pages: list[PageAgreement] = []
    for blind in (True, False):
        agreements = judge_agreements(opened, decisions=decide(rows_of_pages(live, blind), settings))
        if agreements and agreements[0].first == PEOPLE:
            pages.append({"blind": blind, "agreement": asdict(agreements[0])})
    return pages
