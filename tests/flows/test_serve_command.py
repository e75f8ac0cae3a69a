"""``quit serve`` before anything is served: what it says, and what it refuses."""

from pathlib import Path

import pytest

from quit.engine.workspace import Workspace
from quit.errors import SettingsError
from tests.running import QUIT, call_quit, run_process

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_server_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace that says how it was built."""
    build = {"profile": "embedded", "overrides": [], "sources": ["jsonl:x.jsonl"]}
    Workspace.create(tmp_path / "W").set_build(build)
    return tmp_path / "W"


def test_it_lists_what_it_would_deploy_without_a_server(folder: Path) -> None:
    schedule = "schedules=[{flow='build', cron='0 3 * * *', timezone='Europe/Vienna'}]"
    output = call_quit("serve", "-w", folder, "--json", "--set", schedule).json()
    deployments = {one["deployment"]: one for one in output}
    flows = "build review-sync label-update release".split()
    assert set(deployments) == {f"{flow}/{flow}-W" for flow in flows}
    assert "T03:00:00" in deployments["build/build-W"]["next"] and deployments["release/release-W"]["next"] is None


def test_the_list_says_when_each_runs_next(folder: Path) -> None:
    schedules = "{flow='build', cron='0 3 * * *'}, {flow='label-update', cron='0 4 * * *', enabled=false}"
    lines = call_quit("serve", "-w", folder, "--list", "--set", f"schedules=[{schedules}]").out.splitlines()
    times = dict(line.split(maxsplit=1) for line in lines)
    assert times["build/build-W"].startswith("0 3 * * * UTC, next 20")
    assert times["label-update/label-update-W"] == "0 4 * * * UTC, paused"
    assert times["release/release-W"] == "when asked"


def test_workspaces_that_are_served_together_have_one_limit_of_runs(folder: Path, tmp_path: Path) -> None:
    from quit.flows.serve import serving_of

    (tmp_path / "p.toml").write_text("[serving]\nlimit = 9\n")
    other = tmp_path / "other"
    Workspace.create(other).set_build({"profile": str(tmp_path / "p.toml"), "overrides": [], "sources": []})
    with pytest.raises(SettingsError, match="differ in .serving.: name one profile"):
        serving_of([folder, other])
    assert serving_of([folder, other], str(tmp_path / "p.toml")).limit == serving_of([other]).limit == 9


def test_prefect_takes_any_folder(tmp_path: Path) -> None:
    from quit.flows.serve import deployment, plan

    folders = [tmp_path / name for name in ("50% & <more>", "50- - -more-", "a b")]
    for each in folders:
        Workspace.create(each).set_build({"profile": "embedded", "overrides": [], "sources": []})
    planned = plan(folders)
    names = [deployment(each).name for each in planned]  # Prefect checks them
    assert len({*zip(names, (each.schedule.flow for each in planned), strict=True)}) == 4 * len(folders)


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ([], 4, "prefect server start"),
        (["--api-url", "http://127.0.0.1:9/api"], 6, "does not answer"),
        (["--api-url", "127.0.0.1:4200/api"], 4, "PREFECT_API_URL is no address. Write it as http://"),
    ],
)
def test_a_missing_server_is_said_in_one_line(folder: Path, more: list[str], code: int, said: str) -> None:
    """In a process of its own, for Prefect takes the server's address when it is imported."""
    result = run_process(*QUIT, "serve", "-w", folder, *more, code=code)
    assert said in result.err and "Traceback" not in result.err
