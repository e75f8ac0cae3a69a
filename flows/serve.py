"""Deployments: every flow for every workspace, with the profile's schedules. ``quit serve`` serves them; `prefect.yaml`
is for workers."""

from __future__ import annotations

import asyncio
import inspect
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import Flow, get_client
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound, ParameterTypeError
from prefect.flows import EntrypointType
from prefect.runner import Runner
from prefect.schedules import Schedule as PrefectSchedule
from prefect.settings import PREFECT_API_URL

from quit.common.endpoints import address
from quit.common.ids import content_hash
from quit.engine.planning import check_buildable
from quit.engine.workspace import Workspace
from quit.errors import InputError, ServerError, SettingsError, did_you_mean
from quit.flows.benchmark import benchmark
from quit.flows.build import build
from quit.flows.release import release
from quit.flows.review import label_update, review_sync
from quit.library.arguments import named_source
from quit.settings import Limits, Notice, Schedule, Settings
from quit.sources import split_source

FLOWS: dict[str, Flow[..., Any]] = {
    "build": build,
    "review-sync": review_sync,
    "label-update": label_update,
    "release": release,
    "benchmark": benchmark,
}
"""The flows by the names that schedules use."""


@dataclass(frozen=True)
class Planned:
    """One deployment, before any server knows of it."""

    name: str
    workspace: str
    folder: str
    schedule: Schedule
    parameters: dict[str, Any]

    def to_dict(self, now: datetime | None = None) -> dict[str, Any]:
        """Return it as JSON-like values, with when it runs next."""
        schedule, after = self.schedule, now or datetime.now(UTC)
        next_time = schedule.next_time(after)
        return {
            "deployment": f"{schedule.flow}/{self.name}",
            "workspace": self.workspace,
            "cron": schedule.cron or None,
            "timezone": schedule.timezone if schedule.cron else None,
            "enabled": schedule.enabled,
            "next": next_time.isoformat() if next_time else None,
            "at_once": schedule.at_once,
            "collision": schedule.collision,
            "parameters": self.parameters,
        }


def plan(
    workspaces: Sequence[str | Path],
    settings: Settings,
    profile: str,
    overrides: Sequence[str],
    sources: Sequence[str] = (),
) -> list[Planned]:
    """Return the deployments of these workspaces: one for each schedule of the profile, and one for each flow without a
    schedule.

    ``sources``: of builds, ``kind:path``; if not given, each build takes those of the last one. Raises
    ``InputError`` for a workspace that has neither, ``SettingsError`` for parameters that a flow does not take, or a
    profile without labelers.
    """
    check_buildable(settings)
    flows = {schedule.flow for schedule in settings.schedules}
    schedules = [*settings.schedules, *(Schedule(flow=flow) for flow in FLOWS if flow not in flows)]  # type: ignore[arg-type]
    folders = list({folder.address: folder for folder in map(Workspace, workspaces)}.values())
    names = [re.sub("[%&<>]", "-", folder.name) for folder in folders]  # Prefect refuses these characters
    deployments = []
    for folder, label in zip(folders, names, strict=True):
        label += f"-{content_hash(folder.address, size=3)}" if len({*names}) < len(names) else ""
        last_build = (folder.build or {}) if folder.exists else {}
        source_texts = [_absolute(text) for text in sources]
        if not source_texts and not last_build:
            raise InputError(f"{folder} has not been built yet: name what to build it from, --source KIND:PATH.")
        for schedule in schedules:
            parameters = _parameters(schedule, folder, source_texts, profile, overrides, settings.failure_hook)
            name = "-".join(filter(None, (schedule.flow, schedule.name, label)))
            deployments.append(Planned(name, folder.address, folder.name, schedule, parameters))
    return deployments


def _absolute(source: str) -> str:
    kind, path = split_source(named_source(source))
    return f"{kind}:{Path(path).expanduser().resolve()}"


