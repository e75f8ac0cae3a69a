"""Limits, forms and plans of flows, without a server."""

import inspect
import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from quit.engine.workspace import Workspace
from quit.errors import InputError, ServerError, SettingsError, Waiting, WorkspaceError
from quit.flows import parameters, scheduling
from quit.flows.parameters import JOB_OF
from quit.flows.scheduling import RunTimeout, helps_to_retry
from quit.flows.serve import FLOWS, Planned, deployment, plan
from quit.library.results import JobResult
from quit.settings import Limits

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


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"sources": ["starter", "csv:/data/mine.csv"], "workspace": "w"}, "starter, mine.csv, 2026-05-01 12:00"),
        ({"sources": [], "workspace": Path("/data/w")}, "w, 2026-05-01 12:00"),
        ({"release": "/data/w/releases/v1", "workspace": None}, "v1, 2026-05-01 12:00"),
    ],
)
def test_a_run_is_called_by_what_it_works_on_and_when(monkeypatch, parameters: dict, name: str) -> None:
    monkeypatch.setattr(scheduling, "flow_run", SimpleNamespace(parameters=parameters))
    monkeypatch.setattr(scheduling, "datetime", SimpleNamespace(now=lambda: NOON))
    assert scheduling.run_name() == name
    assert all(flow.flow_run_name is scheduling.run_name for flow in FLOWS.values())


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
    schema = FLOWS["release"].parameters
    assert {"beir", "huggingface"} < {*schema.properties["formats"]["items"]["enum"]}
    assert "human-coverage" in schema.definitions["Waiver"]["properties"]["gate"]["enum"]
    assert "embedded" in FLOWS["build"].parameters.properties["profile"]["anyOf"][1]["enum"]
    assert not any("null" in json.dumps(flow.parameters.model_dump()) for flow in FLOWS.values())


def test_a_waiver_of_a_schedule_may_be_the_text_of_the_command_line(tmp_path: Path) -> None:
    release = _plan(tmp_path, "{flow='release', parameters={waive=['human-coverage=a pilot, with = in its reason']}}")[
        0
    ]
    assert release.parameters["waive"] == [{"gate": "human-coverage", "reason": "a pilot, with = in its reason"}]


def _built(folder: Path) -> Path:
    last_build = {"profile": "embedded", "overrides": ["judge.threshold=0.25"], "sources": ["jsonl:a.jsonl"]}
    Workspace.create(folder).set_build(last_build)
    return folder


def _plan(folder: Path, *schedules: str) -> list[Planned]:
    """The deployments of a workspace that was built before."""
    return plan([_built(folder / "W")], None, [f"schedules=[{', '.join(schedules)}]"])


def test_a_plan_offers_every_flow_with_the_profiles_schedules_and_limits(tmp_path: Path) -> None:
    planned = _plan(
        tmp_path,
        "{flow='build', cron='0 3 * * *', retries=2}",
        "{flow='release', name='weekly', cron='0 6 * * 1', parameters={formats=['beir']}}",
    )
    assert [f"{one.schedule.flow}/{one.name}" for one in planned] == [
        "build/build-W", "release/release-weekly-W", "review-sync/review-sync-W", "label-update/label-update-W",
    ]  # fmt: skip
    build, release = planned[0].parameters, planned[1].parameters
    assert build["limits"]["retries"] == 2
    assert release["formats"] == ["beir"] and release["limits"]["retries"] == 0
    weekly = deployment(planned[1])
    assert weekly.schedules[0].schedule.cron == "0 6 * * 1"
    described = weekly.description or ""
    assert described.startswith("Freeze a workspace as a release") and "Args:" not in described
    assert planned[0].to_dict(NOON)["next"] == "2026-05-02T03:00:00+00:00"


def test_a_scheduled_job_is_given_what_its_schedule_names_and_else_its_defaults(tmp_path: Path, monkeypatch) -> None:
    """A deployment holds every parameter, as JSON."""
    monkeypatch.setattr(parameters, "run_with_limits", lambda limits, work: work.args[0])
    for planned in _plan(tmp_path, "{flow='release', parameters={settings=['release.seed=1']}}"):
        function = FLOWS[planned.schedule.flow].fn
        arguments = function(**json.loads(json.dumps(planned.parameters)))
        expected = {name: each.default for name, each in inspect.signature(JOB_OF[function]).parameters.items()}
        own = {name: planned.parameters[name] for name in ("workspace", "release", "name", "out") if name in arguments}
        own |= planned.schedule.parameters
        assert json.dumps(arguments) == json.dumps({name: {**expected, **own}[name] for name in arguments})
        assert {name for name, value in expected.items() if value is None}.isdisjoint({*arguments} - {*own})


@pytest.mark.parametrize(("first", "second"), [("W", "W"), ("a%b", "a-b"), ("geo", "nightly-geo")])
def test_workspaces_of_the_same_name_get_deployments_of_their_own(first, second, tmp_path: Path) -> None:
    folders = [_built(tmp_path / "a" / first), _built(tmp_path / "b" / second), _built(tmp_path / "other")]
    schedules = "schedules=[{flow='build'}, {flow='build', name='nightly'}]"
    names = {f"{one.schedule.flow}/{one.name}" for one in plan(folders, None, [schedules])}
    assert len(names) == 3 * (len(FLOWS) + 1) and "build/build-nightly-other" in names


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ("formats=['bier']", "beir"),
        ("format=['beir']", "Did you mean 'formats'"),
        ("name=5", "name: Input should be a valid string"),
        ("waive=['x']", "The waiver 'x' has no '='"),
    ],
)
def test_parameters_that_a_flow_does_not_take_are_refused_before_anything_is_deployed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, parameters: str, named: str
) -> None:
    with pytest.raises(SettingsError, match=f"^Schedule 'release': .*{named}"), caplog.at_level(0, "prefect.flows"):
        _plan(tmp_path, f"{{flow='release', parameters={{{parameters}}}}}")
    assert not caplog.records


def test_a_workspace_that_was_never_built_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path / "W", Workspace.create(tmp_path / "V").path):
        with pytest.raises(InputError, match="has not been built yet. Run: quit build"):
            plan([folder])


def test_a_file_of_schedules_gives_schedules_and_each_workspaces_own_profile_its_own(tmp_path: Path) -> None:
    """Nothing of a file reaches a build, which takes all from its workspace when it starts."""
    schedules = tmp_path / "nightly.toml"
    schedules.write_text(
        '[judge]\nthreshold = 0.9\n[[schedules]]\nflow = "build"\nname = "nightly"\n', encoding="utf-8"
    )
    for profile in (str(schedules), None):
        planned = plan([_built(tmp_path / "W")], profile)
        builds = [each for each in planned if each.schedule.flow == "build"]
        assert [each.name for each in builds] == ["build-nightly-W" if profile else "build-W"]
        for each in planned:
            named = {name: each.parameters.get(name) for name in ("sources", "profile", "settings")}
            assert not any(named.values()), (each.name, named)
    Workspace.open(tmp_path / "W").set_build({"profile": str(schedules), "overrides": [], "sources": []})
    assert plan([tmp_path / "W"])[0].name == "build-nightly-W"
    with pytest.raises(SettingsError, match="only schedules and serving can be set here"):
        plan([tmp_path / "W"], None, ["judge.threshold=0.5"])
