"""A frozen release: its files, its description (``release.json``), and whether they still are what was frozen.

::

    releases/v1/release.json                    written last: what lacks it is not a release
    releases/v1/tables/labels.parquet
    releases/v1/tables/answers/minilm-late.parquet
    releases/v1/tables/distinct_answers/minilm-late.parquet

``content_id`` is a hash of the tables' checksums and of everything the release says of its origin: the same content has
the same id whatever its name. ``checksum`` covers the rest of ``release.json`` too (name, gates, statistics).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from quit.common.ids import content_hash
from quit.common.parquet import Owner, opened
from quit.common.ranges import WHOLE, Range
from quit.dataset.description import Content, Description, Provenance, TableEntry
from quit.dataset.files import TABLES, TableFiles
from quit.engine.location import MARKER
from quit.engine.parts import fault_of
from quit.engine.reading import OF_RELEASE, TableReader
from quit.engine.workspace import Workspace
from quit.errors import InputError, refuse_newer
from quit.settings.card import Card
from quit.text.words import counted

DESCRIPTION = "release.json"
LAYOUT = 1
"""Version of a release's layout."""
FOLDER = "releases"


@dataclass(frozen=True, slots=True)
class ReaderInfo:
    """One reader: ``role`` is ``labeler`` (its answers decide labels) or ``reader``; ``kind`` such as ``embedded``."""

    name: str
    role: str
    identity: str
    kind: str


def fingerprint_of(provenance: Provenance, readers: Sequence[ReaderInfo]) -> str:
    """Return the fingerprint of an export's origin: inputs, settings and models, without the time.

    What the card says of annotators (``verification``) and of servers (``replies``) does not count: it rests on files
    outside the workspace.
    """
    content = {key: value for key, value in provenance.items() if key not in ("verification", "replies")}
    return content_hash("release", content, [info.identity for info in readers])


@dataclass(frozen=True)
class Release(TableReader):
    """A release on disk. ``facts``: ``release.json`` as it stands."""

    path: Path
    facts: Description

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """The name it was given."""
        return self.facts["name"]

    @property
    def owner(self) -> Owner:
        """As :attr:`TableReader.owner`."""
        return OF_RELEASE

    @property
    def state(self) -> dict[str, str]:
        """A run of ``read`` for each reader, in profile order: what the order of answers follows."""
        return {f"read:{info.name}": self.content_id for info in self.readers}

    def part_files(
        self, name: str, shard: Range = WHOLE, runs: Sequence[str] | None = None, current: object = None
    ) -> list[Path]:
        """Return the files of a table, of answers those of all readers or of the readers of some runs."""
        files: list[Path] = []
        for table, paths in self.files.parts.items():
            base, _, reader = table.partition("/")
            if base == name and (not reader or runs is None or f"read:{reader}" in runs):
                files += paths
        for path in files:  # DuckDB would name no remedy
            with opened(path, owner=self.owner):
                pass
        return files

    def schema(self, name: str) -> pa.Schema:
        """As :meth:`TableReader.schema`: of an imported release most columns may be null."""
        return self.files.schema(name)

    @property
    def judges(self) -> Path:
        """As :attr:`TableReader.judges`."""
        path = self.path.resolve()
        return path.with_name(f"{path.name}.judges")

    @property
    def judged(self) -> str:
        """As :attr:`TableReader.judged`."""
        return self.content_id

    @property
    def content_id(self) -> str:
        """The hash of what it holds."""
        return self.facts["content_id"]

    @property
    def content(self) -> Content:
        """What ``content_id`` is made of."""
        return self.facts["content"]

    @property
    def imported(self) -> Mapping[str, Any] | None:
        """What is known of the published files that it was imported from (``quit release import``), else None."""
        return self.content.get("imported")

    @cached_property
    def files(self) -> TableFiles:
        """The tables."""
        files = {name: [self.path / entry["file"]] for name, entry in self.content["tables"].items()}
        return TableFiles(files, imported=bool(self.imported), owner=self.owner)

    @property
    def readers(self) -> tuple[ReaderInfo, ...]:
        """The readers in profile order."""
        return tuple(ReaderInfo(**row) for row in self.content["readers"])

    @property
    def card(self) -> Card:
        """What the publisher said when it was made: the block ``[card]`` of its profile."""
        card = self.facts.get("card") or {}
        return Card(**{name: value for name, value in card.items() if name in Card.model_fields})

    @property
    def provenance(self) -> Provenance:
        """What an export says of the release it was made from."""
        content, facts = self.content, self.facts
        reviews = content["reviews"]
        provenance: Provenance = {
            "release": self.name,
            "content_id": self.content_id,
            "settings": content["settings"],
            "fingerprints": content["fingerprints"],
            "sources": content["sources"],
            "program_version": content["program_version"],
        }
        if self.imported:
            provenance["imported"] = dict(self.imported)
        if reviews["reviews"]:
            people = counted(len(reviews["annotators"]), "person", "people")
            provenance["reviews"] = (
                f"{reviews['reviews']:,} annotations by {people} settled "
                f"{reviews['settled']:,} verdicts and flags ({reviews['open']:,} stay open)."
            )
            if verified := facts.get("verification"):
                provenance["verification"] = verified
        if replies := facts.get("replies"):
            provenance["replies"] = replies
        if waived := [gate for gate in facts["gates"] if gate["state"] == "waived"]:
            provenance["waivers"] = waived
        return provenance


