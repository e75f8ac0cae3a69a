"""Steps of ``quit bandits report``: reports from the documents that runs of policies picked, and their mean scores."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from quit.common.files import write_json
from quit.common.rows import grouped
from quit.qa.bandits.experiment import stream
from quit.qa.bandits.metrics import budget_documents
from quit.qa.bandits.policies import Policy
from quit.qa.bandits.posteriors import QuantileTable
from quit.qa.bandits.reports import Nugget, Report, ReportJudge, ReportTask, drafts
from quit.qa.bandits.request import Request
from quit.qa.bandits.requests import Measured
from quit.qa.bandits.simulate import simulate
from quit.qa.experiment import write_rows
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.opening import Question
from quit.qa.settings import QaSettings

FULL = "full"
"""The name of what is no policy: all documents."""


def observed_rows(
    request: Request, policy: Policy | None, budget: float, settings: QaSettings, repeat: int = 0
) -> list[int]:
    """Return the distinct corpus rows that one run of a policy observes within a budget; all of them for no policy.
    ``repeat`` numbers runs."""
    if policy is None:
        rows = request.documents[request.documents >= 0]
    else:
        [steps] = budget_documents(request.size, [budget])
        again = [str(repeat)] if repeat else []
        rng = stream(settings.bandits.seed, request.stream, policy.name, "report", *again)
        order = simulate(request, policy, settings.bandits, QuantileTable(), rng, runs=1, steps=steps)[0]
        rows = request.documents.reshape(-1)[order]
    return list(dict.fromkeys(rows.tolist()))


class PolicyReport(NamedTuple):
    """A scored report from what one run of a policy observed."""

    policy: str
    repeat: int
    report: Report


def reports(
    measured: Measured, policies: Sequence[Policy | None], budget: float, settings: QaSettings, repeats: int = 1
) -> list[PolicyReport]:
    """Return the report of every request, policy and run (``repeats`` a policy; all documents are reported on once).
    The requests need a language model.

    Nuggets are the sub-questions with their answers; of a question without any, the question itself with its first
    answer.
    """
    generator = measured.generator
    assert generator is not None
    judge = ReportJudge(generator, settings.bandits.attempts)
    scored = []
    for policy, repeat in [(each, repeat) for each in policies for repeat in range(repeats if each else 1)]:
        tasks = [
            _task(request, question, observed_rows(request, policy, budget, settings, repeat), measured.corpus)
            for request, question in zip(measured.requests, measured.questions, strict=True)
        ]
        name = FULL if policy is None else policy.name
        for task, draft in zip(tasks, drafts(generator, settings.reports, tasks), strict=True):
            scored.append(PolicyReport(name, repeat, replace(judge.score(task, draft.text), cut=draft.cut)))
    return scored


def _task(request: Request, question: Question, rows: list[int], collection: BuiltCorpus) -> ReportTask:
    parts = question.steps or (question,)
    nuggets = tuple(Nugget(part.text, part.answers[0]) for part in parts if part.answers)
    documents = tuple(zip(collection.ids(rows), collection.texts(rows), strict=True))
    return ReportTask(request.request_id, request.text, documents, nuggets)


def write_reports(scored: Sequence[PolicyReport], folder: Path, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write ``reports.jsonl`` (a report per line) and ``reports.json``; return each policy's mean scores, with their
    standard deviation over reports (``_sd``) and over the means of the runs (``_run_sd``)."""
    rows = [{"policy": row.policy, "repeat": row.repeat, **asdict(row.report)} for row in scored]
    write_rows(folder / "reports.jsonl", rows)
    summary = [
        _summary(policy, of_policy) for policy, of_policy in grouped((row["policy"], row) for row in rows).items()
    ]
    write_json(folder / "reports.json", {**about, "policies": summary})
    return summary


def _summary(policy: str, reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    runs = grouped((report["repeat"], report) for report in reports)
    summary: dict[str, Any] = {"policy": policy, "repeats": len(runs), "reports": len(reports)}
    summary["documents"] = statistics.fmean(len(report["documents"]) for report in reports)
    for name in ("citation_support", "nugget_coverage", "sentence_support"):
        values = [report[name] for report in reports]
        means = [statistics.fmean(report[name] for report in run) for run in runs.values()]
        summary |= {name: statistics.fmean(values), f"{name}_sd": statistics.pstdev(values)}
        summary[f"{name}_run_sd"] = statistics.stdev(means) if len(means) > 1 else 0.0
    for name in ("verdicts", "unread", "citations", "invented", "cut"):
        summary[name] = sum(report[name] for report in reports)
    summary["empty"] = sum(not report["sentences"] for report in reports)
    summary["without_citation"] = sum(bool(report["sentences"]) and not report["citations"] for report in reports)
    return summary
