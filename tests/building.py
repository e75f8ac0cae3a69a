"""Small workspaces: what every test may copy, and builds without Prefect."""

import shutil
from pathlib import Path

import pytest

from quit.engine.pipeline import Pipeline
from quit.engine.planning import checked_build
from quit.engine.request import Request
from quit.engine.workspace import Workspace
from quit.models.factory import Models
from tests.once import once
from tests.paths import FEW, ROOT, STARTER, starter_file
from tests.running import call_quit

PROFILE = ROOT / "tests" / "partial.toml"
LABELERS = ("minilm-vector", "minilm-late", "minilm-evidence")
EXACT = "labels.partial=exact"


def plan_build(
    folder: Path,
    *overrides: str,
    source: Path = STARTER,
    profile: Path | str = PROFILE,
    models: Models | None = None,
) -> Pipeline:
    """Return the plan of a build without holding its workspace, which is created where there is none.

    Without ``source`` and ``profile``: 18 questions of the starter collection, 15 passages each.
    """
    settings, refs = checked_build([f"jsonl:{source}"], str(profile), overrides)
    workspace = Workspace.open(folder) if folder.exists() else Workspace.create(folder)
    requested = Request([], str(profile), list(overrides))
    return Pipeline(workspace, settings, refs, requested=requested, models=models)


def carry_out(pipeline: Pipeline, *stages: str) -> set[str]:
    """Carry out what is pending of a build, of the named stages or of all; return the stage runs that had to run."""
    pipeline.begin()
    ran = set()
    for run in pipeline.runs if not stages else map(pipeline.stage_run, stages):
        for shard in pipeline.pending(run):
            pipeline.run_shard(run, shard)
            ran.add(run.key)
        pipeline.finish(run)
    return ran


def build(folder: Path, *overrides: str) -> tuple[Pipeline, set[str]]:
    """Carry a build out; return it and the stage runs that had to run."""
    pipeline = plan_build(folder, *overrides)
    return pipeline, carry_out(pipeline)


def asked_of(workspace: Workspace, reader: str) -> set[tuple[str, str]]:
    """Return the passages about which a reader was asked: (question, permutation)."""
    rows = workspace.read("answers", runs=[f"read:{reader}"]).to_pylist()
    return {(row["question_id"], row["permutation"]) for row in rows if row["asked"]}


@pytest.fixture(scope="session")
def small_source(run_folder: Path) -> Path:
    """The first eighteen questions of the starter collection and two broken lines."""

    def make(folder: Path) -> None:
        with starter_file(folder / "small.jsonl", 18).open("a", encoding="utf-8") as file:
            file.write('{"id": "broken"\n{"id": "no-answer", "question": "Who?", "hints": ["x"]}\n')

    return once(run_folder / "source", make) / "small.jsonl"


@pytest.fixture(scope="session")
def built(run_folder: Path, small_source: Path) -> Path:
    """A workspace built from the small source with every model, one shard; the same for all workers: copy it to change
    it."""
    command = ("build", "--source", f"jsonl:{small_source}", "--shards", 1)
    return once(run_folder / "built", lambda folder: call_quit(*command, "-w", folder / "W")) / "W"


@pytest.fixture
def workspace(built: Path, tmp_path: Path) -> Workspace:
    """A copy of ``built`` that a test may change."""
    return Workspace.open(shutil.copytree(built, tmp_path / "W"))


@pytest.fixture(scope="session")
def few_source(run_folder: Path) -> Path:
    """Six questions of the starter collection, for builds that are about shards, processes and servers."""
    return once(run_folder / "few", lambda folder: starter_file(folder / "few.jsonl", 6)) / "few.jsonl"


@pytest.fixture(scope="session")
def few_built(run_folder: Path, few_source: Path) -> Path:
    """A workspace built undisturbed from ``few_source`` with the profile ``FEW``, in three shards."""
    command = ("build", "-s", f"jsonl:{few_source}", "-p", FEW, "--shards", 3)
    return once(run_folder / "few-built", lambda folder: call_quit(*command, "-w", folder / "W")) / "W"


@pytest.fixture(scope="session")
def full(run_folder: Path) -> Path:
    """A workspace where every labeler was asked about every passage; the same for all workers: copy it to change it."""
    return once(run_folder / "full", lambda folder: build(folder / "W")) / "W"


@pytest.fixture(scope="session")
def exact(run_folder: Path) -> Path:
    """A workspace whose labelers were asked in waves; the same for all workers: copy it to change it."""
    return once(run_folder / "exact", lambda folder: build(folder / "W", EXACT)) / "W"
