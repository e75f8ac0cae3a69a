"""``quit serve`` before anything is served: what it says, and what it refuses."""

from pathlib import Path

import pytest

from quit.errors import ServerError
from quit.flows.server import prefect_server
from quit.library.arguments import STARTER
from quit.settings import ServeSettings, load
from tests.running import QUIT, call_quit, run_process
from tests.servers.ports import taken_port

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_server_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


def _arguments(tmp_path: Path, *more: str) -> tuple[str, ...]:
    return ("serve", "-w", str(tmp_path / "W"), "-s", f"jsonl:{tmp_path / 'x.jsonl'}", *more)


def test_it_lists_what_it_would_deploy_without_a_server(tmp_path: Path) -> None:
    schedule = "schedules=[{flow='build', cron='0 3 * * *', timezone='Europe/Vienna'}]"
    output = call_quit(*_arguments(tmp_path, "--json", "--set", schedule)).json()
    deployments = {one["deployment"]: one for one in output}
    flows = "build review-sync label-update release benchmark".split()
    assert set(deployments) == {f"{flow}/{flow}-W" for flow in flows}
    assert "T03:00:00" in deployments["build/build-W"]["next"] and deployments["release/release-W"]["next"] is None
    assert not (tmp_path / "W").exists()


def test_prefect_takes_any_folder_and_sources_are_those_of_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quit.flows.serve import deployment, plan

    monkeypatch.setenv("HOME", str(tmp_path))
    folders = [tmp_path / name for name in ("50% & <more>", "50- - -more-", "a b")]
    planned = plan(folders, load("embedded").settings, "embedded", [], ["starter", "jsonl:~/mine.jsonl"])
    names = [deployment(each).name for each in planned]  # Prefect checks them
    assert len({*zip(names, (each.schedule.flow for each in planned), strict=True)}) == 5 * len(folders)
    assert planned[0].parameters["sources"] == [f"jsonl:{STARTER.resolve()}", f"jsonl:{tmp_path / 'mine.jsonl'}"]


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [([], 4, "--with-server"), (["--with-server", "--api-url", "http://127.0.0.1:9/api"], 4, "names another: leave"),
     (["--api-url", "http://127.0.0.1:9/api"], 6, "does not answer")],
)  # fmt: skip
def test_a_missing_server_is_said_in_one_line(tmp_path: Path, more: list[str], code: int, said: str) -> None:
    """In a process of its own, for Prefect takes the server's address when it is imported."""
    result = run_process(*QUIT, *_arguments(tmp_path, *more), code=code)
    assert said in result.err and "Traceback" not in result.err


def test_a_taken_port_is_said_before_a_server_is_started(tmp_path: Path) -> None:
    with taken_port() as port, pytest.raises(ServerError, match=f"Port {port} is taken"):
        prefect_server(True, ServeSettings(server_port=port)).__enter__()
