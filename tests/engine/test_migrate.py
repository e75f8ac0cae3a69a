"""Between versions: steps of the layout, logs that gained columns, tables whose columns changed."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import schemas
from quit.engine.damage import came_out_the_same
from quit.engine.migrate import Step, migrate
from quit.engine.parts import describe, write_part
from quit.engine.workspace import Workspace
from quit.errors import WorkspaceError
from quit.operations.backup import backup, restore
from quit.review.store import ReviewStore
from quit.stages.answers import Answers
from schemas.tables import Column
from tests.answers import with_texts
from tests.report import tiny

NOW = schemas.WORKSPACE_FORMAT


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return tiny.workspace(tmp_path / "W")


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program two versions of the layout ahead, whose reviews have one more column."""
    monkeypatch.setattr(schemas, "WORKSPACE_FORMAT", NOW + 2)
    reviews = schemas.TABLES["reviews"]
    grown = dataclasses.replace(
        reviews, columns=(*reviews.columns, Column("mood", pa.string(), "A mood.", nullable=True))
    )
    monkeypatch.setitem(schemas.TABLES, "reviews", grown)


def _steps(done: list[int]) -> dict[int, Step]:
    def step(version: int) -> Step:
        def run(path: Path) -> None:
            done.append(version)
            (path / f"moved-{version}").write_text("x")

        return Step(f"move {version}", run)

    return {NOW: step(NOW), NOW + 1: step(NOW + 1)}


def test_the_newest_layout_needs_nothing(workspace) -> None:
    plan = migrate(workspace.path)
    assert (plan.found, plan.wanted, plan.steps, plan.logs) == (NOW, NOW, (), {})


def test_steps_are_taken_once_and_in_order(workspace, newer) -> None:
    done: list[int] = []
    dry = migrate(workspace.path, dry_run=True, steps=_steps(done))
    assert done == []
    assert dry.steps == (f"{NOW} -> {NOW + 1}: move {NOW}", f"{NOW + 1} -> {NOW + 2}: move {NOW + 1}")
    migrate(workspace.path, steps=_steps(done))
    assert done == [NOW, NOW + 1]
    assert migrate(workspace.path, steps=_steps(done)).steps == ()
    assert Workspace.open(workspace.path).read("labels").equals(workspace.read("labels"))


