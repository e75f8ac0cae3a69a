"""What a release says of itself (``release.json``), and what exports say of the tables that they are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from quit.common.manifests import FileState

if TYPE_CHECKING:
    from quit.review.people import Verification
    from quit.stages.labelling.verdicts import Coverage

SettingsBySection = dict[str, Any]
"""Section of the settings -> their values; ``readers``: a list of such."""


class Source(TypedDict, total=False):
    """A source of the questions: ``name`` of its kind, ``checksum`` of its file (SHA-256)."""

    name: str
    file: str
    checksum: str
    licence: str | None
    citation: str | None
    url: str


class FrozenGate(TypedDict):
    """What a gate said (:class:`quit.release.gates.GateResult`)."""

    gate: str
    why: str
    state: str
    violations: int
    examples: list[str]
    waiver: str | None


class Origin(TypedDict, total=False):
    """What a dataset was made from and with; ``imported``: what is known of the files of an imported release."""

    settings: SettingsBySection
    fingerprints: Mapping[str, str]
    sources: list[Source]
    program_version: str
    imported: Mapping[str, Any]


class Provenance(Origin, total=False):
    """What an export says of the tables that it is made from.

    ``release``: its name; ``reviews``: how people checked it, in words; ``replies``: of language models
    (:func:`quit.engine.usage.origins`); ``waivers``: of its gates.
    """

    release: str
    content_id: str
    reviews: str
    replies: Mapping[str, Mapping[str, int]]
    verification: Verification
    waivers: list[FrozenGate]


class TableEntry(FileState):
    """A table's file in a release."""

    file: str
    rows: int


class RestingReviews(TypedDict):
    """The reviews that the labels rest on. ``annotators``: a hash of each; ``settled``, ``open``: verdicts and flags;
    ``set_aside``: annotations of questions that changed."""

    reviews: int
    reviews_hash: str | None
    decisions_hash: str | None
    annotators: list[str]
    settled: int
    open: int
    set_aside: NotRequired[int]
    coverage: Coverage


class Content(Origin):
    """What the content id is made of. ``models``: stage run -> their identities; ``prompts``: use -> name, hash and
    text."""

    tables: dict[str, TableEntry]
    readers: list[dict[str, str]]
    models: dict[str, list[str]]
    prompts: dict[str, dict[str, str]]
    reviews: RestingReviews


class Counts(TypedDict):
    """Questions by split and of ``all``, and passages."""

    questions: dict[str, int]
    passages: int


class Description(TypedDict):
    """``release.json``. ``answer_keys``: version of the rule that made the keys of answers; ``statistics``:
    :meth:`quit.dataset.statistics.Statistics.to_dict`; ``checksum``: of everything else."""

    made_by: str
    layout: int
    answer_keys: NotRequired[int]
    name: str
    content_id: str
    content: Content
    counts: Counts
    statistics: dict[str, Any]
    gates: list[FrozenGate]
    card: NotRequired[Mapping[str, Any]]
    verification: NotRequired[Verification]
    replies: NotRequired[Mapping[str, Mapping[str, int]]]
    checksum: str


def section_of(provenance: Provenance, name: str) -> Mapping[str, Any]:
    """Return the values of a section of the settings; nothing where they are not known."""
    return provenance.get("settings", {}).get(name, {})
