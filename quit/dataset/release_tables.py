"""From a frozen release to what an export is made from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from quit.dataset.dataset import ExportTables
from quit.dataset.release import Release, open_release, verify
from quit.settings.card import Card


def export_tables_of_release(path: str | Path) -> ExportTables:
    """Return the tables of a release, after verifying it (a changed file must not be published).

    Large tables come with their string columns dictionary-encoded. Raises ``InputError`` as ``verify`` does.
    """
    release = verify(path)
    tables = ExportTables.read(release.files, release.readers, provenance_of_release(release))
    return replace(tables, statistics=release.facts["statistics"] or None)


def card_of_release(path: str | Path) -> Card:
    """Return what the publisher said of a release when it was made: its profile's block ``[card]``.

    Raises ``InputError`` as ``open_release`` does.
    """
    card = open_release(path).facts.get("card") or {}
    return Card(**{name: value for name, value in card.items() if name in Card.model_fields})


def provenance_of_release(release: Release) -> dict[str, Any]:
    """Return what an export says of the release it was made from."""
    content = release.content
    reviews = content["reviews"]
    facts = {
        "release": release.name,
        "content_id": release.content_id,
        **{name: content[name] for name in ("settings", "fingerprints", "sources", "program_version")},
    }
    if release.imported:
        facts["imported"] = dict(release.imported)
    if reviews["reviews"]:
        facts["reviews"] = (
            f"{reviews['reviews']:,} annotations by {len(reviews['annotators'])} people settled "
            f"{reviews['settled']:,} verdicts and flags ({reviews['open']:,} stay open)."
        )
        if verified := release.facts.get("verification"):
            facts["verification"] = verified
    if replies := release.facts.get("replies"):
        facts["replies"] = replies
    if waived := [gate for gate in release.facts["gates"] if gate["state"] == "waived"]:
        facts["waivers"] = waived
    return facts
