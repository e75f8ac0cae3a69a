"""What people said, for the report: progress, their agreement with one another, and the judge's with them. No one is
named."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from quit.dataset.release import Release
from quit.engine.questions import counting_reviews
from quit.engine.workspace import Workspace
from quit.release.view import reader_families
from quit.review.report import ReviewStatus
from quit.settings import Settings
from quit.stages.labelling.verdicts import decide, rows_of_pages
from quit.status.judges import PEOPLE, judge_agreements


def review_progress(workspace: Workspace, status: ReviewStatus) -> dict[str, Any] | None:
    """Return what :func:`quit.review.report.review_status` says (``status``) without anybody's address, or None before
    the first review.

    Annotators are numbered by address.
    """
    if not status["reviews"]["rows"]:
        return None
    people = workspace.rows("SELECT DISTINCT annotator FROM reviews ORDER BY 1", ["reviews"])
    numbers = {name: f"annotator {number}" for number, (name,) in enumerate(people, start=1)}
    left_out = ("project", "unclear", "disagreements", "problems", "audit")
    return _with_numbers({name: value for name, value in status.items() if name not in left_out}, numbers)


def _with_numbers(value: Any, number: dict[str, str]) -> Any:
    """Return JSON-like values with numbers in place of names."""
    if isinstance(value, dict):
        return {key: _with_numbers(entry, number) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_numbers(entry, number) for entry in value]
    return number.get(value, value) if isinstance(value, str) else value


def judge_figures(opened: Workspace | Release, settings: Settings) -> dict[str, list[dict[str, Any]]]:
    """Return how far judges agree with people and with one another (:class:`JudgeAgreement`): ``agreements``;
    ``pages``: people and the labels' judge, on ``blind`` pages and on all others."""
    live = counting_reviews(opened)
    figures: dict[str, list[dict[str, Any]]] = {"agreements": [], "pages": []}
    for blind, rows in ((None, live), *((blind, rows_of_pages(live, blind)) for blind in (True, False))):
        families = reader_families(opened, settings) if blind is None else None
        agreements = judge_agreements(opened, families, decide(rows, settings.review))
        if blind is None:
            figures["agreements"] = [*map(asdict, agreements)]
        elif agreements and agreements[0].first == PEOPLE:
            figures["pages"].append({"blind": blind, "agreement": asdict(agreements[0])})
    return figures
