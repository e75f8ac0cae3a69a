"""The benchmark flow: retrievers, rerankers and readers over a release. The same release under the same settings is not run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from flows.notices import HOOKS
from flows.parameters import NO_LIMITS, Split
from flows.scheduling import Ended, under_limits
from quit import __version__
from quit.errors import InputError, without_secrets_in_errors
from quit.files import write_json
from quit.ids import content_hash
from quit.release.release import Release, is_release, newest_release, open_release
from quit.settings import Limits, Settings, load
from quit.systems.benchmark.benchmark import Request, run_benchmark
from quit.workspace import Workspace

_MARK = "scheduled.json"


@task(name="benchmark", cache_policy=NO_CACHE)
@without_secrets_in_errors
def run(request: Request, settings: Settings, out: str) -> list[dict[str, Any]]:
    """Run the benchmark and return the rows of its results."""
    logger = get_run_logger()
    return run_benchmark(request, settings, Path(out), lambda text: logger.info("%s", text)).results.to_pylist()


@flow(name="benchmark", **HOOKS)
def benchmark(
    release: str,
    out: str = "benchmark",
    split: Split = "test",
    retrievers: list[str] | None = None,
    rerankers: list[str] | None = None,
    readers: list[str] | None = None,
    bounds: bool = True,
    profile: str = "embedded",
    overrides: list[str] | None = None,
    limits: Limits = NO_LIMITS,
) -> str:
    """Benchmark QA systems on a release, or on the newest release of a workspace; returns the leaderboard's path.

    Nothing is run where `out` holds the results of the same release, systems and settings already.

    Args:
        release: Folder of a release, or of a workspace, whose newest release is taken.
        out: Folder of the results.
        split: Questions that are asked; the corpus is always whole.
        retrievers: Names, as quit benchmark list shows them; bm25 if not given.
        rerankers: Names, as quit benchmark list shows them.
        readers: Names of the profile's readers, or of plugins.
        bounds: Oracles and Optimal as rows too.
        profile: Name of a profile, or the path of a TOML file.
        overrides: key=value over the profile, such as labels.max_new_tokens=16.
        limits: Timeout, retries, late runs, and who hears of a failure.
    """
    workspace = None if is_release(release) else release
    return under_limits(
        "benchmark",
        workspace,
        limits,
        lambda: _benchmark(
            _release_of(release),
            Path(out),
            split,
            (tuple(retrievers or ("bm25",)), tuple(rerankers or ()), tuple(readers or ())),
            bounds,
            load(profile, overrides or []).settings,
        ),
    )


def _release_of(folder: str) -> Release:
    if is_release(folder):
        return open_release(folder)
    opened = Workspace.open(folder)
    found = newest_release(opened)
    if found is None:
        raise InputError(f"{folder} has no release to benchmark yet. Make one with: quit release create -w {folder}")
    opened.bring_folder(found.path)
    return found


def _benchmark(
    release: Release, out: Path, split: str, names: tuple[tuple[str, ...], ...], bounds: bool, settings: Settings
) -> Ended:
    request = Request(release.path, split, *names, bounds=bounds)
    given = settings.model_dump(mode="json")
    used = {section: given[section] for section in ("benchmark", "models", "readers", "judge", "labels")}
    key = content_hash(__version__, release.content_id, split, names, bounds, used, size=16)
    page = out / "leaderboard.html"
    done = (out / "run.json").is_file() and page.is_file() and _mark(out) == key
    if done:
        rows = json.loads((out / "results.json").read_text(encoding="utf-8"))
        nothing = f"Nothing new: {out} holds the results of the release {release.name} already."
    else:
        rows, nothing = run(request, settings, str(out)), None
        write_json(out / _MARK, {"key": key, "release": release.name})
    create_table_artifact(
        [{name: value for name, value in row.items() if name not in ("low", "high")} for row in rows if _shown(row)],
        key="quit-benchmark",
        description=nothing or f"Release {release.name}, split {split}: {page}",
    )
    create_link_artifact(page.resolve().as_uri(), link_text=str(page), key="quit-leaderboard")
    return Ended(str(page), nothing)


def _mark(out: Path) -> str | None:
    try:
        return json.loads((out / _MARK).read_text(encoding="utf-8"))["key"]
    except (OSError, ValueError, KeyError):
        return None


def _shown(row: dict[str, Any]) -> bool:
    return row["metric"] in ("Hit@1", "Hit@10", "MRR@100", "nDCG@10", "EM", "F1")