def _parameters(
    schedule: Schedule,
    workspace: Workspace,
    sources: Sequence[str],
    profile: str,
    overrides: Sequence[str],
    hook: Notice,
) -> dict[str, Any]:
    limits = {**hook.model_dump(), **schedule.model_dump(include={*Limits.model_fields} & schedule.model_fields_set)}
    profile = str(Path(profile).resolve()) if profile.endswith(".toml") else profile
    run = {"profile": profile, "settings": list(overrides)}
    folder = Path(workspace.address)
    defaults: dict[str, dict[str, Any]] = {
        "build": {"workspace": workspace.address, "sources": list(sources), **run},
        "review-sync": {"workspace": workspace.address},
        "label-update": {"workspace": workspace.address},
        "release": {"workspace": workspace.address, "name": "%Y-%m-%d", "out": str(folder / "exports")},
        "benchmark": {"release": workspace.address, "out": str(folder / "benchmark"), **run},
    }
    flow = FLOWS[schedule.flow]
    names = [name for name in flow.parameters.properties if name != "limits"]
    if unknown := [name for name in schedule.parameters if name not in names]:
        raise SettingsError(
            f"Schedule {schedule.title!r}: {schedule.flow} takes no {unknown[0]!r}.{did_you_mean(unknown[0], names)}"
        )
    parameters = {**defaults[schedule.flow], **schedule.parameters, "limits": Limits(**limits).model_dump()}
    try:
        return flow.serialize_parameters(flow.validate_parameters(parameters))
    except ParameterTypeError as error:
        raise SettingsError(f"Schedule {schedule.title!r}: {str(error).strip().splitlines()[-1].strip()}") from None


def deployment(planned: Planned) -> RunnerDeployment:
    """Return it as Prefect knows it."""
    schedule, flow = planned.schedule, FLOWS[planned.schedule.flow]
    return flow.to_deployment(  # type: ignore[return-value]  # no coroutine where there is no event loop
        planned.name,
        schedules=[PrefectSchedule(cron=schedule.cron, timezone=schedule.timezone, active=schedule.enabled)]
        if schedule.cron
        else [],
        concurrency_limit=ConcurrencyLimitConfig(
            limit=schedule.at_once, collision_strategy=ConcurrencyLimitStrategy(schedule.collision.upper())
        ),
        parameters=planned.parameters,
        description=(inspect.getdoc(flow.fn) or "").partition("\n\nArgs:")[0],
        tags=["quit", f"workspace:{planned.folder}"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def check_server(planned: Sequence[Planned]) -> str:
    """Return the address of the Prefect server. Raises ``SettingsError`` where none is named, or one of these
    deployments belongs to another workspace there; ``ServerError`` where it does not answer."""
    url = PREFECT_API_URL.value()
    if not url:
        raise SettingsError(
            "No Prefect server is named. Either let this command start one: quit serve --with-server; or start it "
            "yourself (prefect server start) and set PREFECT_API_URL, as in http://127.0.0.1:4200/api, or give "
            "--api-url."
        )
    with get_client(sync_client=True) as client:
        fault = client.api_healthcheck()
        if fault is not None:
            raise ServerError(
                f"The Prefect server {address(url)} does not answer ({type(fault).__name__}). Start it: prefect "
                "server start; or name another: --api-url"
            )
        for plan in planned:
            try:
                there = client.read_deployment_by_name(f"{plan.schedule.flow}/{plan.name}")
            except ObjectNotFound:
                continue
            key = "release" if plan.schedule.flow == "benchmark" else "workspace"
            if there.parameters.get(key) not in (None, plan.parameters[key]):
                raise SettingsError(
                    f"The server has {plan.schedule.flow}/{plan.name} already, for {there.parameters[key]}. Rename one "
                    f"of the folders, or remove the other: prefect deployment delete {plan.schedule.flow}/{plan.name}"
                )
    return address(url)


class _Runner(Runner):
    """Ends at SIGTERM and at Ctrl-C: the runs at work are cancelled, a second signal leaves them.

    Prefect's own handler does not await that: such runs stay "Running", and the next ones wait for their place.
    """

    async def start(self, run_once: bool = False, webserver: bool | None = None) -> None:
        """Start runs until a signal comes."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.handle_sigterm)
        await super().start(run_once, webserver)

    def handle_sigterm(self, *args: Any, **kwargs: Any) -> None:
        """Cancel the runs at work and end."""
        if not self.started:
            sys.exit(0)
        self.execute_in_background(self.astop)


def serve(planned: Sequence[Planned], limit: int, poll_seconds: int) -> None:
    """Register the deployments and start their runs until stopped by Ctrl-C or SIGTERM, which cancel the runs at work;
    schedules stay active."""
    runner = _Runner(pause_on_shutdown=False, limit=limit, query_seconds=poll_seconds)
    for each in planned:
        runner.add_deployment(deployment(each))  # type: ignore[unused-coroutine]  # none where there is no event loop
    asyncio.run(runner.start())
