"""From a frozen release to what an export is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from quit.dataset.dataset import ExportTables, ReaderInfo
from quit.dataset.files import TableFiles
from quit.dataset.release import Release, open_release, verify
from quit.settings.card import Card
from quit.stages.labelling.answers import cut_replies
from quit.stages.select import SELECTION

_SMALL = ("questions", "hints", "ranked_hints", "descriptions", "splits", "verdicts", "valid_answers")


def export_tables_of_release(path: str | Path) -> ExportTables:
    """Return the tables of a release, after verifying it (a changed file must not be published).

    Large tables come with their string columns dictionary-encoded. Raises ``InputError`` as ``verify`` does.
    """
    release = verify(path)
    tables = frozen_tables(release.files, release.readers, provenance_of_release(release))
    return replace(tables, statistics=release.facts["statistics"] or None)


def card_of_release(path: str | Path) -> Card:
    """Return what the publisher said of a release when it was made: its profile's block ``[card]``.

    Raises ``InputError`` as ``open_release`` does.
    """
    given = open_release(path).facts.get("card") or {}
    return Card(**{name: value for name, value in given.items() if name in Card.model_fields})


def frozen_tables(
    files: TableFiles, readers: Sequence[ReaderInfo], provenance: Mapping[str, Any] | None = None
) -> ExportTables:
    """Return the tables of ``files``; of the large ones only the columns that exports read."""
    keys = ["question_id", "permutation"]
    return ExportTables(
        **{name: files.read(name) for name in (*_SMALL, *SELECTION) if name in _SMALL or name in files.parts},
        passages=files.read("passages", keys, keys).unify_dictionaries(),
        labels=files.read("labels", [*keys, "label"], keys).unify_dictionaries(),
        answers={info.name: files.answers(info.name) for info in readers},
        readers=tuple(readers),
        provenance=dict(provenance or {}),
        embedded=any(info.kind == "embedded" for info in readers),
        cut={
            name: sum(map(cut_replies, files.batches(f"answers/{name}", ["ended"])))
            for name in (info.name for info in readers)
        },
    )


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
