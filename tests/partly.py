"""Builds with ``labels.partial``, without Prefect: 18 questions of the starter collection, 15 passages each."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from quit.engine.pipeline import Pipeline
from quit.engine.planning import checked_build
from quit.engine.workspace import Workspace
from quit.models.factory import Models

ROOT = Path(__file__).parents[1]
PROFILE, STARTER = ROOT / "tests" / "partial.toml", ROOT / "quit" / "starter" / "questions.jsonl"
LABELERS = ("minilm-vector", "minilm-late", "minilm-evidence")
EXACT = "labels.partial=exact"


@pytest.fixture(scope="session")
def full(run_folder: Path) -> Path:
    """A workspace where every labeler was asked about every passage; the same for all workers: copy it to change it."""
    from tests.conftest import once

    return once(run_folder / "full", lambda folder: build(folder / "W")) / "W"


@pytest.fixture(scope="session")
def exact(run_folder: Path) -> Path:
    """A workspace whose labelers were asked in waves; the same for all workers: copy it to change it."""
    from tests.conftest import once

    return once(run_folder / "exact", lambda folder: build(folder / "W", EXACT)) / "W"


def asked_of(workspace: Workspace, reader: str) -> set[tuple[str, str]]:
    """Return the passages about which a reader was asked: (question, permutation)."""
    rows = workspace.read("answers", runs=[f"read:{reader}"]).to_pylist()
    return {(row["question_id"], row["permutation"]) for row in rows if row["asked"]}


def plan_build(folder: Path, sources: Sequence[str], profile: str, overrides: Sequence[str]) -> Pipeline:
    """Return the plan of a build without holding its workspace, which is created where there is none."""
    settings, refs = checked_build(sources, profile, overrides)
    requested = {"profile": profile, "overrides": list(overrides)}
    return Pipeline(Workspace.create(folder), settings, refs, requested=requested)


def planned(folder: Path, *overrides: str, models: Models | None = None) -> Pipeline:
    """Return a build in a workspace, which is created where there is none."""
    texts = ["collect.questions=18", *overrides]
    settings, sources = checked_build([f"jsonl:{STARTER}"], str(PROFILE), texts)
    workspace = Workspace.open(folder) if folder.exists() else Workspace.create(folder)
    requested = {"profile": str(PROFILE), "overrides": texts}
    return Pipeline(workspace, settings, sources, requested=requested, models=models)


def carry_out(pipeline: Pipeline, *stages: str) -> set[str]:
    """Carry out what is pending of a build, of the named stages or of all; return the stage runs that had to run."""
    pipeline.begin()
    ran = set()
    for run in pipeline.runs if not stages else map(pipeline.stage_run, stages):
        for shard in pipeline.pending(run):
            pipeline.work_on(run, shard)
            ran.add(run.key)
        pipeline.finish(run)
    return ran


def build(folder: Path, *overrides: str) -> tuple[Pipeline, set[str]]:
    """Carry a build out; return it and the stage runs that had to run."""
    pipeline = planned(folder, *overrides)
    return pipeline, carry_out(pipeline)
