"""What a venue requires of a dataset's metadata, and which of it an export has."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypedDict

from quit.dataset.description import Provenance
from quit.errors import check_known
from quit.export.croissant import origin_metadata
from quit.export.licences import licence_urls
from quit.settings.card import Card
from quit.settings.section import explained

VENUES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""Venue -> what it asks for (``neurips``: a field of ``croissant.json``) -> setting of ``[card]`` that a person writes,
or in words where it is from."""


class Requirement(TypedDict):
    """A field that a venue requires. ``there``: whether the export has it; ``source``: where it is from, or where a
    person has to write what."""

    field: str
    there: bool
    source: str


def venue_metadata(venue: str, provenance: Provenance, card: Card, *, blind: bool = False) -> list[Requirement]:
    """Return what a venue requires; ``blind``: of a submission that names no author.

    Raises ``SettingsError`` for an unknown venue.
    """
    check_known(venue, VENUES, "venue")
    metadata = origin_metadata(provenance, card)
    values = {name: metadata.get(name) for name in ("url", "version", "prov:wasDerivedFrom")}
    values["license"] = values["B2 licence"] = licence_urls(provenance, card)
    values["D5 annotators"] = provenance.get("verification", {}).get("people")
    required: list[Requirement] = []
    for field, source in VENUES[venue].items():
        there = bool(values.get(field, getattr(card, source, True)))
        if blind and source == "authors":
            there, source = not (card.authors or card.contact), "no card.authors and card.contact: it is blind"
        elif setting := explained(Card).model_fields.get(source):
            what = str(setting.description).partition(". ")[0].removesuffix(".")
            source = f"card.{source}" if there else f"[card] {source}: {what}"
        required.append({"field": field, "there": there, "source": source})
    return required
