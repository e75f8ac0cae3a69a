"""Between versions: steps of the layout, logs that gained columns, tables whose columns changed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import schemas
from quit.engine.workspace import Workspace
from quit.errors import WorkspaceError
from quit.operations.migrate import Step, migrate
from quit.review.store import ReviewStore
from schemas.tables import Column
from tests.report import tiny


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return tiny.workspace(tmp_path / "W")


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program two versions of the layout ahead, whose reviews have one more column."""
    monkeypatch.setattr(schemas, "WORKSPACE_FORMAT", 3)
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

    return {1: step(1), 2: step(2)}


def test_the_newest_layout_needs_nothing(workspace) -> None:
    plan = migrate(workspace.path)
    assert (plan.found, plan.wanted, plan.steps, plan.logs) == (1, 1, (), {})


def test_an_older_layout_is_refused_until_it_is_migrated(workspace, newer) -> None:
    with pytest.raises(WorkspaceError, match=r"has format 1, this program's is 3.*quit workspace migrate -w"):
        Workspace.open(workspace.path)
    done: list[int] = []
    dry = migrate(workspace.path, dry_run=True, steps=_steps(done))
    assert done == []
    assert dry.steps == ("1 -> 2: move 1", "2 -> 3: move 2")
    migrate(workspace.path, steps=_steps(done))
    assert done == [1, 2]
    assert migrate(workspace.path, steps=_steps(done)).steps == ()
    assert Workspace.open(workspace.path).read("labels").equals(workspace.read("labels"))


def test_a_stop_between_two_steps_is_gone_on_from(workspace, newer) -> None:
    done: list[int] = []
    steps = _steps(done)

    def broken(path: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(workspace.path, steps={**steps, 2: Step("stops", broken)})
    migrate(workspace.path, steps=steps)
    assert done == [1, 2]


def test_a_layout_without_a_step_says_so(workspace, newer) -> None:
    with pytest.raises(WorkspaceError, match="no step from 1 to 2"):
        migrate(workspace.path)


def test_reviews_of_an_older_program_are_read_with_the_new_column_empty(workspace, newer, monkeypatch) -> None:
    monkeypatch.setattr(schemas, "WORKSPACE_FORMAT", 1)
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
    assert not {"collect", "filter", "rank", "describe", "probe", "split"} & set(changed)
