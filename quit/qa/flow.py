"""The benchmark flow: retrievers, rerankers and readers over a release. The same release under the same settings is not
run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_link_artifact, create_table_artifact

from quit.flows.parameters import NO_LIMITS, Profile, Split
from quit.flows.scheduling import run_with_limits
from quit.flows.tasks import as_task
from quit.library.jobs import JobResult
from quit.qa import jobs
from quit.settings import Limits


@flow(name="benchmark")
def benchmark(
    release: str,
    out: str = "benchmark",
    split: Split = "test",
    retrievers: Sequence[str] = (),
    rerankers: Sequence[str] = (),
    readers: Sequence[str] = (),
    corpora: Sequence[str] = (),
    bounds: bool = True,
    profile: Profile = "",
    settings: Sequence[str] = (),
    anew: bool = False,
    limits: Limits = NO_LIMITS,
) -> dict[str, Any]:
    """Benchmark QA systems on a release, or on the newest release of a workspace; returns ``results``, ``seconds`` and
    the ``page``.

    Nothing is run where `out` holds the results of the same release, systems and settings already and no `corpora` are
    named.

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
        limits: Timeout and retries.
    """

    def work() -> JobResult:
        options: dict[str, Any] = {"bounds": bounds, "profile": profile or None, "settings": settings, "anew": anew}
        systems = (retrievers, rerankers, readers, corpora)
        outcome = jobs.benchmark(release, out, split, *systems, **options, step=as_task)
        facts, page = outcome.result, Path(outcome.result["page"])
        create_table_artifact(
            [
                {name: value for name, value in row.items() if name not in ("low", "high")}
                for row in facts["results"]
                if row["metric"] in _SHOWN
            ],
            key="quit-benchmark",
            description=outcome.nothing_new or f"Release {facts['release']}, split {split}: {page}",
        )
        create_link_artifact(page.resolve().as_uri(), link_text=str(page), key="quit-leaderboard")
        return outcome

    return run_with_limits(limits, work)


_SHOWN = ("Hit@1", "Hit@10", "MRR@100", "nDCG@10", "nDCG(exp)@10", "EM", "F1")
