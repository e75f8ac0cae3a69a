"""Freeze a workspace's current tables as a release: whole or not at all, with the same bytes from the same
workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from quit.common.ids import content_hash
from quit.common.progress import advance
from quit.dataset.description import Content, Description, RestingReviews, TableEntry
from quit.dataset.files import TableFiles
from quit.dataset.release import FOLDER, Release
from quit.dataset.workspace import provenance_of, verification_of
from quit.dataset.writing import write_table
from quit.engine.pipeline import Pipeline
from quit.engine.questions import decision_counts
from quit.engine.usage import origins
from quit.errors import WorkspaceError
from quit.models.language_models import judge_prompt, reader_prompts
from quit.models.prompting import PromptTemplate, load_prompt
from quit.models.protocols import Encoder
from quit.release.freezing import Created, check_target, entry_of, facts_of, put, refuse_failed, table_path
from quit.release.gates import GateResult, Subject, check, coverage, tell_paraphrases
from quit.release.subjects import set_aside_count, subject_of
from quit.settings import ReaderSettings, Settings
from quit.text.words import shell_word

WRITERS = 2
"""Tables written at a time."""


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


def _write(
    folder: Path,
    subject: Subject,
    pipeline: Pipeline,
    name: str,
    results: Sequence[GateResult],
    encoder: Encoder | None,
) -> Description:
    """Write the tables; return ``release.json``."""
    names = list(subject.files.parts)

    def write(table: str) -> TableEntry:
        rows = write_table(table_path(folder, table), table, subject.files.batches(table))
        advance("tables", 1, len(names))
        return entry_of(folder, table, rows)

    with ThreadPoolExecutor(WRITERS) as pool:
        tables = dict(zip(names, pool.map(write, names), strict=True))
    frozen = TableFiles({table: [table_path(folder, table)] for table in tables})
    provenance = provenance_of(pipeline)
    current = pipeline.workspace.current().items()
    content: Content = {
        **provenance,
        "settings": provenance["settings"] | {"release": {"human_coverage": subject.settings.release.human_coverage}},
        "tables": tables,
        "readers": [asdict(info) for info in subject.readers],
        "models": {key: models for key, (_, manifest) in current if (models := manifest.get("models"))},
        "prompts": _prompts(pipeline.settings),
        "reviews": _reviews(pipeline, frozen),
    }
    beside = {"verification": verification_of(pipeline), "replies": origins(pipeline.workspace.path)}
    return facts_of(name, content, frozen, results, encoder, card=pipeline.settings.card.given, **beside)


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


def _reviews(pipeline: Pipeline, files: TableFiles) -> RestingReviews:
    """Return which reviews the labels rest on."""
    live, decisions = pipeline.reviews.fitting_rows, pipeline.reviews.fitting_decisions
    review_ids = sorted(live["review_id"].unique().to_pylist())
    review = pipeline.settings.review
    settled, undecided = decision_counts(pipeline.workspace, decisions, review)
    reviews: RestingReviews = {
        "reviews": len(review_ids),
        "reviews_hash": content_hash(review_ids),
        "decisions_hash": pipeline.reviews.hash if review_ids else None,
        "annotators": hashed_people(live),
        "settled": settled,
        "open": undecided,
        "coverage": coverage(files, review.splits),
    }
    if set_aside := set_aside_count(pipeline):
        reviews["set_aside"] = set_aside
    return reviews


def hashed_people(live: pa.Table) -> list[str]:
    """Return one hash for each annotator of these reviews, keyed by the private key of the first of their projects."""
    people = live.group_by("annotator").aggregate([("project", "min")]).to_pylist()
    return sorted(content_hash("annotator", row["project_min"], row["annotator"], size=6) for row in people)
