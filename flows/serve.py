"""Deployments: every flow for every workspace, with the profile's schedules. ``quit serve`` serves them; `prefect.yaml`
is for workers."""

from __future__ import annotations

import asyncio
import inspect
import re
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from prefect import Flow, get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName, DeploymentFilterTags, Operator
from prefect.client.schemas.responses import DeploymentResponse
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ParameterTypeError, PrefectException
from prefect.flows import EntrypointType
from prefect.runner import Runner
from prefect.schedules import Schedule as PrefectSchedule
from prefect.settings import PREFECT_API_URL

from quit.common.ids import content_hash
from quit.engine.planning import last_build_options
from quit.engine.request import as_built
from quit.engine.workspace import Workspace
from quit.errors import QuitError, SettingsError, did_you_mean
from quit.flows.build import build
from quit.flows.liveness import end_dead_runs
from quit.flows.parameters import JOB_OF, fault_in
from quit.flows.release import release
from quit.flows.review import label_update, review_sync
from quit.flows.server import check_health
from quit.settings import Limits, Schedule, ServeSettings, Settings

FLOWS: dict[str, Flow[..., Any]] = {
    "build": build,
    "review-sync": review_sync,
    "label-update": label_update,
    "release": release,
}
"""The flows by the names that schedules use."""
FLOW_OF = {JOB_OF[flow.fn]: flow for flow in FLOWS.values()}
"""The flow of each job."""
_DISABLED, _LEFT = "disabled-by-profile", "left-the-profile"
"""Tags of a deployment: no person made its schedule inactive; no person paused it."""


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
            "parameters": self.parameters,
        }


def plan(
    workspaces: Sequence[str | Path], profile: str | None = None, overrides: Sequence[str] | None = None
) -> list[Planned]:
    """Return the deployments of these workspaces: one for each schedule, and one for each flow without a schedule.

    Schedules are all that is taken of ``profile`` and ``overrides``; those of each workspace's last build if not given.
    Raises ``InputError`` for a workspace that was never built, ``SettingsError`` for parameters that a flow does not
    take.
    """
    folders = list({folder.address: folder for folder in map(Workspace, workspaces)}.values())
    deployments = []
    for folder in folders:
        label = re.sub("[%&<>]", "-", folder.name)  # Prefect refuses these characters
        settings = schedule_settings(folder, profile, overrides)
        flows = {schedule.flow for schedule in settings.schedules}
        others = [Schedule(flow=flow) for flow in FLOWS if flow not in flows]  # type: ignore[arg-type]
        for schedule in (*settings.schedules, *others):
            parameters = _parameters(schedule, folder)
            name = "-".join(filter(None, (schedule.flow, schedule.name, label)))
            deployments.append(Planned(name, folder.address, folder.name, schedule, parameters))
    counts = Counter(each.name for each in deployments)
    doubled = {each.workspace for each in deployments if counts[each.name] > 1}
    return [
        replace(each, name=f"{each.name}-{content_hash(each.workspace, size=3)}") if each.workspace in doubled else each
        for each in deployments
    ]


def schedule_settings(workspace: Workspace, profile: str | None, overrides: Sequence[str] | None) -> Settings:
    """Return the settings that a workspace's schedules are taken from. Raises as :func:`plan`."""
    for text in overrides or ():
        if text.partition(".")[0].partition("=")[0].strip() not in ("schedules", "serving"):
            raise SettingsError(
                f"{text!r}: only schedules and serving can be set here. A scheduled build takes its settings from the "
                "workspace's last build (quit build --set), or names them: parameters = { settings = [...] }."
            )
    last_build_options(workspace)
    return as_built(workspace, (), profile, overrides, files=["-p", "--set"]).settings


def serving_of(
    workspaces: Sequence[str | Path], profile: str | None = None, overrides: Sequence[str] | None = None
) -> ServeSettings:
    """Return how the runs of all these workspaces are served. Raises as :func:`plan`, and ``SettingsError`` where the
    workspaces' settings differ."""
    each_serving = {schedule_settings(Workspace(each), profile, overrides).serving for each in workspaces}
    if len(each_serving) > 1:
        raise SettingsError(
            "The profiles of these workspaces differ in [serving]: name one profile for all of them (--profile FILE)."
        )
    return each_serving.pop()


def _parameters(schedule: Schedule, workspace: Workspace) -> dict[str, Any]:
    folder = Path(workspace.address)
    defaults: dict[str, dict[str, Any]] = {
        "build": {"workspace": workspace.address},
        "review-sync": {"workspace": workspace.address},
        "label-update": {"workspace": workspace.address},
        "release": {"workspace": workspace.address, "name": "%Y-%m-%d", "out": str(folder / "exports")},
    }
    flow = FLOWS[schedule.flow]
    names = [name for name in flow.parameters.properties if name != "limits"]
    if unknown := [name for name in schedule.parameters if name not in names]:
        raise SettingsError(
            f"Schedule {schedule.title!r}: {schedule.flow} takes no {unknown[0]!r}.{did_you_mean(unknown[0], names)}"
        )
    limits = schedule.model_dump(include={*Limits.model_fields})
    parameters = {**defaults[schedule.flow], **schedule.parameters, "limits": limits}
    try:
        return flow.serialize_parameters(flow.validate_parameters(parameters))
    except (ParameterTypeError, QuitError) as error:
        raise SettingsError(f"Schedule {schedule.title!r}: {fault_in(error)}") from None


