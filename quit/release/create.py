"""Freeze a workspace's current tables as a release: whole or not at all, with the same bytes from the same
workspace."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit.common.files import file_checksum, sync, write_json, writing
from quit.common.folders import aside, locked, put_in_place
from quit.common.ids import content_hash
from quit.common.progress import advance, note
from quit.dataset.check import faults
from quit.dataset.files import TableFiles, write_table
from quit.dataset.release import (
    DESCRIPTION,
    FOLDER,
    LAYOUT,
    Release,
    checksum_of,
    content_id_of,
    is_release,
    open_release,
    verify,
)
from quit.dataset.statistics import statistics_of
from quit.dataset.workspace import provenance_of, readers_of, verification_of, workspace_tables
from quit.engine.pipeline import Pipeline
from quit.engine.questions import decision_counts
from quit.engine.usage import origins
from quit.errors import GateError, InputError, SettingsError, WorkspaceError, shell_word
from quit.evaluate.labels import SPLITS
from quit.export.files import MADE_BY
from quit.models.factory import judge_prompt, reader_prompts
from quit.models.prompting import PromptTemplate, load_prompt
from quit.models.protocols import Encoder
from quit.release.gates import GateResult, Subject, check, coverage, tell_paraphrases, with_release_settings
from quit.settings import ReaderSettings, Settings, parse
from quit.text import answers
from quit.text.words import counted

WRITERS = 2
"""Tables written at a time."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SIMILARITY_DIGITS = 3  # an estimate with a standard error of about 0.01; further digits depend on the machine


@dataclass(frozen=True)
class Created:
    """Result of ``create``. ``new``: false where the same release was already there; ``note``: how the existing release
    differs from the requested one, in a sentence, or empty."""

    release: Release
    new: bool
    note: str = ""


def subject_of(pipeline: Pipeline, settings: Settings | None = None) -> Subject:
    """Return a finished build as what gates check, and say how many annotations are set aside. ``settings``: others
    than the build's, only for the gates.

    Raises :class:`WorkspaceError` when a stage is not finished.
    """
    tables = workspace_tables(pipeline)
    if count := _set_aside(pipeline):
        what = counted(count, "annotation is", "annotations are")
        note(f"{what} set aside: the question had another text or other gold answers. See: quit review status", True)
    return Subject(tables, readers_of(pipeline), settings or pipeline.settings)


def create(
    pipeline: Pipeline,
    name: str,
    out: Path | None = None,
    *,
    waivers: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    encoder: Encoder | None = None,
    newest: Release | None = None,
) -> Created:
    """Freeze the current tables as the release ``name`` in the workspace, or as the folder ``out``. The caller holds
    the workspace.

    ``settings``: for the gates, if not the build's. ``encoder``: measures the semantic similarity. ``newest``: returned
    where it has the same content. Raises ``GateError`` when a gate is neither passed nor waived; ``SettingsError`` for
    a name that cannot be one; ``InputError`` when the target is anything but the same release; :class:`WorkspaceError`
    when a stage is not finished, a part of the workspace is damaged, or the disk refuses. Nothing is left then.
    """
    workspace = pipeline.workspace
    target = Path(out) if out is not None else workspace.path / FOLDER / name
    check_target(target, name)
    subject = subject_of(pipeline, settings)
    if damaged := workspace.damaged():
        raise WorkspaceError(f"{damaged[0]} was altered or is gone. Build again: quit build -w {shell_word(workspace)}")
    results = check(subject, waivers)
    if encoder is not None:
        tell_paraphrases(subject, encoder)
    refuse_failed(results)
    return put(target, lambda folder: _write(folder, subject, pipeline, name, results, encoder), newest)


def put(target: Path, make: Callable[[Path], Mapping[str, Any]], newest: Release | None = None) -> Created:
    """Make a release in a hidden folder and move it into place, or find that it, or ``newest``, is there already.

    ``make`` writes the tables below the folder it is given and returns ``release.json``. Raises as :func:`create` does.
    """
    with writing(target), aside(target) as folder:
        facts = make(folder)
        if newest is not None and newest.content_id == facts["content_id"]:
            return Created(newest, False, _kept(newest, facts))
        write_json(folder / DESCRIPTION, facts)
        for path in sorted(folder.rglob("*")):
            sync(path)
        with locked(target.parent):
            if is_release(target):
                existing = _same(target, facts)
                return Created(existing, False, _kept(existing, facts))
            put_in_place(folder, target)
    return Created(open_release(target), True)


