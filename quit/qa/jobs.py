"""The job of QA systems that people run or schedule: benchmark. Made as those of :mod:`quit.library.jobs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quit.errors import InputError, shell_word
from quit.library.jobs import JobResult, Step, directly

if TYPE_CHECKING:
    from quit.dataset.release import Release
    from quit.qa.settings import QaSettings

_MARK = "scheduled.json"
"""File in a benchmark's folder: the key of its request, settings and models."""


def benchmark(
    release: str,
    out: str = "benchmark",
    split: str = "test",
    retrievers: Sequence[str] = (),
    rerankers: Sequence[str] = (),
    readers: Sequence[str] = (),
    corpora: Sequence[str] = (),
    *,
    bounds: bool = True,
    profile: str | None = None,
    settings: Sequence[str] = (),
    anew: bool = False,
    step: Step = directly,
) -> JobResult:
    """Benchmark QA systems on a release, or on the newest release of a workspace. The result: ``results``, ``seconds``,
    the ``page``, and the ``release``'s name.

    Nothing is run where ``out`` holds the results of the same arguments, release and settings already (with what
    classes and model folders hold, and the versions of other packages' plugins) and no ``corpora`` are named, except
    with ``anew``.

    Args:
        release: Folder of a release, or of a workspace: the release of its current tables is taken, else the last by
            name (v10 after v9).
        out: Folder of the results.
        split: Questions that are asked; the corpus is always whole.
        retrievers: Names, as quit benchmark list shows them; bm25 if not given.
        rerankers: Names, as quit benchmark list shows them.
        readers: Names of the profile's readers, or of plugins.
        corpora: Corpora to benchmark beside the release, relabelled by labelers and judge.
        bounds: Oracles and Optimal as rows too.
        profile: Name of a profile, or the path of a TOML file; that of the workspace's last build if not given.
        settings: key=value over the profile, such as labels.max_new_tokens=16.
        anew: Whether to run where the results are there already; work in `out` that rests on the same inputs is used.
    """
    from quit.common.files import read_json, write_json, writing
    from quit.common.ids import content_hash
    from quit.qa.benchmark.benchmark import BenchmarkRequest, check, source_identities
    from quit.version import __version__

    loaded = settings_for(release, profile, settings)
    systems = (tuple(retrievers or ("bm25",)), tuple(rerankers), tuple(readers))
    request = BenchmarkRequest(Path(release), split, *systems, tuple(map(Path, corpora)), bounds)
    check(request, loaded)
    frozen, folder = _release_of(release), Path(out)
    requested = asdict(request) | {"release": frozen.content_id}
    values = loaded.model_dump(mode="json")
    key = content_hash(__version__, requested, values, source_identities(request, loaded), size=16)
    facts: dict[str, Any] = {"page": str(folder / "leaderboard.html"), "release": frozen.name}
    complete = all((folder / name).is_file() for name in ("run.json", "results.json", "leaderboard.html"))
    if complete and not (anew or corpora) and (read_json(folder / _MARK) or {}).get("key") == key:
        facts |= {"results": read_json(folder / "results.json"), "seconds": {}}
        return JobResult(facts, f"Nothing new: {out} holds the results of the release {frozen.name} already.")
    with writing(folder):
        (folder / _MARK).unlink(missing_ok=True)
    facts |= step("benchmark", _benchmark, replace(request, release=frozen.path), loaded, folder)
    write_json(folder / _MARK, {"key": key, "release": frozen.name})
    return JobResult(facts)


def settings_for(place: str | Path, profile: str | None, settings: Sequence[str]) -> QaSettings:
    """Return the settings for work on a release or a workspace: of a workspace, those of its last build where the
    caller names no others (:func:`quit.engine.reading.as_built`)."""
    from quit.engine.reading import as_built
    from quit.engine.workspace import Workspace
    from quit.qa.settings import load

    request = as_built(Workspace(place), (), profile, None, settings, files=["-p"])
    return load(request.profile, request.overrides).settings


def _benchmark(request: Any, settings: Any, out: Path) -> dict[str, Any]:
    from quit.qa.benchmark.benchmark import run_benchmark

    outcome = run_benchmark(request, settings, out)
    return {"results": outcome.results.to_pylist(), "seconds": outcome.seconds}


def _release_of(folder: str) -> Release:
    from quit.dataset.release import is_release, newest_release, open_release
    from quit.engine.workspace import Workspace

    if is_release(folder) or not (workspace := Workspace(folder)).exists:
        return open_release(folder)
    newest = newest_release(workspace)
    if newest is None:
        raise InputError(
            f"{folder} has no release to benchmark yet: quit release create -w {shell_word(folder)} --name v1"
        )
    return newest