def deployment(planned: Planned, existing: DeploymentResponse | None = None) -> RunnerDeployment:
    """Return it as Prefect knows it. ``existing``: the server's; where a person paused it, or its schedule, it is
    paused."""
    schedule, flow = planned.schedule, FLOWS[planned.schedule.flow]
    return flow.to_deployment(  # type: ignore[return-value]  # no coroutine where there is no event loop
        planned.name,
        schedules=[PrefectSchedule(cron=schedule.cron, timezone=schedule.timezone, active=schedule.enabled)]
        if schedule.cron
        else [],
        paused=existing is not None and _is_paused_by_person(existing),
        parameters=planned.parameters,
        description=(inspect.getdoc(flow.fn) or "").partition("\n\nArgs:")[0],
        tags=["quit", f"workspace:{planned.folder}", *([] if schedule.enabled else [_DISABLED])],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def _is_paused_by_person(deployment: DeploymentResponse) -> bool:
    inactive = any(not schedule.active for schedule in deployment.schedules)
    return (deployment.paused and _LEFT not in deployment.tags) or (inactive and _DISABLED not in deployment.tags)


def reconcile(planned: Sequence[Planned]) -> tuple[list[RunnerDeployment], list[str]]:
    """Return the deployments as the server shall have them, and a line on each that it has otherwise: paused by a
    person, or of a schedule that is gone, which is paused.

    Raises ``SettingsError`` where no server is named, or it has one of them for another workspace; as
    :func:`quit.flows.server.check_health` does.
    """
    if not PREFECT_API_URL.value():
        raise SettingsError(
            "No Prefect server is named. Start one (prefect server start) and set PREFECT_API_URL, as in "
            "http://127.0.0.1:4200/api, or give --api-url."
        )
    check_health()
    lines = []
    with get_client(sync_client=True) as client:
        names = {f"{each.schedule.flow}/{each.name}": each for each in planned}
        mine = DeploymentFilter(
            operator=Operator.or_,
            name=DeploymentFilterName(any_=[each.name for each in planned]),
            tags=DeploymentFilterTags(any_=[f"workspace:{each.folder}" for each in planned]),
        )
        responses: list[DeploymentResponse] = []
        while page := client.read_deployments(deployment_filter=mine, offset=len(responses)):
            responses += page
        on_server = {f"{client.read_flow(each.flow_id).name}/{each.name}": each for each in responses}
        for name, each in on_server.items():
            workspace = each.parameters.get("workspace")
            if name in names:
                if workspace and workspace != names[name].parameters["workspace"]:
                    raise SettingsError(
                        f"The server has {name} already, for {workspace}. Rename one of the folders, or "
                        f"remove the other: prefect deployment delete {name}"
                    )
                if _is_paused_by_person(each):
                    lines.append(f"{name} was paused on the server and stays paused: resume it in Prefect's pages.")
            elif each.schedules and workspace in {each.workspace for each in planned}:
                if not each.paused:
                    client.update_deployment(each.id, DeploymentUpdate(tags=[*each.tags, _LEFT]))
                    client.pause_deployment(each.id)
                lines.append(
                    f"{name} is on the server and no longer planned here; it is paused. To remove it: prefect "
                    f"deployment delete {name}"
                )
    return [deployment(each, on_server.get(name)) for name, each in names.items()], lines


class _Runner(Runner):
    """Ends at SIGTERM and at Ctrl-C: the runs at work are cancelled, a second signal leaves them.

    Prefect's own handler does not await that: such runs stay "Running". So do runs that died, which are looked for.
    """

    deployment_names: Sequence[str] = ()

    async def start(self, run_once: bool = False, webserver: bool | None = None) -> None:
        """Start runs until a signal comes."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.handle_sigterm)
        looking = asyncio.create_task(self._look_for_dead_runs())
        await super().start(run_once, webserver)
        looking.cancel()

    async def _look_for_dead_runs(self) -> None:
        while True:
            try:
                for name in await asyncio.to_thread(end_dead_runs, self.deployment_names):
                    self._logger.warning("The process of the run %s is gone: set to Crashed.", name)
            except (httpx.HTTPError, OSError, PrefectException) as error:  # the server is away: later
                self._logger.debug("%s", error)
            await asyncio.sleep(60)

    def handle_sigterm(self, *args: Any, **kwargs: Any) -> None:
        """Cancel the runs at work and end."""
        if not self.started:
            sys.exit(0)
        self.execute_in_background(self.astop)


def serve(deployments: Sequence[RunnerDeployment], limit: int, poll_seconds: int) -> None:
    """Register the deployments and start their runs until stopped by Ctrl-C or SIGTERM, which cancel the runs at work;
    schedules stay active."""
    runner = _Runner(pause_on_shutdown=False, limit=limit, query_seconds=poll_seconds)
    runner.deployment_names = [each.name for each in deployments]
    for each in deployments:
        runner.add_deployment(each)  # type: ignore[unused-coroutine]  # none where there is no event loop
    asyncio.run(runner.start())
