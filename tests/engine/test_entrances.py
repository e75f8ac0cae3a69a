"""With which settings each command and scheduled job works on a workspace: those of its last build."""

import inspect
from pathlib import Path

import pytest
import typer

from quit import cli
from quit.annotation.server import LocalServer
from quit.commands.build import build
from quit.engine.pipeline import Pipeline
from quit.engine.request import OPTIONS as OPTIONS_OF_BUILD
from quit.engine.request import as_built
from quit.engine.workspace import Workspace
from quit.errors import InputError, QuitError
from quit.flows.parameters import JOB_OF
from quit.flows.serve import FLOWS
from quit.qa import settings as qa
from quit.report import browse
from quit.settings import loading, of_section
from tests.paths import FEW, STARTER

REMEMBERED = ["judge.threshold=0.7", "collect.questions=5", 'review.splits=["test"]']
NEED_NONE = {
    "show", "release list", "query", "override leak", "override import", "override list", "override withdraw",
}  # fmt: skip
"""Commands on a workspace that need no settings, where it has no tables yet."""
OPTIONS = {"serve": ["--list", "--json"]}


def _commands(group: typer.core.TyperGroup, words: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Every command that takes a workspace, with ``x`` for what it requires."""
    commands: dict[str, list[str]] = {}
    for name, command in group.commands.items():
        path = (*words, name)
        if isinstance(command, typer.core.TyperGroup):
            commands |= _commands(command, path)
        elif any(parameter.name == "workspace" for parameter in command.params):
            parameters = [parameter for parameter in command.params if parameter.required]
            options = [[] if one.param_type_name == "argument" else [one.opts[0]] for one in parameters]
            commands[" ".join(path)] = [*path, *(word for option in options for word in [*option, "x"])]
    return commands


COMMANDS = _commands(typer.main.get_command(cli.assembled()))


@pytest.fixture
def read_settings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """Profile and overrides of all settings that are read. No build is planned, and no server started."""
    texts: list[tuple[str, list[str]]] = []
    original = loading.read

    def read(profile: str, overrides: list[str]):
        texts.append((str(profile), [*overrides]))
        return original(profile, overrides)

    def stop(*_: object, **__: object) -> None:
        raise InputError("stop")

    for module in (loading, qa):
        monkeypatch.setattr(module, "read", read)
    for owner, name in ((Pipeline, "__init__"), (LocalServer, "start"), (browse, "serve")):
        monkeypatch.setattr(owner, name, stop)
    return texts


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    created = Workspace.create(tmp_path / "W")
    created.set_build({"profile": str(FEW), "overrides": REMEMBERED, "sources": [f"jsonl:{STARTER}"]})
    monkeypatch.chdir(tmp_path)
    return created


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_works_with_the_profile_and_settings_of_the_last_build(
    command: str, workspace: Workspace, read_settings: list, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main([*COMMANDS[command], *OPTIONS.get(command, ()), "-w", str(workspace.path)])
    if "of the extra 'review'" in capsys.readouterr().err:
        pytest.skip("the extra review is not installed")
    assert bool(read_settings) == (command not in NEED_NONE)
    assert [texts for texts in read_settings if texts != (str(FEW), REMEMBERED)] == []


@pytest.mark.parametrize("flow", FLOWS)
def test_a_scheduled_job_works_with_them_too(flow: str, workspace: Workspace, read_settings: list) -> None:
    job = JOB_OF[FLOWS[flow].fn]
    first, *others = inspect.signature(job).parameters.values()
    arguments = {one.name: "x" for one in others if one.default is one.empty and one.kind is not one.VAR_KEYWORD}
    with pytest.raises(QuitError):
        job(**{first.name: str(workspace.path), **arguments})
    assert read_settings and [texts for texts in read_settings if texts != (str(FEW), REMEMBERED)] == []


@pytest.mark.parametrize("spelling", ["{}.{}={}", " {}.{} = {} ", "{} = {{ {} = {} }}"])
def test_options_of_a_build_outlast_its_settings(spelling: str, workspace: Workspace) -> None:
    """--set replaces the remembered settings, except those with their own option, such as --questions; other sources
    end the limit of questions."""
    assert {*OPTIONS_OF_BUILD} <= {*inspect.signature(build).parameters}
    keys = [*OPTIONS_OF_BUILD.values(), "review.overlap"]
    texts = [spelling.format(*key.split("."), 2) for key in (*keys, "judge.threshold")]
    workspace.set_build({**workspace.build, "overrides": texts})
    assert as_built(workspace, (), None, []).overrides == [f"{key}=2" for key in keys]
    assert as_built(workspace, (), None, texts[1:]).overrides == [f"{key}=2" for key in (*keys, "judge.threshold")]
    assert as_built(workspace, [f"jsonl:{FEW}"]).overrides == [f"{key}=2" for key in (*keys[1:], "judge.threshold")]
    assert of_section("review", texts[-2:-1]) == ["review.overlap=2"]


def test_what_names_an_entry_of_a_list_belongs_to_its_profile(workspace: Workspace) -> None:
    texts = ["readers.1.role=reader", "judge.threshold=0.6"]
    workspace.set_build({**workspace.build, "overrides": texts})
    last = workspace.build["profile"]
    assert as_built(workspace).overrides == as_built(workspace, profile=last).overrides == texts
    assert as_built(workspace, profile="another").overrides == texts[1:]


def test_a_source_named_twice_is_one(workspace: Workspace) -> None:
    source = f"jsonl:{FEW}"
    assert as_built(workspace, [source, source]).sources == [source]
    assert as_built(workspace, [source, source], add=True).sources == as_built(workspace, [source], add=True).sources
