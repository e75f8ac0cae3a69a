"""The tables of a workspace and a release, and what is refused."""

import csv
import json
import re
from dataclasses import fields
from inspect import isfunction, signature
from pathlib import Path
from typing import Any, get_args

import pytest

import quit
from quit.annotation.reports import PullReport, PushReport
from quit.commands.export import export
from quit.engine.workspace import Workspace
from quit.errors import InputError, SettingsError, WorkspaceError
from quit.export import FORMATS, FineTuning
from quit.library import reviewing
from quit.library.arguments import Format
from quit.library.results import JobResult
from quit.release.freezing import put
from quit.review.apply import ApplyReport
from tests.release import small
from tests.running import call_quit


def test_what_is_no_workspace_and_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        quit.open(tmp_path)
    tables = quit.open(Workspace.create(tmp_path / "W").path)
    assert "labels" in tables and "label" not in tables
    assert "no labelled passages" in tables._repr_html_()
    with pytest.raises(InputError, match="'label'.*Did you mean 'labels'"):
        tables["label"]
    with pytest.raises(InputError, match="DuckDB refuses the query"):
        tables.sql("SELECT nothing FROM labels")
    with pytest.raises(InputError, match="There is no question '7'"):
        tables.question(7)
    with pytest.raises(SettingsError, match="no setting 'judge.treshold'. Did you mean 'judge.threshold'"):
        quit.build(tmp_path / "V", [{"id": "1"}], settings={"judge.treshold": 0.5})
    assert not (tmp_path / "V").exists()
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        quit.opne  # noqa: B018


def test_the_interface_is_all_that_is_listed() -> None:
    names = {"build", "check", "plan", "open", "Tables", "find_leaks", "convergence", "passages", "judge"}
    types = {"Finding", "JudgeItem", "Prompt", "Reply", "Ruling", "SourceCheck", "Story", "Verdict"}
    types |= {"ApplyReport", "ExportResult", "Plan", "PullReport", "PushReport", "ReleaseFacts", "ReviewStatus"}
    assert {*dir(quit)} == {*quit.__all__, "__version__"} == names | types | {"errors", "evaluate_run", "__version__"}
    assert get_args(Format) == tuple(FORMATS)
    assert all(getattr(quit, name).__doc__ for name in quit.__all__)
    public = [getattr(quit, name) for name in quit.__all__]
    public += [value for name, value in vars(quit.Tables).items() if not name.startswith("_")]
    returned = " ".join(signature(value).return_annotation for value in public if isfunction(value))
    assert {*re.findall(r"(?<![.\w])[A-Z]\w+", returned)} - {"Any", "None", "Path"} <= {*quit.__all__}


def test_options_of_an_export_have_one_default_and_its_help_names_every_format() -> None:
    assert f"Formats: {', '.join(FORMATS)}." in " ".join(export.__doc__.split())
    tuning = FineTuning()
    jobs_own, commands = (signature(each).parameters for each in (quit.Tables.export, export))
    names = {field.name: field.name for field in fields(tuning)} | {"kind": "negative_kind"}
    for field, name in names.items():
        assert jobs_own[name].default == commands[name].default == getattr(tuning, field)


REVIEW_CALLS = [
    (
        lambda tables: tables.review_push("http://studio", project=3, settings={"review.overlap": 2}),
        ("review_sync", "push", {"url": "http://studio", "project": 3, "settings": ["review.overlap=2"]}),
        PushReport(project=3, new=4, problems=["one"]),
    ),
    (
        lambda tables: tables.review_push(new_project=True, repair=True),
        ("review_sync", "push", {"url": "", "project": 0, "new_project": True, "repair": True, "settings": []}),
        PushReport(created=True),
    ),
    (
        lambda tables: tables.review_pull(full=True, accept_withdrawals=True),
        ("review_sync", "pull", {"url": "", "project": 0, "full": True, "accept_withdrawals": True}),
        PullReport(rows=7, part="0001.parquet"),
    ),
    (
        lambda tables: tables.review_apply(withdraw=True, settings=["review.minimum=2"]),
        ("label_update", "update", {"withdraw": True, "settings": ["review.minimum=2"]}),
        ApplyReport(ran=True, labels_up=2, now={"labels_up": 2}),
    ),
]
"""Methods of ``Tables`` that change a review: the job that each calls, its arguments, and what the method returns."""


@pytest.mark.parametrize(("call", "job", "report"), REVIEW_CALLS)
def test_steps_of_a_review_are_those_of_its_jobs(call, job, report, tmp_path: Path, monkeypatch) -> None:
    name, step, expected = job
    tables = quit.open(Workspace.create(tmp_path / "W").path)
    real, arguments = signature(getattr(reviewing, name)), {}

    def stub(*positions: Any, **names: Any) -> JobResult:
        arguments.update(real.bind(*positions, **names).arguments)
        return JobResult({step: report})

    monkeypatch.setattr(reviewing, name, stub)
    assert call(tables) == report
    assert arguments.items() >= expected.items()
    assert [*arguments.get("steps", ["update"])] == [step] and str(arguments["workspace"]) == str(tmp_path / "W")


def test_a_release_has_no_review_and_says_what_it_is(tmp_path: Path) -> None:
    frozen = small.freeze(tmp_path / "v1", small.rows())
    release = quit.open(frozen.path)
    assert release.facts == quit.ReleaseFacts(str(tmp_path / "v1"), frozen.name, frozen.content_id)
    for step in (release.review_push, release.review_pull, release.review_apply):
        with pytest.raises(WorkspaceError, match="is a release"):
            step()