def subject_of_release(release: Release, overrides: Sequence[str] = ()) -> Subject:
    """Return a release as what gates check; ``overrides``: of the section ``release``."""
    content = release.content["settings"]
    parsed = parse(
        {
            "passages": content["passages"],
            "leakage": content.get("leakage", {}),
            "difficulty": {**content.get("difficulty", {}), "corpus": ""},
            "split": {**content["split"], "pinned": None},
            "review": {"splits": content["review"]["splits"]},
            "release": content["release"],
        }
    )
    return Subject(release.files, release.readers, with_release_settings(parsed, overrides))


def verify_tables(path: Path) -> Release:
    """Return the release after :func:`verify` and a look at every row, except for what its waived gates let pass.

    Raises ``InputError`` that names what was changed, and rows that are not what their table's contract says.
    """
    release = verify(path)
    subject = subject_of_release(release)
    waived = {gate["gate"] for gate in release.facts["gates"] if gate["state"] == "waived"}
    own_keys = release.facts.get("answer_keys", answers.VERSION) != answers.VERSION
    if own_keys:
        note(f"Not compared: keys of answers, which the release {path} has by another rule.", loud=True)
    found = faults(subject.files, subject.readers, subject.settings, own_keys=own_keys)
    rows = (fault for fault in found if fault.gate not in waived)
    if examples := [str(fault) for fault in islice(rows, subject.settings.release.examples)]:
        raise InputError(f"Tables of the release {path} are not what they must be. {'; '.join(examples)}")
    return release


def refuse_failed(results: Sequence[GateResult]) -> None:
    """Raise ``GateError`` where a gate is neither passed nor waived."""
    failed = [result for result in results if result.state == "failed"]
    if not failed:
        return
    reasons = "; ".join(f"{gate.gate} ({gate.violations}, such as {gate.examples[0]})" for gate in failed)
    raise GateError(
        f"The release was refused by {counted(len(failed), 'gate')}: {reasons}. See: quit release check. "
        "Where it must be so, waive it with a reason, which is published with the data: --waive GATE='reason' (Python: "
        "waive={GATE: reason})."
    )


def check_target(target: Path, name: str) -> None:
    """Raise ``SettingsError`` for a name that cannot be one, ``InputError`` where the target holds anything else."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{name!r} cannot name a release: use letters, digits, dots, dashes and underscores, such as v1."
        )
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"{target} exists and is not a folder: choose another place.")
    if target.is_dir() and any(target.iterdir()) and not is_release(target):
        raise InputError(f"{target} exists and is not a release: choose another place, or remove it first.")


def _same(target: Path, facts: Mapping[str, Any]) -> Release:
    existing = open_release(target)
    if existing.content_id == facts["content_id"] and existing.name != facts["name"]:
        raise InputError(
            f"{target} already holds this release under the name {existing.name!r}, not {facts['name']!r}. A release "
            "is never changed: use its name, or choose another folder."
        )
    if existing.content_id != facts["content_id"]:
        raise InputError(
            f"{target} already holds the release {existing.name!r} with other content ({existing.content_id[:12]}, now "
            f"{facts['content_id'][:12]}). A release is never changed: choose another name, and compare them with "
            "quit release diff."
        )
    return verify(target)


def _kept(existing: Release, facts: Mapping[str, Any]) -> str:
    """Say which facts outside the content differ from the release that exists, which keeps its own."""
    notes = {
        "card": "The release keeps the card of its build; use quit export --card FILE.",
        "verification": "The release keeps its figures of annotators; a release of another name has the new ones.",
    }
    return " ".join(note for key, note in notes.items() if existing.facts.get(key) != facts.get(key))


def _write(
    folder: Path,
    subject: Subject,
    pipeline: Pipeline,
    name: str,
    results: Sequence[GateResult],
    encoder: Encoder | None,
) -> dict[str, Any]:
    """Write the tables; return ``release.json``."""
    names = list(subject.files.parts)

    def write(table: str) -> dict[str, Any]:
        rows = write_table(table_path(folder, table), table, subject.files.batches(table))
        advance("tables", 1, len(names))
        return entry_of(folder, table, rows)

    with ThreadPoolExecutor(WRITERS) as pool:
        tables = dict(zip(names, pool.map(write, names), strict=True))
    frozen = TableFiles({table: [table_path(folder, table)] for table in tables})
    provenance = provenance_of(pipeline)
    current = pipeline.workspace.current().items()
    content = {
        **provenance,
        "settings": provenance["settings"] | {"release": {"human_coverage": subject.settings.release.human_coverage}},
        "tables": tables,
        "readers": [asdict(info) for info in subject.readers],
        "models": {key: models for key, (_, manifest) in current if (models := manifest.get("models"))},
        "prompts": _prompts(pipeline.settings),
        "reviews": _reviews(pipeline, frozen),
    }
    beside = {"card": pipeline.settings.card.given, "verification": verification_of(pipeline)}
    beside["replies"] = origins(pipeline.workspace.path)
    return facts_of(name, content, frozen, results, encoder, beside)


def table_path(folder: Path, table: str) -> Path:
    """Return where a release in ``folder`` has a table."""
    return folder / "tables" / f"{table}.parquet"


def entry_of(folder: Path, table: str, rows: int) -> dict[str, Any]:
    """Return what ``release.json`` says of a table's file."""
    path = table_path(folder, table)
    file = path.relative_to(folder).as_posix()
    return {"file": file, "sha256": file_checksum(path), "bytes": path.stat().st_size, "rows": rows}


