"""Jobs on a workspace or a release that people run or schedule: build, review, release.

Each holds what it works on and is safe to repeat. The command line and Python call these functions. The flows call them
too, and give them their own way to carry out a stage or step: as a task of Prefect. A flow's parameters are those of
its job that ``Args`` explain (:mod:`quit.flows.parameters`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quit.common.progress import note
from quit.errors import CapReached, InputError, require
from quit.library.results import ReleaseFacts

if TYPE_CHECKING:
    from datetime import datetime

    from quit.annotation.reports import PullReport, PushReport
    from quit.dataset.release import Release
    from quit.engine.pipeline import Pipeline
    from quit.engine.workspace import Workspace
    from quit.models.protocols import Encoder
    from quit.review.apply import ApplyReport

Step = Callable[..., Any]
"""Carries out a named step of a job: ``step(name, function, *arguments)`` returns what the function returns."""


def directly(_name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the step's function."""
    return function(*arguments)


@dataclass(frozen=True)
class JobResult:
    """``result``: what the job did; ``nothing_new``: why there was nothing to do, in one sentence."""

    result: Any
    nothing_new: str | None = None


def build(
    workspace: str | Workspace,
    sources: Sequence[str] = (),
    profile: str | None = None,
    settings: Sequence[str] | None = None,
    *,
    add: bool = False,
    replace: bool = False,
    keep_labels: bool = False,
    fresh_replies: bool = False,
    carry_out: Callable[[Pipeline], None] | None = None,
) -> JobResult:
    """Run every stage of a build that is not up to date. The result is the workspace.

    ``keep_labels`` and errors: as of :func:`quit.engine.planning.locked_build`. ``carry_out``: instead of
    :func:`quit.engine.execution.execute`.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        sources: kind:path, such as triviahg:/data/Copilot.json, or a path that ends in .jsonl, .parquet, .csv or .tsv;
            those of the last build if none is named.
        profile: Name of a profile, or the path of a TOML file; that of the last build if not given.
        settings: key=value over the profile, such as labels.max_new_tokens=16; those of the last build if not given.
        add: Whether the sources of the last build are kept before these.
        replace: Whether labels of other settings may be replaced, and questions that people reviewed may leave; else
            such a run fails and changes nothing.
        fresh_replies: Whether the kept replies of this build's language models are deleted and asked again.
    """
    from quit.engine.execution import execute
    from quit.engine.planning import locked_build
    from quit.engine.usage import capped
    from quit.operations.plan import plan
    from quit.operations.replies import check_servers, forget_replies

    require("torch", "A build")
    options = {"add": add, "replace": replace, "keep_labels": keep_labels}
    with locked_build(workspace, sources, profile, settings, **options) as pipeline:
        if fresh_replies:
            forget_replies(pipeline)
        if pipeline.up_to_date:
            pipeline.begin()  # the sources may lie elsewhere now
            _say_limit(pipeline)
            note(f"{pipeline.workspace} is up to date: nothing to run.")
            text = f"Nothing new: sources, settings and models of {pipeline.workspace} are those of its tables."
            return JobResult(pipeline.workspace, text)
        check_servers(pipeline)
        pipeline.begin()
        try:
            with capped(pipeline.workspace.path, pipeline.settings, pipeline.models.ledger):
                (carry_out or execute)(pipeline)
        except CapReached as reached:
            rest = plan(pipeline).total.cost
            price = "" if rest is None else f" What is left may cost {rest:.4g} (quit plan)."
            raise CapReached(f"{reached}{price}") from None
        _say_limit(pipeline)
        return JobResult(pipeline.workspace)


def _say_limit(pipeline: Pipeline) -> None:
    """Say that a limit keeps questions out, which the next build uses again."""
    sql = "SELECT count(*) FROM rejects WHERE reason = 'beyond_questions'"
    [(beyond,)] = pipeline.workspace.rows(sql, ["rejects"])
    if (limit := pipeline.settings.collect.questions) and beyond:
        note(
            f"{limit:,} of {limit + beyond:,} usable questions: collect.questions={limit}, also of the next build of "
            "these sources. All: --questions 0 (questions=0).",
            loud=True,
        )


