"""Limits, forms and plans of flows, without a server."""

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.states import Crashed, Failed

from quit.engine.workspace import Workspace
from quit.errors import InputError, ServerError, SettingsError, Waiting, WorkspaceError
from quit.flows import scheduling
from quit.flows.notices import as_text, notice
from quit.flows.scheduling import RunTimeout, helps_to_retry
from quit.flows.serve import FLOWS, deployment, plan
from quit.library.jobs import JobResult
from quit.settings import Limits, load

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "get_run_logger", lambda: logging.getLogger("test"))


def test_only_faults_that_may_pass_are_tried_again() -> None:
    assert helps_to_retry(ServerError("x")) and helps_to_retry(OSError("x"))
    for error in (RunTimeout("x"), InputError("x"), WorkspaceError("x"), ZeroDivisionError()):
        assert not helps_to_retry(error)


def test_a_run_that_waits_for_a_batch_ends_in_a_state_of_that_name() -> None:
    def work() -> JobResult:
        raise Waiting("r waits for batch_1")

    state = scheduling.run_with_limits(Limits(), work)
    assert (state.name, state.type.value, state.message) == ("Waiting", "COMPLETED", "r waits for batch_1")


@pytest.mark.parametrize("name", list(FLOWS))
def test_every_parameter_has_a_description_a_type_and_where_it_can_a_default(name: str) -> None:
    schema = FLOWS[name].parameters.model_dump()
    for parameter, facts in schema["properties"].items():
        assert facts["description"], parameter
        assert parameter == "limits" or facts.get("type") or facts.get("anyOf") or facts.get("enum"), parameter
        assert ("default" in facts) != (parameter in schema["required"]), parameter
    limits = schema["definitions"]["Limits"]["properties"]
    assert all(facts["title"] and facts["description"] for facts in limits.values())


def test_forms_offer_choices_where_there_are_some() -> None:
    """And no field has the type null, of which a form would show `Property is type "None"`."""
    assert FLOWS["benchmark"].parameters.properties["split"]["enum"] == ["train", "dev", "test", "all"]
    schema = FLOWS["release"].parameters
    assert {"beir", "huggingface"} < {*schema.properties["formats"]["items"]["enum"]}
    assert "human-coverage" in schema.definitions["Waiver"]["properties"]["gate"]["enum"]
    assert "embedded" in FLOWS["build"].parameters.properties["profile"]["anyOf"][1]["enum"]
    assert not any("null" in json.dumps(flow.parameters.model_dump()) for flow in FLOWS.values())


def test_a_waiver_of_a_schedule_may_be_the_text_of_the_command_line(tmp_path: Path) -> None:
    settings = _settings("{flow='release', parameters={waive=['human-coverage=a pilot, with = in its reason']}}")
    release = plan([tmp_path / "W"], settings, "embedded", [], ["jsonl:x.jsonl"])[0]
    assert release.parameters["waive"] == [{"gate": "human-coverage", "reason": "a pilot, with = in its reason"}]


def _settings(*schedules: str):
    return load("embedded", [f"schedules=[{', '.join(schedules)}]", "failure_hook.webhook_env=QUIT_HOOK"]).settings


def test_a_plan_offers_every_flow_with_the_profiles_schedules_and_limits(tmp_path: Path) -> None:
    settings = _settings(
        "{flow='build', cron='0 3 * * *', retries=2}",
        "{flow='release', name='weekly', cron='0 6 * * 1', at_once=2, collision='cancel_new', "
        "parameters={formats=['beir']}}",
    )
    planned = plan([tmp_path / "W"], settings, "embedded", ["run.shards=2"], [f"jsonl:{tmp_path / 'x.jsonl'}"])
    assert [f"{one.schedule.flow}/{one.name}" for one in planned] == [
        "build/build-W", "release/release-weekly-W", "review-sync/review-sync-W", "label-update/label-update-W",
        "benchmark/benchmark-W",
    ]  # fmt: skip
    build, release = planned[0].parameters, planned[1].parameters
    assert build["settings"] == ["run.shards=2"] and build["sources"] == [f"jsonl:{tmp_path / 'x.jsonl'}"]
    assert build["limits"]["retries"] == 2 and build["limits"]["webhook_env"] == "QUIT_HOOK"
    assert release["formats"] == ["beir"] and release["limits"]["retries"] == 0
    deployments = [deployment(one) for one in planned]
    limits = [(one.concurrency_limit, one.concurrency_options.collision_strategy.value) for one in deployments[:2]]
    assert limits == [(1, "ENQUEUE"), (2, "CANCEL_NEW")]
    weekly = deployments[1]
    assert weekly.schedules[0].schedule.cron == "0 6 * * 1"
    described = weekly.description or ""
    assert described.startswith("Freeze a workspace as a release") and "Args:" not in described
    assert planned[0].to_dict(NOON)["next"] == "2026-05-02T03:00:00+00:00"


