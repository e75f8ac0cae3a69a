"""The report as one HTML page: no scripts, no network, every text from data escaped by the template engine."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from quit.common.files import replacing, writing
from quit.render.html import environment, template_text
from quit.report.facts import Facts
from quit.report.sections import sections


def render(facts: Facts, links: dict[str, str] | None = None) -> str:
    """Return the page; the same for the same ``facts`` (of :func:`quit.report.data.gather`).

    ``links``: addresses of ``home`` (the search) and ``question`` (before an id); None: no questions can be opened.
    Raises ``MissingDependency`` without matplotlib.
    """
    return (
        environment()
        .get_template("report.html")
        .render(
            facts=facts,
            sections=sections(facts),
            style=Markup(template_text("style.css")),
            links=links,
        )
        .lstrip()
    )


def write(html: str, target: Path) -> None:
    """Write the page whole or not at all. Raises ``WorkspaceError`` where the disk refuses."""
    with writing(target), replacing(target) as temporary:
        temporary.write_text(html, encoding="utf-8", newline="\n")
