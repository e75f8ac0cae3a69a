"""The people behind a review: what they say of themselves, and what a dataset card says of them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TypedDict

import pyarrow as pa

from quit.common.rows import Row
from quit.errors import InputError
from quit.review.audit import AuditFigures
from quit.review.controls import controls_of
from quit.review.figures import FlagRow, KindRow, flags, kinds
from quit.settings import Review
from quit.sources.lines import keyed_lines
from quit.stages.labelling.verdicts import annotations_of, decide
from quit.text.words import first_names

_LOG = logging.getLogger(__name__)
_PERSON = '{"annotator": "...", "gender": "...", "age": "...", "education": "..."}'


class Person(TypedDict):
    """What an annotator says of himself (None: nothing)."""

    gender: str | None
    age: str | None
    education: str | None


class Evaluator(Person):
    """A row of the paper's table 9; ``evaluator``: a number."""

    evaluator: int


class Verification(AuditFigures):
    """What a dataset card says of a review, without names; ``kinds``: :func:`kinds`; ``flags``: :func:`flags`."""

    annotators: int
    annotations: int
    questions: int
    kinds: list[KindRow]
    flags: list[FlagRow]
    people: list[Evaluator]


def verification(live: pa.Table, settings: Review) -> Verification:
    """Return the facts about the people behind these reviews (the rows that count), without the audit.

    The order of ``people`` (``review.people``) follows from what they say, not from names. A file of people or of
    control questions that is no longer there is left out, and the log says so. Raises :class:`InputError` for a bad
    one.
    """
    settings = without_absent(settings, "people", "controls")
    headers = annotations_of(live)
    annotators = set(headers.column("annotator").to_pylist())
    data = load_people(settings.people) if settings.people else {}
    there = {name.lower() for name in annotators} & data.keys()
    people = sorted((data[name] for name in there), key=lambda row: [*map(str, row.values())])
    return {
        "annotators": len(annotators),
        "annotations": len(headers),
        "questions": len(headers.column("question_id").unique()),
        "kinds": kinds(live, controls_of(settings)),
        "flags": flags(live, decide(live, settings)),
        "people": [{"evaluator": number, **person} for number, person in enumerate(people, start=1)],
    }


def without_absent(settings: Review, *keys: str) -> Review:
    """Return the settings without those of these files that are no longer there; the log names them."""
    absent = [key for key in keys if (path := getattr(settings, key)) and not Path(path).exists()]
    if absent:
        files = " and ".join(f"review.{key} ({getattr(settings, key)})" for key in absent)
        _LOG.warning("%s: there is no such file, so its figures are left out.", files)
    return settings.model_copy(update=dict.fromkeys(absent))


def load_people(path: str | Path) -> dict[str, Person]:
    """Read a JSONL file of ``{annotator, gender, age, education}`` and return annotator (in lower case) -> the other
    three, as text.

    Raises :class:`InputError` that names the line for anything else.
    """

    def text(row: Row, name: str, where: str) -> str | None:
        value = row.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
            raise InputError(f"{where}: {name!r} must be a text or a whole number, found {str(value)[:40]!r}.")
        return None if value is None else str(value)

    return {
        row["annotator"].lower(): {
            "gender": text(row, "gender", where),
            "age": text(row, "age", where),
            "education": text(row, "education", where),
        }
        for where, row in keyed_lines(Path(path), _PERSON, ("annotator", *Person.__annotations__), str.lower)
    }


def absent_people(settings: Review, annotators: set[str]) -> list[str]:
    """Return in words whom settings name although no annotation is theirs; nothing before the first annotation."""
    names = {name.lower() for name in annotators}
    if not names:
        return []
    lines = []
    adjudicator = settings.adjudicator or ""
    if settings.adjudication == "adjudicator" and adjudicator.lower() not in names:
        lines.append(
            f"review.adjudicator is {adjudicator}, who has no annotation that counts: disagreements wait until there "
            "is one. Check the address."
        )
    absent = sorted(load_people(settings.people).keys() - names) if settings.people else []
    if absent:
        lines.append(
            f"review.people names {first_names(absent)}, and no annotation that counts is theirs: cards leave them "
            "out. Check the addresses."
        )
    return lines
