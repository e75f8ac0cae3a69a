"""How a workspace is built, wherever it lies: files in it belong to it, others are known by path and checksum."""

import json
import shutil
from pathlib import Path

import pytest

import quit
from quit.common.checksums import file_checksum
from quit.engine.location import Location
from quit.engine.planning import last_build
from quit.engine.request import settings_of
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.review.store import ReviewStore
from quit.settings import profile_file
from tests.comparing import files_of
from tests.paths import FEW, starter_file
from tests.running import call_quit
from tests.stages.labelling.test_verdicts import said


def test_a_build_names_files_of_its_workspace_relative_to_it_and_others_with_their_checksums(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = Location.create("W")
    for path in ("W/own.toml", "W/pins.jsonl", "people.csv", "own.jsonl"):
        Path(path).write_text(path)
    here.set_build(
        {
            "profile": "W/own.toml",
            "overrides": ['split.pinned = "W/x/../pins.jsonl"', "review.people=./people.csv", "judge.threshold=0.6"],
            "sources": ["jsonl:W/own.jsonl", "jsonl:own.jsonl", "jsonl:/gone.jsonl"],
        }
    )
    assert json.loads(Path("W/build.json").read_text()) == {
        "profile": "own.toml",
        "overrides": ["split.pinned=pins.jsonl", f"review.people={tmp_path}/people.csv", "judge.threshold=0.6"],
        "sources": ["jsonl:own.jsonl", f"jsonl:{tmp_path}/own.jsonl", "jsonl:/gone.jsonl"],
        "checksums": {f"{tmp_path}/{name}": file_checksum(Path(name)) for name in ("own.jsonl", "people.csv")},
    }
    shutil.move("W", "moved")
    monkeypatch.chdir("/")
    build = Location(tmp_path / "moved").build
    assert build is not None and build["profile"] == f"{tmp_path}/moved/own.toml"
    assert build["overrides"][:2] == [
        f"split.pinned={tmp_path}/moved/pins.jsonl",
        f"review.people={tmp_path}/people.csv",
    ]
    assert build["sources"][:2] == [f"jsonl:{tmp_path}/moved/own.jsonl", f"jsonl:{tmp_path}/own.jsonl"]


@pytest.mark.parametrize(
    ("name", "option"),
    [("few.jsonl", "--source KIND:PATH"), ("mine.toml", "-p FILE"), ("pins.jsonl", "--set split.pinned=FILE")],
)
def test_a_file_of_the_last_build_that_is_gone_is_named_with_its_checksum_and_the_option_for_another(
    tmp_path: Path, name: str, option: str
) -> None:
    source = starter_file(tmp_path / "few.jsonl", 2)
    profile, pins = shutil.copy(profile_file("embedded"), tmp_path / "mine.toml"), tmp_path / "pins.jsonl"
    pins.write_text("")
    workspace = Workspace.create(tmp_path / "W")
    overrides = [f"split.pinned={pins}"]
    workspace.set_build({"profile": str(profile), "overrides": overrides, "sources": [f"jsonl:{source}"]})
    checksum = file_checksum(tmp_path / name)
    (tmp_path / name).unlink()
    message = (
        f"{tmp_path / name}, of the last build of {workspace}, is gone (SHA-256 {checksum}). Put it back, or name "
    )
    message += f"its new place: quit build -w {workspace} {option}"
    with pytest.raises(InputError) as fault:
        last_build(workspace)
    assert str(fault.value) == message
    assert message in call_quit("build", "-w", workspace, code=3).err
    if option == "-p FILE":
        with pytest.raises(InputError, match="is gone"):
            settings_of(workspace)


@pytest.mark.slow
def test_a_moved_workspace_builds_applies_reviews_and_makes_a_release(few_source: Path, tmp_path: Path) -> None:
    records = [json.loads(line) for line in few_source.read_text(encoding="utf-8").splitlines()]
    quit.build(tmp_path / "W", records, FEW, progress=False)
    before = files_of(tmp_path / "W" / "tables")
    shutil.copytree(tmp_path / "W", tmp_path / "copy")
    moved = Workspace.open(shutil.move(tmp_path / "W", tmp_path / "moved"))
    quit.build(moved.path, progress=False)
    assert files_of(moved.path / "tables") == before, "nothing runs again"
    labels = moved.read("labels")
    sql = "SELECT question_id, answer_key FROM verdicts WHERE correct ORDER BY ALL LIMIT 1"
    [(question_id, key)] = moved.rows(sql, ["verdicts"])
    for workspace in (moved, Workspace.open(tmp_path / "copy")):
        ReviewStore(workspace).append(said("ada", 1, question=question_id, **{key: False}))
        call_quit("review", "apply", "-w", workspace)
        call_quit("release", "create", "-w", workspace, "--name", "v1")
        assert not workspace.read("labels").equals(labels)
    first, second = (files_of(tmp_path / name / "releases") for name in ("moved", "copy"))
    assert first == second
