"""The release flow: check, create, export. Safe to repeat: tables that a release holds already are not frozen again."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from flows.notices import HOOKS
from flows.parameters import NO_LIMITS, Format
from flows.scheduling import FlowResult, run_with_limits
from flows.shards import may_help
from quit.dataset.release import FOLDER, Release, is_release, newest_release, open_release
from quit.dataset.release_tables import card_of_release, export_tables_of_release
from quit.engine.pipeline import Pipeline
from quit.engine.planning import held_last_build
from quit.errors import without_secrets_in_errors
from quit.export import export as export_tables
from quit.export.files import exported
from quit.models.factory import Models
from quit.models.protocols import Encoder
from quit.release.create import Created, create
from quit.release.gates import parse_waivers, with_release_settings
from quit.release.show import lines
from quit.settings import Limits, Settings
from quit.status.summary import markdown_links


@task(name="create", cache_policy=NO_CACHE)
@without_secrets_in_errors
def freeze(
    pipeline: Pipeline, name: str, out: Path | None, waivers: dict[str, str], settings: Settings, encoder: Encoder
) -> Created:
    """Check the gates and freeze the current tables as a release."""
    created = create(pipeline, name, out, waivers=waivers, settings=settings, encoder=encoder)
    for gate in created.release.facts["gates"]:
        get_run_logger().info("gate %s: %s (%s violations)", gate["gate"], gate["state"], gate["violations"])
    return created


@task(name="export", cache_policy=NO_CACHE, retries=1, retry_delay_seconds=10, retry_condition_fn=may_help)
@without_secrets_in_errors
def export(encoder: Encoder, release: Release, formats: list[str], out: Path, overwrite: bool) -> list[str]:
    """Write the release in these formats; returns their folders."""
    tables, card = export_tables_of_release(release.path), card_of_release(release.path)
    exports = export_tables(tables, formats, out, overwrite=overwrite, encoder=encoder, card=card)
    folders = [str(out / export.format) for export in exports]
    get_run_logger().info("exported: %s", folders)
    return folders


@flow(name="release", **HOOKS)
def release(
    workspace: str,
    name: str,
    waive: list[str] | None = None,
    formats: list[Format] | None = None,
    out: str = "exports",
    overwrite: bool = False,
    folder: str | None = None,
    settings: list[str] | None = None,
    limits: Limits = NO_LIMITS,
) -> dict[str, Any]:
    """Freeze a workspace as a release and export it; returns its ``name``, ``path``, ``content_id``, whether it is
    ``new``, and a ``note`` (what differs in a release that exists already and is kept; usually empty).

    Fails when a gate is neither passed nor waived. Where the name has a date and the newest release holds these very
    tables, only exports that are missing are written.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        name: Name of the release. The start of the run replaces strftime's %Y, %m, %d, %H, %M: nightly-%Y-%m-%d.
        waive: GATE=REASON; the reason is published with the data.
        formats: Formats to export the release in; none if not given.
        out: Folder of the exports.
        overwrite: Whether an earlier export may be replaced.
        folder: Folder of the release, which may name the date too; WORKSPACE/releases/NAME if not given.
        settings: release.KEY=VALUE, for the gates of this release.
        limits: Timeout, retries, and who is notified of a failure.
    """
    now = datetime.now()
    dated, target = now.strftime(name), Path(now.strftime(folder)) if folder else None

    def work() -> FlowResult:
        waivers = parse_waivers(waive or [])
        with held_last_build(workspace) as pipeline:
            encoder = Models(pipeline.settings).encoder
            frozen = _newest(pipeline, target) if dated != name else None
            if frozen is not None and _holds_these_tables(frozen, pipeline):
                created = Created(frozen, False)
            else:
                gates = with_release_settings(pipeline.settings, settings or [])
                created = freeze(pipeline, dated, target, waivers, gates, encoder)
        formats_to_write = [
            format_name
            for format_name in formats or []
            if created.new or not exported(created.release, format_name, out)
        ]
        if formats_to_write:
            export(encoder, created.release, list(formats_to_write), Path(out), overwrite)
        return _ended(pipeline, created, bool(formats_to_write), target)

    return run_with_limits(limits, work)


def _newest(pipeline: Pipeline, target: Path | None) -> Release | None:
    """Return the release to compare with: the one in the folder that was named, else the workspace's newest."""
    if target is None:
        return newest_release(pipeline.workspace)
    return open_release(target) if is_release(target) else None


def _holds_these_tables(frozen: Release, pipeline: Pipeline) -> bool:
    """Whether a release was made of the workspace's current tables, under the build's own settings."""
    return pipeline.up_to_date and frozen.content.get("fingerprints") == pipeline.workspace.state


def _ended(pipeline: Pipeline, created: Created, wrote: bool, target: Path | None) -> FlowResult:
    frozen = created.release
    nothing = None
    if not created.new and not wrote:
        nothing = f"Nothing new: the release {frozen.name} holds these very tables."
    heading = f"**{nothing}**\n\n" if nothing else ""
    summary = "\n".join(f"    {line}" for line in lines(frozen))
    create_markdown_artifact(
        heading + markdown_links(pipeline.workspace) + summary,
        key="quit-release",
        description="Counts, statistics, sources, readers, gates",
    )
    path = str(frozen.path) if target else f"{pipeline.workspace}/{FOLDER}/{frozen.name}"
    result = {"name": frozen.name, "path": path, "content_id": frozen.content_id}
    return FlowResult({**result, "new": created.new, "note": created.note}, nothing)
