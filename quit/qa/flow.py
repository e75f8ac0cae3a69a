"""The benchmark flow: retrievers, rerankers and readers over a release. The same release under the same settings is not
run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_link_artifact, create_table_artifact

from quit.flows.parameters import Profile, Split, of_job
from quit.flows.scheduling import run_name
from quit.flows.tasks import as_task
from quit.library.jobs import JobResult
from quit.qa import jobs


@flow(name="benchmark", flow_run_name=run_name)
@of_job(jobs.benchmark, split=Split, profile=Profile)
def benchmark(arguments: dict[str, Any]) -> JobResult:
    """Benchmark QA systems on a release, or on the newest release of a workspace; returns ``results``, ``seconds`` and
    the ``page``.

    Nothing is run where `out` holds the results of the same release, systems and settings already and no `corpora` are
    named.
    """
    outcome = jobs.benchmark(**arguments, step=as_task)
    facts, page = outcome.result, Path(outcome.result["page"])
    create_table_artifact(
        [
            {name: value for name, value in row.items() if name not in ("low", "high")}
            for row in facts["results"]
            if row["metric"] in _SHOWN
        ],
        key="quit-benchmark",
        description=outcome.nothing_new or f"Release {facts['release']}, split {arguments['split']}: {page}",
    )
    create_link_artifact(page.resolve().as_uri(), link_text=str(page), key="quit-leaderboard")
    return outcome


_SHOWN = ("Hit@1", "Hit@10", "MRR@100", "nDCG@10", "nDCG(exp)@10", "EM", "F1")