def test_a_stop_between_two_steps_is_resumed(workspace, newer) -> None:
    done: list[int] = []
    steps = _steps(done)

    def broken(path: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(workspace.path, steps={**steps, NOW + 1: Step("stops", broken)})
    migrate(workspace.path, steps=steps)
    assert done == [NOW, NOW + 1]


def test_a_layout_without_a_step_says_so(workspace, newer) -> None:
    with pytest.raises(WorkspaceError, match=f"no step from {NOW} to {NOW + 1}"):
        Workspace.open(workspace.path)


def _as_format_1(workspace: Workspace) -> dict[str, list[dict]]:
    """Put the answers' texts into every row, as format 1 had them; returns these rows by stage run."""
    texts = {}
    for run, (folder, manifest) in workspace.current().items():
        if not run.startswith("read:"):
            continue
        parts = []
        texts[run] = []
        for entry in manifest["tables"]["answers"]["parts"]:
            path = folder / "answers" / entry["file"]
            answers = Answers(pq.read_table(path), pq.read_table(folder / "distinct_answers" / entry["file"]))
            replies = answers.distinct.select(["answer", "raw"]).take(pa.array(answers.index))
            keys = answers.rows.select(["question_id", "permutation", "reader", "producer"])
            rows = pa.table(
                {**dict(zip(keys.column_names, keys.columns)), **dict(zip(replies.column_names, replies.columns))}
            )
            rows = rows.select(schemas.table("answers").former_schema.names)
            texts[run] += rows.to_pylist()
            write_part(path, rows.cast(schemas.table("answers").former_schema))
            parts.append(describe(path, "answers"))
        shutil.rmtree(folder / "distinct_answers")
        tables = {"answers": {"rows": manifest["tables"]["answers"]["rows"], "parts": parts}}
        (folder / "manifest.json").write_text(json.dumps({**manifest, "tables": tables}))
    marker = json.loads((workspace.path / "workspace.json").read_text())
    (workspace.path / "workspace.json").write_text(json.dumps({**marker, "format": 1}))
    return texts


def _texts(workspace: Workspace) -> dict[str, list[dict]]:
    return {
        run: with_texts(Answers(workspace.read("answers", runs=[run]), workspace.read("distinct_answers", runs=[run])))
        for run in workspace.current()
        if run.startswith("read:")
    }


KEPT = ("question_id", "permutation", "reader", "producer", "answer")


def _kept(texts: dict[str, list[dict]]) -> dict[str, list[tuple]]:
    return {run: [tuple(row[name] for name in KEPT) for row in rows] for run, rows in texts.items()}


def test_answers_with_texts_become_answers_by_number_under_the_same_fingerprints(tmp_path: Path, capsys) -> None:
    workspace = tiny.workspace(tmp_path / "W", shards=2)
    state = workspace.state
    before = _as_format_1(workspace)
    opened = Workspace.open(workspace.path)
    assert "from format 1 to 2" in capsys.readouterr().err
    assert opened.format == 2 and opened.state == state and opened.damaged() == []
    assert _kept(_texts(opened)) == _kept(before)
    rows = opened.read("answers").to_pylist()
    assert {row["ended"] for row in rows} == {None} and {row["asked"] for row in rows} == {True}


@pytest.mark.parametrize("stop", range(1, 9))
def test_an_upgrade_that_is_killed_anywhere_is_finished_by_the_next(tmp_path: Path, monkeypatch, stop: int) -> None:
    """The second reader's run is stopped at each step of its replacement."""
    workspace = tiny.workspace(tmp_path / "W", shards=2)
    before = _as_format_1(workspace)
    steps = 0

    def counted(function):
        def step(*arguments, **named):
            nonlocal steps
            steps += 1
            if steps == stop:
                raise KeyboardInterrupt
            return function(*arguments, **named)

        return step

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", counted(Path.rename))
        patched.setattr(shutil, "rmtree", counted(shutil.rmtree))
        patched.setattr("quit.engine.migrate.write_part", counted(write_part))
        with pytest.raises(KeyboardInterrupt):
            Workspace.open(workspace.path)
    opened = Workspace.open(workspace.path)
    assert _kept(_texts(opened)) == _kept(before) and opened.damaged() == []
    assert not [path for path in workspace.path.rglob("*") if path.name.endswith((".numbered", ".old"))]


@pytest.mark.parametrize("shards", [1, 2])
def test_a_damaged_part_is_left_to_the_next_build_with_what_rests_on_it(tmp_path: Path, shards: int, capsys) -> None:
    workspace = tiny.workspace(tmp_path / "W", shards=shards)
    before = _as_format_1(workspace)
    folder, manifest = workspace.current()["read:one"]
    first, *others = (folder / "answers" / part["file"] for part in manifest["tables"]["answers"]["parts"])
    first.write_bytes(first.read_bytes()[:-1] + b"x")
    opened = Workspace.open(workspace.path)
    assert "1 parts are damaged or missing" in capsys.readouterr().err
    assert "read:one" not in opened.current()  # unfinished
    assert not first.exists() and all((folder / "distinct_answers" / path.name).exists() for path in others)
    assert _kept(_texts(opened))["read:two"] == _kept(before)["read:two"]
    # Whatever the part is when it is made again, it is taken for another one: what rests on it is made again too.
    (folder / "manifest.json").write_text(json.dumps({**manifest, "tables": {}}))
    assert not came_out_the_same(opened, folder)


def test_what_holds_no_answers_yet_is_upgraded_too(tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    before = _as_format_1(workspace)
    folder, _ = workspace.current()["read:one"]
    (folder.with_name("killed") / "answers").mkdir(parents=True)
    (folder.with_name("torn") / "answers").mkdir(parents=True)
    (folder.with_name("torn") / "manifest.json").write_text("{")
    assert _kept(_texts(Workspace.open(workspace.path))) == _kept(before)
    assert _kept(_texts(Workspace.open(workspace.path))) == _kept(before)


def test_a_folder_can_be_opened_without_being_upgraded(tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    _as_format_1(workspace)
    assert Workspace.open(workspace.path, upgrade=False).format == 1
    backup(Workspace.open(workspace.path, upgrade=False), tmp_path / "W.tar")
    restore(tmp_path / "W.tar", tmp_path / "W2")
    assert Workspace.open(tmp_path / "W2", upgrade=False).format == Workspace(workspace.path).format == 1


def test_reviews_of_an_older_program_are_read_with_the_new_column_empty(workspace, newer, monkeypatch) -> None:
    monkeypatch.setattr(schemas, "WORKSPACE_FORMAT", NOW)
    before = pq.read_table(sorted((workspace.path / "reviews").glob("*.parquet"))[0])
    rows = ReviewStore(workspace).read()
    assert rows.column("mood").null_count == len(rows) == len(before)
    assert rows.select(before.column_names).to_pylist() == before.to_pylist()
    assert workspace.read("reviews").equals(rows)
    with workspace.connect() as connection:
        assert connection.execute("SELECT count(*), count(mood) FROM reviews").fetchone() == (len(rows), 0)
    assert migrate(workspace.path).logs == {"reviews": 1}


def test_reviews_of_a_newer_program_are_refused_by_name(workspace) -> None:
    part = sorted((workspace.path / "reviews").glob("*.parquet"))[0]
    rows = pq.read_table(part)
    pq.write_table(rows.append_column("mood", pa.array(["x"] * len(rows))), part)
    for read in (ReviewStore(workspace).read, lambda: workspace.read("reviews")):
        with pytest.raises(WorkspaceError, match="no column mood: a newer program"):
            read()


def test_another_column_gives_a_stage_and_those_after_it_another_fingerprint(tmp_path, monkeypatch) -> None:
    from quit.engine.planning import plan_build

    source = tmp_path / "s.jsonl"
    source.write_text('{"id": "a", "question": "Who?", "answers": ["x"], "hints": ["h"]}\n')
    before = plan_build(tmp_path / "W", [f"jsonl:{source}"], "embedded", []).fingerprints
    labels = schemas.TABLES["passages"]
    grown = dataclasses.replace(labels, columns=(*labels.columns, Column("more", pa.string(), "More.", nullable=True)))
    monkeypatch.setitem(schemas.TABLES, "passages", grown)
    after = plan_build(tmp_path / "W2", [f"jsonl:{source}"], "embedded", []).fingerprints
    changed = [run for run in before if before[run] != after[run]]
    assert changed[0] == "enumerate"
    assert {"label", "judge"} <= set(changed)
    assert not {"collect", "filter", "rank", "describe", "probe:minilm-late", "split"} & set(changed)
