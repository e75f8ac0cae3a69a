"""Builds with ``labels.economy``, without Prefect: 18 questions of the starter collection, 15 passages each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quit.engine.pipeline import Pipeline
from quit.engine.planning import checked_build
from quit.engine.workspace import Workspace
from quit.models.factory import Models
from tests.conftest import ROOT, STARTER

PROFILE = ROOT / "tests" / "economy.toml"
LABELERS = ("minilm-vector", "minilm-late", "minilm-evidence")


def plan_build(folder: Path, sources: Sequence[str], profile: str, overrides: Sequence[str]) -> Pipeline:
    """Return the plan of a build without holding its workspace, which is created where there is none."""
    settings, refs = checked_build(sources, profile, overrides)
    asked_as = {"profile": profile, "overrides": list(overrides)}
    return Pipeline(Workspace.create(folder), settings, refs, asked_as=asked_as)


def planned(folder: Path, *overrides: str, models: Models | None = None) -> Pipeline:
    """Return a build in a workspace, which is created where there is none."""
    given = ["collect.questions=18", *overrides]
    settings, sources = checked_build([f"jsonl:{STARTER}"], str(PROFILE), given)
    workspace = Workspace.open(folder) if folder.exists() else Workspace.create(folder)
    asked_as = {"profile": str(PROFILE), "overrides": given}
    return Pipeline(workspace, settings, sources, asked_as=asked_as, models=models)


def build(folder: Path, *overrides: str) -> tuple[Pipeline, set[str]]:
    """Carry a build out; return it and the stage runs that had to run."""
    pipeline = planned(folder, *overrides)
    pipeline.begin()
    ran = set()
    for run in pipeline.runs:
        for shard in pipeline.pending(run):
            pipeline.work_on(run, shard)
            ran.add(run.key)
        pipeline.finish(run)
    return pipeline, ran