def content_id_of(content: Mapping[str, Any]) -> str:
    """Return the id of a release's content: 32 hexadecimal digits."""
    return content_hash("release", LAYOUT, dict(content))


def checksum_of(facts: Mapping[str, Any]) -> str:
    """Return the hash of everything in ``release.json`` except this hash."""
    return content_hash({key: value for key, value in facts.items() if key != "checksum"})


def is_release(path: str | Path) -> bool:
    """Whether a folder says that it is a release."""
    return (Path(path) / DESCRIPTION).is_file()


def open_release(path: str | Path) -> Release:
    """Open a release without reading its tables (:func:`verify` compares these).

    Raises ``InputError`` when it is not a release, its description is damaged, or it was made by a newer program.
    """
    release = _described(Path(path))
    if checksum_of(release.facts) != release.facts["checksum"]:
        raise InputError(f"{release.path / DESCRIPTION} was changed (its checksum differs). {OF_RELEASE.advice}")
    return release


def _described(path: Path) -> Release:
    if not is_release(path):
        fault = f"There is no release at {path}."
        if (path / MARKER).is_file():
            fault += " It is a workspace: name one of its releases, or the workspace with -w."
        raise InputError(f"{fault} List them: quit release list; make one: quit release create --name v1")
    try:
        facts = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        layout = int(facts["layout"])
        _ = facts["name"], facts["content_id"], facts["checksum"], facts["gates"]
        files = {name: entry["file"] for name, entry in facts["content"]["tables"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path / DESCRIPTION} cannot be read: {error!r}. {OF_RELEASE.advice}") from error
    refuse_newer(f"The release {path}", layout, LAYOUT)
    for name, file in files.items():
        if file != f"tables/{name}.parquet" or ".." in PurePosixPath(file).parts:
            raise InputError(f"{path / DESCRIPTION}: the table {name!r} is in {file!r}, not in tables/{name}.parquet.")
    return Release(path, facts)


def verify(path: str | Path) -> Release:
    """Return the release after comparing every file, its description and its tables' schemas with what was frozen.

    Raises ``InputError`` that names every file that is missing, was changed, was added, or does not fit its schema.
    """
    release = _described(Path(path))
    faults = []
    if checksum_of(release.facts) != release.facts["checksum"]:
        faults.append(f"{DESCRIPTION}: was changed (its checksum differs)")
    if content_id_of(release.content) != release.content_id:
        faults.append(f"{DESCRIPTION}: its content id is not that of its content")
    entries = release.content["tables"]
    for name, entry in entries.items():
        if fault := _fault(release.files, name, entry):
            faults.append(f"{entry['file']}: {fault}")
    faults += [f"tables/{name}.parquet: is not listed" for name in TABLES if name not in entries]
    listed_files = {PurePosixPath(DESCRIPTION), *(PurePosixPath(entry["file"]) for entry in entries.values())}
    folders = {folder for file in listed_files for folder in file.parents}
    # Through links.
    own_files = {folder / file.name for folder in folders for file in (release.path / folder).glob("*")}
    faults += [f"{file}: is not part of the release" for file in sorted(own_files - listed_files - folders)]
    if faults:
        raise InputError(f"The release {path} is not what was frozen. " + "; ".join(faults) + ".")
    return release


def _fault(files: TableFiles, name: str, entry: TableEntry) -> str | None:
    (path,) = files.parts[name]
    try:
        if fault := fault_of(path, entry):
            return fault
        metadata = files.metadata(path)
        have = metadata.schema.to_arrow_schema()
        if not have.equals(files.schema(name)):
            return "does not have the columns of its table"
        return None if metadata.num_rows == entry["rows"] else "has another number of rows than listed"
    except KeyError:
        return "is not a table of a release"
    except InputError as error:
        return str(error)


def releases_of(workspace: Workspace) -> list[Release]:
    """Return the releases in a workspace's own folder, by name with numbers as numbers (v9, v10). Folders that are no
    releases are left out."""
    paths = sorted((workspace.path / FOLDER).glob("[!.]*"), key=_natural)
    return [open_release(path) for path in paths if is_release(path)]


def _natural(path: Path) -> list[str | int]:
    return [int(word) if place % 2 else word for place, word in enumerate(re.split(r"(\d+)", path.name))]


def newest_release(workspace: Workspace) -> Release | None:
    """Return the release of a workspace's current tables, else the last one by name (v10 after v9), or None. A file's
    time says nothing: a copied workspace has others."""
    releases, state = releases_of(workspace), workspace.state
    of_tables = [release for release in releases if release.content.get("fingerprints") == state]
    return next(reversed(of_tables or releases), None)


def list_rows(releases: Sequence[Release]) -> list[dict[str, Any]]:
    """Return one row per release: name, content id, questions by split, passages, reviews, annotators, gates."""
    return [
        {
            "name": release.name,
            "content_id": release.content_id,
            "questions": release.facts["counts"]["questions"],
            "passages": release.facts["counts"]["passages"],
            "reviews": release.content["reviews"]["reviews"],
            "annotators": len(release.content["reviews"]["annotators"]),
            "gates": [{name: gate[name] for name in ("gate", "state", "waiver")} for gate in release.facts["gates"]],
            "waived": [gate["gate"] for gate in release.facts["gates"] if gate["state"] == "waived"],
        }
        for release in releases
    ]