def _sorted_passages(table) -> list[dict]:
    return sorted(table.to_pylist(), key=lambda row: (row["question_id"], row["permutation"]))


def test_the_view_of_passages_has_what_passages_gives(tmp_path: Path) -> None:
    rows = small.rows()
    question, valid = rows["questions"][0], rows["valid_answers"][0]
    question["answers"].insert(0, "Z, its other name")  # valid answers come in the order of the gold ones, these first
    others = [(question["answers"][0], "gold"), ("A", "labeler"), ("É", "labeler"), ("b", "review"), ("C", "review")]
    others = [{**valid, "answer": text, "answer_key": text.lower(), "origin": origin} for text, origin in others]
    rows["valid_answers"][:1] = [others[0], valid, *others[1:]]
    release = quit.open(small.freeze(tmp_path / "v1", rows).path)
    assert "<td>test</td>" in release._repr_html_()
    for split in ("train", "dev", "test"):
        rows = _sorted_passages(release.passages(split).read_all())
        view = release.sql(f"SELECT * FROM labelled_passages WHERE split = '{split}'")
        assert rows and rows == _sorted_passages(view)
    one = release.passages().read_all().to_pylist()[-1]
    life = release.question(one["question_id"])
    assert one["question"] == life["question"]["question"]
    assert one["text"] in {passage["text"] for passage in life["passages"]}
    duck = release.duckdb()  # DuckDB asks for a cursor per thread
    for name in (*release.names, "labelled_passages"):
        assert (
            duck.cursor().sql(f"SELECT count(*) FROM {name}").fetchall()
            == duck.sql(f"SELECT count(*) FROM {name}").fetchall()
        )
    count = call_quit("query", "-w", tmp_path / "v1", "--csv", "SELECT count(text) AS texts FROM labelled_passages")
    assert count.out.split() == ['"texts"', str(len(release.arrow("labels")))]


def test_the_current_folder_is_a_release_like_any_other_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small.freeze(tmp_path / "v1", small.rows()).path)
    release = quit.open(".")
    assert release.report(progress=False) == tmp_path / "v1.html" and (tmp_path / "v1.html").is_file()
    inside = next(path for path in Path.cwd().iterdir() if path.is_dir())
    monkeypatch.chdir(inside)
    (tmp_path / "v1.html").unlink()
    assert quit.open("..").report(progress=False) == tmp_path / "v1.html" and (tmp_path / "v1.html").is_file()
    monkeypatch.chdir("..")
    for out in (".", "/"):
        with pytest.raises(WorkspaceError, match="^Could not write"):
            release.report(out, progress=False)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(WorkspaceError, match="^Could not write"):
        put(Path(), lambda folder: small.freeze(folder, small.rows()).facts)


def test_what_is_open_stays_open_in_another_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release_path = small.freeze(tmp_path / "v1", small.rows()).path
    workspace_path = Workspace.create(tmp_path / "W").path
    monkeypatch.chdir(tmp_path)
    release, workspace = quit.open("v1"), quit.open("W")
    assert (repr(release), repr(workspace)) == ("<release v1>", "<workspace W>")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert (repr(release), repr(workspace)) == (f"<release {release_path}>", f"<workspace {workspace_path}>")
    assert release["labels"].equals(quit.open(release_path)["labels"]) and release.passages().read_all().num_rows
    with pytest.raises(InputError, match="W has not been built yet"):
        workspace.export("csv", tmp_path / "exports", progress=False)


def test_what_is_no_number_is_null_in_json(tmp_path: Path) -> None:
    place = small.freeze(tmp_path / "v1", small.rows()).path
    sql = "SELECT 'nan'::float AS a, ['-inf'::float, 0.5] AS b, 'NaN' AS c"
    printed = call_quit("query", "-w", place, "--json", sql).out
    assert json.loads(printed, parse_constant=pytest.fail) == [{"a": None, "b": [None, 0.5], "c": "NaN"}]
    (row,) = csv.DictReader(call_quit("query", "-w", place, "--csv", sql).out.splitlines())
    assert json.loads(row["b"], parse_constant=pytest.fail) == [None, 0.5]


def test_query_prints_what_json_and_csv_lack(tmp_path: Path) -> None:
    place = small.freeze(tmp_path / "v1", small.rows()).path
    sql = """SELECT ['a', 'b"c'] AS names, NULL::int[] AS none, 7::hugeint AS whole, date '2026-01-02' AS day"""
    (row,) = csv.DictReader(call_quit("query", "-w", place, "--csv", sql).out.splitlines())
    assert row == {"names": '["a", "b\\"c"]', "none": "", "whole": "7", "day": "2026-01-02"}
    printed = call_quit("query", "-w", place, "--json", sql).json()
    assert printed == [{"names": ["a", 'b"c'], "none": None, "whole": 7, "day": "2026-01-02"}]
    of_one_name = "SELECT 'left' AS a, 'right' AS a, 'last' AS b"
    assert call_quit("query", "-w", place, "--json", of_one_name).json() == [{"a": "left", "a_1": "right", "b": "last"}]
    assert call_quit("query", "-w", place, of_one_name).out.split() == ["a", "a_1", "b", "left", "right", "last"]
    heads = 'SELECT 1 AS "x[/b]", 2 AS "[red]n", [3][1] AS "a[i]"'  # no marks of style
    assert call_quit("query", "-w", place, heads).out.split() == ["x[/b]", "[red]n", "a[i]", "1", "2", "3"]
