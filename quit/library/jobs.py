"""Jobs on a workspace that people run or schedule: build and release; those of review are in
:mod:`quit.library.reviewing`.

Each holds what it works on and is safe to repeat. The command line and Python call these functions. The flows call them
too, and give them their own way to carry out a stage or step: as a task of Prefect. A flow's parameters are those of
its job that ``Args`` explain (:mod:`quit.flows.parameters`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quit.common.extras import require
from quit.common.progress import note
from quit.common.tasks import Step, directly
from quit.errors import CapReached
from quit.library.results import JobResult, ReleaseFacts

if TYPE_CHECKING:
    from datetime import datetime

    from quit.dataset.release import Release
    from quit.engine.pipeline import Pipeline
    from quit.engine.workspace import Workspace
    from quit.models.protocols import Encoder


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
    step: Step = directly,
) -> JobResult[Workspace]:
    """Run every stage of a build that is not up to date. The result is the workspace.

    ``keep_labels``: as in :func:`quit.engine.planning.locked_build`, whose errors are raised here too. ``step``: runs
    one stage.

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
    with locked_build(
        workspace, sources, profile, settings, add=add, replace=replace, keep_labels=keep_labels
    ) as pipeline:
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
                execute(pipeline, step)
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
) -> JobResult[ReleaseFacts]:
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
        newest = _newest(pipeline, target) if dated != name else None
        freeze = partial(create, waivers=waivers, settings=gates, encoder=encoder, newest=newest)
        created = step("create", freeze, pipeline, dated, target)
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
    from quit.export.formats import card_for

    dataset = Dataset.of_release(frozen.path)
    card = card_for(formats, frozen.card)
    exports = export(dataset, formats, out, overwrite=overwrite, card=card, encoder=lambda: encoder)
    return [str(out / each.format) for each in exports]
