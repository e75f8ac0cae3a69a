"""The benchmark flow: retrievers, rerankers and readers over a release. The same release under the same settings is not
run again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE

from flows.notices import HOOKS
from flows.parameters import NO_LIMITS, Split
from flows.scheduling import FlowResult, run_with_limits
from quit.common.files import write_json
from quit.common.ids import content_hash
from quit.dataset.release import Release, is_release, newest_release, open_release
from quit.engine.workspace import Workspace
from quit.errors import InputError, without_secrets_in_errors
from quit.settings import Limits, Settings, load
from quit.systems.benchmark.benchmark import BenchmarkRequest, check, run_benchmark
from quit.version import __version__

_MARK = "scheduled.json"


@task(name="benchmark", cache_policy=NO_CACHE)
@without_secrets_in_errors
def run(request: BenchmarkRequest, settings: Settings, out: Path) -> dict[str, Any]:
    """Run the benchmark; returns the rows of its results and the seconds of its parts."""
    outcome = run_benchmark(request, settings, out)
    return {"results": outcome.results.to_pylist(), "seconds": outcome.seconds}


@flow(name="benchmark", **HOOKS)
def benchmark(
    release: str,
    out: str = "benchmark",
    split: Split = "test",
    retrievers: list[str] | None = None,
    rerankers: list[str] | None = None,
    readers: list[str] | None = None,
    corpora: list[str] | None = None,
    bounds: bool = True,
    profile: str = "embedded",
    overrides: list[str] | None = None,
    anew: bool = False,
    limits: Limits = NO_LIMITS,
) -> dict[str, Any]:
    """Benchmark QA systems on a release, or on the newest release of a workspace; returns ``results``, ``seconds`` and
    the ``page``.

    Nothing is run where `out` holds the results of the same release, systems and settings already and no `corpora` are
    named.

    Args:
        release: Folder of a release, or of a workspace, whose newest release is taken.
        out: Folder of the results.
        split: Questions that are asked; the corpus is always whole.
        retrievers: Names, as quit benchmark list shows them; bm25 if not given.
        rerankers: Names, as quit benchmark list shows them.
        readers: Names of the profile's readers, or of plugins.
        corpora: Corpora to benchmark beside the release, relabelled by labelers and judge.
        bounds: Oracles and Optimal as rows too.
        profile: Name of a profile, or the path of a TOML file.
        overrides: key=value over the profile, such as labels.max_new_tokens=16.
        anew: Whether to run where the results are there already; work in `out` that rests on the same inputs is used.
        limits: Timeout, retries, and who is notified of a failure.
    """

    def work() -> FlowResult:
        settings = load(profile, overrides or []).settings
        systems = (tuple(retrievers or ("bm25",)), tuple(rerankers or ()), tuple(readers or ()))
        request = BenchmarkRequest(Path(release), split, *systems, tuple(map(Path, corpora or ())), bounds)
        check(request, settings)
        frozen = _release_of(release)
        return _benchmark(frozen, replace(request, release=frozen.path), Path(out), settings, anew)

    return run_with_limits(limits, work)


def _release_of(folder: str) -> Release:
    if is_release(folder) or not Workspace(folder).exists:
        return open_release(folder)
    workspace = Workspace.open(folder)
    newest = newest_release(workspace)
    if newest is None:
        raise InputError(f"{folder} has no release to benchmark yet. Make one with: quit release create -w {folder}")
    workspace.download_folder(newest.path)
    return newest


def _benchmark(release: Release, request: BenchmarkRequest, out: Path, settings: Settings, anew: bool) -> FlowResult:
    values = settings.model_dump(mode="json")
    used = {section: values[section] for section in ("benchmark", "models", "readers", "judge", "labels")}
    systems = (request.retrievers, request.rerankers, request.readers)
    key = content_hash(__version__, release.content_id, request.split, systems, request.bounds, used, size=16)
    page = out / "leaderboard.html"
    nothing = None
    if not (anew or request.corpora) and (out / "run.json").is_file() and page.is_file() and _mark(out) == key:
        results = json.loads((out / "results.json").read_text(encoding="utf-8"))
        outcome = {"results": results, "seconds": {}}
        nothing = f"Nothing new: {out} holds the results of the release {release.name} already."
    else:
        (out / _MARK).unlink(missing_ok=True)
        outcome = run(request, settings, out)
        write_json(out / _MARK, {"key": key, "release": release.name})
    create_table_artifact(
        [_without_intervals(row) for row in outcome["results"] if row["metric"] in _SHOWN],
        key="quit-benchmark",
        description=nothing or f"Release {release.name}, split {request.split}: {page}",
    )
    create_link_artifact(page.resolve().as_uri(), link_text=str(page), key="quit-leaderboard")
    return FlowResult({**outcome, "page": str(page)}, nothing)


_SHOWN = ("Hit@1", "Hit@10", "MRR@100", "nDCG@10", "nDCG(exp)@10", "EM", "F1")


def _without_intervals(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("low", "high")}


def _mark(out: Path) -> str | None:
    try:
        return json.loads((out / _MARK).read_text(encoding="utf-8"))["key"]
    except (OSError, ValueError, KeyError):
        return None
