"""What a venue requires of a dataset's metadata, and which of it an export has."""

from __future__ import annotations

from typing import TypedDict

from quit.dataset.description import Provenance
from quit.errors import check_known
from quit.export.croissant import origin_metadata
from quit.export.licences import licence_urls
from quit.settings.card import Card
from quit.settings.section import explained

_PROGRAM = "the program"
VENUES = {
    "neurips": {
        # Required by Croissant 1.1 (https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html)
        **{"name": "name", "description": "description", "license": "licence", "url": "repository"},
        **{"distribution": "repository", "creator": "authors", "datePublished": "published"},
        "version": "the name of a release, such as v1, 1.2 or 1.2.3",
        # Minimal responsible-AI fields (https://neurips.cc/Conferences/2026/EvaluationsDatasetsHosting)
        **{"rai:dataLimitations": _PROGRAM, "rai:dataBiases": "biases", "rai:dataUseCases": _PROGRAM},
        **{"rai:personalSensitiveInformation": "personal_information", "rai:dataSocialImpact": "social_impact"},
        **{"rai:hasSyntheticData": _PROGRAM, "prov:wasGeneratedBy": _PROGRAM},
        "prov:wasDerivedFrom": "the sources of the build",
    },
    # Responsible NLP Research checklist (https://aclrollingreview.org/responsibleNLPresearch/), of a dataset
    "arr": {
        **{"A2 risks": "social_impact", "B1 citations": _PROGRAM, "B2 licence": "licence", "B3 intended use": _PROGRAM},
        **{"B4 personal information": "personal_information", "B5 documentation": _PROGRAM, "B6 statistics": _PROGRAM},
        **{"D1 instructions": _PROGRAM, "D2 recruitment and pay": "annotator_pay", "D3 consent": "consent"},
        **{"D4 ethics review": "ethics", "D5 annotators": "review.people, before the release"},
    },
}
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