def review_sync(
    workspace: str | Workspace,
    url: str = "",
    steps: Sequence[str] = ("push", "pull"),
    project: int = 0,
    *,
    new_project: bool = False,
    repair: bool = False,
    full: bool = False,
    accept_withdrawals: bool = False,
    settings: Sequence[str] = (),
    step: Step = directly,
) -> JobResult:
    """Push what is to be reviewed and pull what people did. The result: step -> its report
    (:mod:`quit.annotation.reports`).

    A push that is refused fails the job at its end: what people did is pulled all the same.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        url: The Label Studio server; the workspace's local one if not given. Its token comes from the environment
            alone.
        steps: What is done; push, pull or both.
        project: Number of the project, where several belong to this workspace; 0 is the only one.
        new_project: Whether to make a new project and leave the known one.
        repair: Whether to put back a labelling page that someone edited.
        full: Whether to read every task, not only those changed since the last pull.
        accept_withdrawals: Whether to withdraw the reviews of annotations that are gone, many at once too.
        settings: review.KEY=VALUE, remembered from now on.

    Raises:
        InputError: Nothing was built, or there is nothing to review.
        ServerError: Label Studio does not answer.
        WorkspaceError: Another run holds the workspace.
    """
    from quit.engine.planning import locked_last_build

    reports: dict[str, PushReport | PullReport] = {}
    refusal: InputError | None = None
    with locked_last_build(workspace, settings) as pipeline:
        work: dict[str, Callable[..., PushReport | PullReport]] = {
            "push": partial(_push, new_project=new_project, repair=repair),  # the most informative first (3.2.3)
            "pull": partial(_pull, full=full, accept_withdrawals=accept_withdrawals),  # annotations -> reviews
        }
        for name, function in work.items():
            try:
                if name in steps:
                    reports[name] = step(name, function, pipeline, url, project or None)
            except InputError as error:
                refusal = refusal or error
    if refusal:
        raise refusal
    if any(report.has_news for report in reports.values()):
        return JobResult(reports)
    return JobResult(reports, "Nothing new: the project is up to date, and every review was pulled.")


def label_update(
    workspace: str | Workspace, *, withdraw: bool = False, settings: Sequence[str] = (), step: Step = directly
) -> JobResult:
    """Update the labels by every review that was pulled: people's verdicts over the judge's (3.2.4). The result:
    ``update`` -> :class:`quit.review.apply.ApplyReport`. Errors: as of :func:`review_sync`.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        withdraw: Whether to take every review off the labels again.
        settings: review.KEY=VALUE, remembered from now on.
    """
    from quit.engine.planning import locked_last_build
    from quit.review.apply import plan_update

    with locked_last_build(workspace, settings, runs=True) as pipeline:
        report: ApplyReport = step("update", _update, pipeline, plan_update(pipeline, withdraw))
    nothing_new = None if report.ran else "Nothing new: the labels use every review that was pulled."
    return JobResult({"update": report}, nothing_new)


def _push(pipeline: Pipeline, url: str, project: int | None, new_project: bool, repair: bool) -> PushReport:
    from quit.annotation.client import connect
    from quit.annotation.push import push
    from quit.review.audit import draw_audit
    from quit.review.controls import controls_of
    from quit.review.items import review_items
    from quit.review.store import ReviewStore

    workspace, settings = pipeline.workspace, pipeline.settings
    controls = controls_of(settings.review)
    held_back = sorted(controls.questions) if controls else ()
    audit = draw_audit(workspace, settings)
    items = review_items(workspace, settings.review, settings.judge.threshold, held_back, audit)
    if not items:
        splits = ", ".join(settings.review.splits)
        raise InputError(f"There is nothing to review: {workspace} has no labelled question in {splits}.")
    server, store = connect(workspace.path, settings.review, url or None), ReviewStore(workspace)
    return push(
        store, server, settings, items, controls, project=project, new_project=new_project, repair=repair, say=note
    )


def _pull(pipeline: Pipeline, url: str, project: int | None, full: bool, accept_withdrawals: bool) -> PullReport:
    from quit.annotation.client import connect
    from quit.annotation.sync import pull
    from quit.review.store import ReviewStore

    workspace, settings = pipeline.workspace, pipeline.settings
    server = connect(workspace.path, settings.review, url or None)
    store = ReviewStore(workspace)
    return pull(store, server, settings, project=project, full=full, accept_withdrawals=accept_withdrawals)