def facts_of(
    name: str,
    content: Mapping[str, Any],
    files: TableFiles,
    results: Sequence[GateResult],
    encoder: Encoder | None,
    beside: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return ``release.json``; ``encoder``: measures the semantic similarity; ``beside``: what is no part of the
    content, ``card`` (what the publisher said), ``verification`` (what annotators did) and ``replies`` (which servers
    were asked)."""
    facts = {
        "made_by": MADE_BY,
        "layout": LAYOUT,
        "answer_keys": answers.VERSION,
        "name": name,
        "content_id": content_id_of(content),
        "content": content,
        "counts": _counts(files),
        "statistics": _statistics(files, encoder),
        "gates": [result.to_dict() for result in results],
        **{key: dict(value) for key, value in (beside or {}).items() if value},
    }
    return {**facts, "checksum": checksum_of(facts)}


def _prompts(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the prompts that language models were given: use -> name, hash and turns."""
    used: dict[str, PromptTemplate] = {}
    for spec in settings.language_models.values():
        if isinstance(spec, ReaderSettings):
            used[f"reader:{spec.name}"], used[f"probe:{spec.name}"] = reader_prompts(spec)
        else:
            used["judge" if spec is settings.judge else f"judge:{spec.name}"] = judge_prompt(spec)
    if settings.convergence.method == "llm":
        used |= {name: load_prompt(name) for name in ("refers", "candidates")}
    return {
        use: {
            "name": prompt.name,
            "sha256_12": prompt.sha,
            "text": "\n\n".join(f"### {role}\n{text}" for role, text in prompt.turns),
        }
        for use, prompt in used.items()
    }


def _reviews(pipeline: Pipeline, files: TableFiles) -> dict[str, Any]:
    """Return which reviews the labels rest on."""
    live, decisions = pipeline.fitting_reviews, pipeline.fitting_decisions
    review_ids = sorted(live["review_id"].unique().to_pylist())
    set_aside = _set_aside(pipeline)
    review = pipeline.settings.review
    settled, undecided = decision_counts(pipeline.workspace, decisions, review)
    return {
        "reviews": len(review_ids),
        "reviews_hash": content_hash(review_ids),
        "decisions_hash": pipeline.decisions_hash if review_ids else None,
        "annotators": hashed_people(live),
        "settled": settled,
        "open": undecided,
        **({"set_aside": set_aside} if set_aside else {}),
        "coverage": coverage(files, review.splits),
    }


def hashed_people(live: pa.Table) -> list[str]:
    """Return one hash for each annotator of these reviews, keyed by the private key of the first of their projects."""
    people = live.group_by("annotator").aggregate([("project", "min")]).to_pylist()
    return sorted(content_hash("annotator", row["project_min"], row["annotator"], size=6) for row in people)


def _set_aside(pipeline: Pipeline) -> int:
    """Return how many annotations no longer fit their question."""
    live, fitting = (rows["review_id"].unique() for rows in (pipeline.live_reviews, pipeline.fitting_reviews))
    return len(live) - len(fitting)


def _counts(files: TableFiles) -> dict[str, Any]:
    splits = files.read("splits", ["split"])["split"].to_pylist()
    questions = {split: splits.count(split) for split in SPLITS}
    return {"questions": {**questions, "all": len(splits)}, "passages": files.rows("passages")}


def _statistics(files: TableFiles, encoder: Encoder | None) -> dict[str, Any]:
    figures = statistics_of(files, encoder).to_dict()
    for row in figures["summary"]:
        for name in ("semantic_similarity", "similarity_error"):
            if row[name] is not None:
                row[name] = round(row[name], _SIMILARITY_DIGITS)
        if files.imported:
            row["gold_answer_words"] = None  # published files do not tell gold answers from others
    return figures


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
