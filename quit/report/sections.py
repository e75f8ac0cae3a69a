"""The report's sections in their order: which figures are said, which are drawn, and the table behind each plot."""

from __future__ import annotations

from quit.report import construction, labels, outcome
from quit.report.pieces import Facts, Section


def sections(facts: Facts, rows: int) -> list[Section]:
    """Return the sections that have anything to show; ``rows``: of a list at most."""
    pieces = (
        construction.imported(facts),
        construction.funnel(facts),
        construction.hints(facts),
        construction.questions(facts),
        labels.labels(facts),
        labels.readers(facts),
        outcome.verdicts(facts),
        outcome.review(facts, rows),
        outcome.models(facts),
        outcome.releases(facts),
        outcome.difference(facts, rows),
    )
    return [section for section in pieces if section is not None and (section.said or section.plots or section.tables)]