def _update(pipeline: Pipeline, changed: bool) -> ApplyReport:
    from quit.engine.execution import Execution
    from quit.review.apply import ApplyReport, change_counts, difference, report

    if not changed:
        same = report(pipeline, ran=False)
        return replace(same, now=difference(same, same))
    workspace, state = pipeline.workspace, pipeline.workspace.state
    before = ApplyReport(**change_counts(workspace)) if "update" in workspace.current() else ApplyReport()
    with Execution(pipeline, runner="threads") as carry_out:
        for stage in dict.fromkeys(run.stage for run in pipeline.review_dependent_runs):
            carry_out(stage)
    pipeline.begin()  # only now: until the update is done, the tables are those of before
    after = report(pipeline, ran=pipeline.fingerprints != state)
    return replace(after, now=difference(before, after))


def release(
    workspace: str | Workspace,
    name: str,
    waive: Sequence[str] = (),
    formats: Sequence[str] = (),
    out: str = "exports",
    *,
    overwrite: bool = False,
    folder: str = "",
    settings: Sequence[str] = (),
    now: datetime | None = None,
    step: Step = directly,
) -> JobResult:
    """Freeze a workspace as a release and export it. The result: :class:`quit.library.results.ReleaseFacts`.

    ``now``: if given, it replaces %Y, %m, %d, %H and %M in the name; any other % stays.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        name: Name of the release. The start of a scheduled run replaces %Y, %m, %d, %H and %M: nightly-%Y-%m-%d.
        waive: Gates that may fail, and why (GATE=REASON); the reason is published with the data.
        formats: Formats to export the release in; none if not given.
        out: Folder of the exports.
        overwrite: Whether an earlier export may be replaced.
        folder: Folder of the release; WORKSPACE/releases/NAME if not given.
        settings: release.KEY=VALUE, for the gates of this release.

    Raises:
        GateError: A gate failed and is not waived.
        WorkspaceError: The build is not finished, or the name is taken by other content.
    """
    from quit.dataset.release import FOLDER
    from quit.engine.planning import locked_last_build
    from quit.export.files import is_exported
    from quit.models.factory import Models
    from quit.release.create import create
    from quit.release.gates import parse_waivers, with_release_settings

    dated, target = dated_name(name, now) if now else name, Path(folder) if folder else None
    waivers = parse_waivers(waive)
    with locked_last_build(workspace) as pipeline:
        encoder = Models(pipeline.settings).encoder
        gates = with_release_settings(pipeline.settings, settings)
        options: dict[str, Any] = {"waivers": waivers, "settings": gates, "encoder": encoder}
        options["newest"] = _newest(pipeline, target) if dated != name else None
        created = step("create", lambda: create(pipeline, dated, target, **options))
    missing = [form for form in formats if created.new or not is_exported(created.release, form, out)]
    if missing:
        step("export", partial(_export, overwrite=overwrite, encoder=encoder), created.release, missing, Path(out))
    frozen = created.release
    path = str(frozen.path) if target else f"{workspace}/{FOLDER}/{frozen.name}"
    nothing_new = None if created.new or missing else f"Nothing new: the release {frozen.name} holds these very tables."
    return JobResult(ReleaseFacts(path, frozen.name, frozen.content_id, created.new, created.note), nothing_new)


def dated_name(name: str, now: datetime) -> str:
    """Return a release's name with %Y, %m, %d, %H and %M replaced; any other % stays."""
    return re.sub("%[YmdHM]", lambda part: now.strftime(part[0]), name)


def _newest(pipeline: Pipeline, target: Path | None) -> Release | None:
    """Return the release to compare with: the one in the folder that was named, else the workspace's newest."""
    from quit.dataset.release import is_release, newest_release, open_release

    if target is None:
        return newest_release(pipeline.workspace)
    return open_release(target) if is_release(target) else None


def _export(frozen: Release, formats: list[str], out: Path, overwrite: bool, encoder: Encoder) -> list[str]:
    """Write a release in these formats; returns their folders."""
    from quit.dataset.dataset import Dataset
    from quit.export import export

    dataset = Dataset.of_release(frozen.path)
    exports = export(dataset, formats, out, overwrite=overwrite, card=frozen.card, encoder=encoder)
    return [str(out / each.format) for each in exports]