def test_workspaces_of_the_same_name_get_deployments_of_their_own(tmp_path: Path) -> None:
    folders = [tmp_path / "a" / "W", tmp_path / "b" / "W"]
    planned = plan(folders, _settings(), "embedded", [], ["jsonl:x.jsonl"])
    names = {f"{one.schedule.flow}/{one.name}" for one in planned}
    assert len(names) == 2 * len(FLOWS)


@pytest.mark.parametrize(
    ("parameters", "named"), [("formats=['bier']", "beir"), ("format=['beir']", "Did you mean 'formats'")]
)
def test_parameters_that_a_flow_does_not_take_are_refused_before_anything_is_deployed(tmp_path, parameters, named):
    settings = _settings(f"{{flow='release', parameters={{{parameters}}}}}")
    with pytest.raises(SettingsError, match=named):
        plan([tmp_path / "W"], settings, "embedded", [], ["jsonl:x.jsonl"])


def test_a_workspace_that_was_never_built_needs_a_source(tmp_path: Path) -> None:
    Workspace.create(tmp_path / "W")
    with pytest.raises(InputError, match="--source"):
        plan([tmp_path / "W"], _settings(), "embedded", [])


def test_a_schedule_without_sources_takes_those_of_the_last_build_before_it_runs(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "W")
    workspace.set_build({"profile": "embedded", "overrides": [], "sources": ["jsonl:a.jsonl"]})
    assert plan([tmp_path / "W"], _settings(), "embedded", [])[0].parameters["sources"] == []  # not a copy of today


def test_a_profile_that_can_label_nothing_is_refused_before_anything_is_deployed(tmp_path: Path) -> None:
    profile = tmp_path / "nightly.toml"
    profile.write_text('[[schedules]]\nflow = "build"\ncron = "0 3 * * *"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="labeler.*--profile embedded --toml > mine.toml"):
        plan([tmp_path / "W"], load(str(profile)).settings, str(profile), [], ["jsonl:x.jsonl"])


def test_a_bare_path_is_a_source_of_a_schedule_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    build = plan([tmp_path / "W"], _settings(), "embedded", [], ["mine.jsonl"])[0]
    assert build.parameters["sources"] == [f"jsonl:{tmp_path / 'mine.jsonl'}"]


def _failed(error: Exception) -> object:
    return Failed(data=error, message=f"Flow run encountered an exception: {type(error).__name__}: {error}")


@pytest.mark.parametrize(
    ("state", "advice"),
    [
        (_failed(InputError("no such file")), "Fix the input"),
        (_failed(ServerError("gone")), "Try again later"),
        (_failed(ZeroDivisionError("x")), "See the run's log"),
        (Crashed(message="killed"), "the next run resumes"),
        (Failed(name="TimedOut", message="too long"), "timeout_seconds"),
    ],
)
def test_a_notice_says_what_to_do_and_no_secret(state, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-123456789")
    state.message += " sk-123456789 at http://me:pass@host/v1"
    run = FlowRun(flow_id=uuid4(), state=state, name="calm-fox", parameters={"workspace": "W"})
    body = notice(SimpleNamespace(name="build"), run, state)
    assert body["what_to_do"].find(advice) >= 0 and body["workspace"] == "W" and body["run"] == "calm-fox"
    for text in (json.dumps(body), as_text(body)):
        assert "sk-123456789" not in text and "pass@" not in text and "(SOME_API_KEY)" in text
