"""What stands on a Prefect server when ``quit serve`` starts: paused by a person, or of a schedule that is gone."""

from pathlib import Path

import pytest
from prefect import get_client
from prefect.client.schemas.responses import DeploymentResponse

from quit.engine.workspace import Workspace
from quit.errors import SettingsError
from quit.flows.serve import plan, reconcile

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prefect_server")]
NIGHTLY = "{flow='build', cron='0 3 * * *'}"
OFTEN = "{flow='label-update', name='often', cron='30 4 * * *'}"


def _workspace(folder: Path) -> Path:
    Workspace.create(folder).set_build({"profile": "embedded", "overrides": [], "sources": []})
    return folder


def _served(folder: Path, *schedules: str) -> list[str]:
    """Register what ``quit serve`` would; returns what it says of the server."""
    deployments, lines = reconcile(plan([folder], None, [f"schedules=[{', '.join(schedules)}]"]))
    for each in deployments:
        each.apply()
    return lines


def _there(name: str) -> tuple[bool, bool]:
    """Whether a deployment is paused, and whether its schedules are active."""
    deployment = _read(name)
    return deployment.paused, all(each.active for each in deployment.schedules)


def _read(name: str) -> DeploymentResponse:
    with get_client(sync_client=True) as client:
        return client.read_deployment_by_name(name)


def test_a_schedule_that_is_gone_is_named_and_paused_until_it_comes_back(tmp_path: Path) -> None:
    folder, name = _workspace(tmp_path / "gone"), "label-update/label-update-often-gone"
    assert _served(folder, NIGHTLY, OFTEN) == [] and _there(name) == (False, True)
    for _ in range(2):
        [line] = _served(folder, NIGHTLY)
        assert f"prefect deployment delete {name}" in line and _there(name)[0]
    assert _served(folder, NIGHTLY, OFTEN) == [] and _there(name) == (False, True)
    assert _served(folder, OFTEN) == [] and _read("build/build-gone").schedules == []


@pytest.mark.parametrize("whole", [True, False], ids=["deployment", "schedule"])
def test_what_a_person_paused_stays_paused_and_is_named(whole: bool, tmp_path: Path) -> None:
    folder = _workspace(tmp_path / f"paused-{whole}")
    name = f"build/build-{folder.name}"
    _served(folder, NIGHTLY)
    deployment = _read(name)
    with get_client(sync_client=True) as client:
        if whole:
            client.pause_deployment(deployment.id)
        else:
            [schedule] = deployment.schedules
            client.update_deployment_schedule(deployment.id, schedule.id, active=False)
    for schedule in (NIGHTLY, NIGHTLY.replace("}", ", enabled=false}"), NIGHTLY):
        [line] = _served(folder, schedule)
        paused, active = _there(name)
        assert line.startswith(f"{name} was paused on the server") and (paused or not active)
    with get_client(sync_client=True) as client:
        client.resume_deployment(deployment.id)
    assert _there(name) == (False, True) and _served(folder, NIGHTLY) == [] and _there(name) == (False, True)


def test_the_profile_alone_decides_where_no_person_did(tmp_path: Path) -> None:
    folder, name = _workspace(tmp_path / "by-profile"), "build/build-by-profile"
    for enabled in (True, False, True):
        schedule = f"{{flow='build', cron='0 3 * * *', enabled={str(enabled).lower()}}}"
        assert _served(folder, schedule) == [] and _there(name) == (False, enabled)


@pytest.mark.parametrize(("first", "second"), [("twin", "twin"), ("two%twins", "two-twins"), ("often-geo", "geo")])
def test_another_workspace_with_a_deployment_of_the_same_name_is_refused(first, second, tmp_path: Path) -> None:
    _served(_workspace(tmp_path / "a" / first), "{flow='label-update'}")
    with pytest.raises(SettingsError, match=f"has .* already, for .*/a/{first}"):
        _served(_workspace(tmp_path / "b" / second), OFTEN)
