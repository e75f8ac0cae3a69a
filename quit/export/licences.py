"""The licences of a dataset by the Hugging Face Hub's identifiers, with the addresses of their texts.

``licences.csv``: the hub's list (https://huggingface.co/docs/hub/repositories-licenses) with the identifiers of SPDX.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path
from typing import Any

from quit.dataset.description import Provenance
from quit.settings.card import Card

_LEFT_OUT = {"", "license", "licence", "the", "version", "international"}
"""Words that people add to a licence's name, or leave out."""


def hub_licence(licence: str) -> str:
    """Return the hub's identifier of a licence: ``CC BY 4.0`` -> ``cc-by-4.0``; ``other`` for one it does not know,
    ``unknown`` for none."""
    keys = {_key(text): row["hub"] for row in _licences().values() for text in (row["spdx"], row["name"], row["hub"])}
    return {**keys, "": "unknown", "cc0": "cc0-1.0"}.get(_key(licence), "other")


def licence_urls(provenance: Provenance, card: Card) -> list[str]:
    """Return the addresses of the licences' texts; none where one of them is not known."""
    if card.licence_link:
        return [card.licence_link]
    names = licence_header(provenance, card)["license"]
    rows = [_licences().get(name) for name in ([names] if isinstance(names, str) else names)]
    addresses = [f"https://spdx.org/licenses/{row['spdx']}.html" for row in rows if row and row["spdx"]]
    return addresses if len(addresses) == len(rows) else []


def licence_header(provenance: Provenance, card: Card) -> dict[str, Any]:
    """Return the card's fields on licences: that of the settings, else those of the sources in ``provenance``."""
    if not card.licence:
        licences = sorted({hub_licence(source.get("licence") or "") for source in provenance.get("sources", ())})
        return {"license": licences[0] if len(licences) == 1 else licences or "unknown"}
    licence = hub_licence(card.licence)
    if licence != "other":
        return {"license": licence}
    name = re.sub(r"[^a-z0-9.]+", "-", card.licence.casefold()).strip("-")
    link = {"license_link": card.licence_link} if card.licence_link else {}
    return {"license": licence, "license_name": name, **link}


@cache
def _licences() -> dict[str, dict[str, str]]:
    """Return the rows of ``licences.csv`` by the hub's identifier."""
    with Path(__file__).with_name("licences.csv").open(encoding="utf-8", newline="") as file:
        return {row["hub"]: row for row in csv.DictReader(file)}


def _key(text: str) -> str:
    """Return what is compared of a licence's name: ``Apache License, Version 2.0`` -> ``apache-2.0``."""
    words = re.split(r"[^a-z0-9.+]+", re.sub(r"\bv(?=\d)", "", text.casefold()))
    return "-".join(word for word in words if word not in _LEFT_OUT)
