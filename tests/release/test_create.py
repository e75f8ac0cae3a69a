"""Releases of a built workspace: reproducible, refused by gates, whole or absent after a kill, compared across a
review."""

import os
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quit.dataset.dataset import Dataset
from quit.dataset.release import Release, releases_of, verify
from quit.dataset.workspace import dataset_of
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.errors import GateError, InputError, SettingsError, WorkspaceError
from quit.export import export
from quit.flows.review import label_update
from quit.release.create import create
from quit.release.gates import check, with_release_settings
from quit.release.subjects import subject_of_release
from quit.review.store import ReviewStore
from tests.comparing import files_of
from tests.running import call_quit, killed_at
from tests.stages.labelling.test_verdicts import said

pytestmark = pytest.mark.slow


def _create(workspace: Workspace, name: str, out: Path | None = None, **options) -> Release:
    return create(last_build(workspace), name, out, **options).release


def test_the_same_workspace_gives_the_same_bytes_wherever_it_lies(workspace, built, tmp_path) -> None:
    other = Workspace.open(shutil.copytree(built, tmp_path / "elsewhere"))
    one, two = _create(workspace, "v1"), _create(other, "v1", tmp_path / "out" / "frozen")
    assert one.path == workspace.path / "releases" / "v1"
    assert files_of(one.path) == files_of(two.path)
    assert str(tmp_path) not in (one.path / "release.json").read_text()
    again = create(last_build(workspace), "v1")
    assert not again.new and again.release.content_id == one.content_id
    assert [release.name for release in releases_of(workspace)] == ["v1"]
    assert sorted(os.listdir(workspace.path / "releases")) == ["v1"]


def test_a_release_holds_what_the_workspace_holds_and_exports_alike(workspace: Workspace, tmp_path: Path) -> None:
    release = _create(workspace, "v1")
    for name in ("splits", "labels", "valid_answers", "verdicts"):
        assert pq.read_table(release.path / "tables" / f"{name}.parquet").equals(workspace.read(name))
    total = release.facts["statistics"]["summary"][-1]
    assert total["passages"] == len(workspace.read("labels")) == 325 * total["questions"]
    assert total["answer_containment"] == 0
    formats = ["huggingface", "release-json"]
    export(Dataset.of_release(release.path), formats, tmp_path / "a")
    export(dataset_of(last_build(workspace)), formats, tmp_path / "b")
    one, two = files_of(tmp_path / "a"), files_of(tmp_path / "b")
    of_release = {f"huggingface/{name}" for name in ("README.md", "croissant.json", "manifest.json", "settings.json")}
    of_release.add("release-json/manifest.json")  # all of these name the release
    assert one.keys() == two.keys() and {name for name in one if one[name] != two[name]} == of_release


def test_the_card_of_the_build_is_in_the_release_and_no_part_of_its_content(workspace: Workspace) -> None:
    plain = _create(workspace, "v1")
    build = workspace.build or {}
    workspace.set_build({**build, "overrides": [*build["overrides"], 'card.name="Rivers"', "card.licence=mit"]})
    named = _create(workspace, "v2")
    assert named.facts["card"] == {"name": "Rivers", "licence": "mit"} and "card" not in plain.facts
    assert named.content_id == plain.content_id
    assert named.card.name == "Rivers" and plain.card.given == {}
    again = create(last_build(workspace), "v1")
    assert not again.new and again.note == "The release keeps the card of its build; use quit export --card FILE."
    assert create(last_build(workspace), "v2").note == "" and "card" not in again.release.facts


def test_gates_refuse_and_a_waiver_is_written_down(workspace: Workspace) -> None:
    pipeline = last_build(workspace)
    strict = with_release_settings(pipeline.settings, ["release.human_coverage=0.5"])
    with pytest.raises(GateError, match="human-coverage"):
        create(pipeline, "v1", settings=strict)
    assert not (workspace.path / "releases" / "v1").exists()
    release = create(pipeline, "v1", settings=strict, waivers={"human-coverage": "a trial"}).release
    waivers = {gate["gate"]: gate["waiver"] for gate in release.facts["gates"] if gate["waiver"]}
    assert waivers == {"human-coverage": "a trial"}
    assert [one.gate for one in check(subject_of_release(release)) if one.state != "passed"] == ["human-coverage"]


def test_annotations_of_a_question_that_changed_are_said(workspace: Workspace) -> None:
    question = workspace.read("splits")["question_id"][0].as_py()
    rows = [*said("ada", 1, question=question, x=True), *said("ada", 2, question="gone", x=True)]
    ReviewStore(workspace).append([{**row, "content": "of another text"} for row in rows])
    label_update(str(workspace.path), False)
    status = call_quit("review", "status", "-w", str(workspace.path)).out
    assert "Set aside: 2 annotations of questions that had another text or other gold answers." in status
    assert f"Or have {question} judged again" in status
    result = call_quit("release", "check", "-w", str(workspace.path))
    assert result.err.count("2 annotations are set aside") == 1
    facts = _create(workspace, "v1").facts
    assert facts["content"]["reviews"]["set_aside"] == 2 and "verification" not in facts


def test_targets_that_must_not_be_overwritten(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    for target in (tmp_path / "full", tmp_path / "file"):
        with pytest.raises(InputError, match="choose another path"):
            _create(workspace, "v1", target)
    with pytest.raises(SettingsError, match="cannot name a release"):
        _create(workspace, "../v1")
    with pytest.raises(WorkspaceError, match="Could not write"):
        _create(workspace, "v1", tmp_path / "file" / "below")
    assert (tmp_path / "full" / "mine.txt").read_text() == "x"


def test_a_killed_create_leaves_nothing_that_looks_complete(workspace: Workspace) -> None:
    command = ("release", "create", "-w", workspace.path, "--name", "v1")
    with killed_at("quit.release.freezing", "write_json", workspace.path.parent, *command):
        pass
    assert [*(workspace.path / "releases").glob(".v1.*.partial")] and releases_of(workspace) == []
    verify(_create(workspace, "v1").path)
    assert sorted(os.listdir(workspace.path / "releases")) == ["v1"]


def test_what_the_commands_say_of_a_gate_and_of_a_release_that_is_there(workspace: Workspace) -> None:
    where = ["-w", str(workspace.path)]
    call_quit("release", "check", *where, "--set", "release.human_coverage=0.5", code=8)
    call_quit("release", "create", *where, "--name", "v1")
    assert "nothing to do" in call_quit("release", "create", *where, "--name", "v1").out
    [row] = call_quit("release", "list", *where, "--json").json()
    shown = call_quit("release", "show", str(workspace.path / "releases" / "v1")).out
    assert row["name"] == "v1" and re.search(r"passages that hold an answer( +0\.0000)+\n", shown)
