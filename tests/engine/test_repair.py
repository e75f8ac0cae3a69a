"""Files of a workspace that were lost, cut short, altered or left half written: what is found, what is refused, what is
kept."""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit import contracts
from quit.common.files import temporary_of
from quit.common.ranges import WHOLE
from quit.engine import parts
from quit.engine.execution import execution
from quit.engine.location import CHANGING
from quit.engine.logs import Log
from quit.engine.pipeline import Pipeline
from quit.engine.planning import locked_last_build
from quit.engine.repair import discard_damaged
from quit.engine.usage import record, totals
from quit.engine.workspace import Workspace
from quit.errors import InputError, WorkspaceError
from quit.models.generation.meter import Count
from quit.report.data import gather
from quit.review.audit import draw_audit
from quit.review.overrides import Decision, add
from quit.review.store import ReviewStore
from quit.settings import load
from quit.sources import read_sources
from tests.building import plan_build
from tests.comparing import files_of
from tests.release import small
from tests.report import tiny
from tests.rows import table_of
from tests.running import call_quit


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return tiny.workspace(tmp_path / "W", shards=2)


def flip(path: Path) -> None:
    """Change one bit, and neither size nor time."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


DAMAGE = pytest.mark.parametrize("damage", [flip, truncate, Path.unlink])


def _part(workspace: Workspace, table: str) -> Path:
    return sorted(workspace.path.glob(f"tables/*/*/{table}/part-*"))[0]


@DAMAGE
def test_no_reader_trusts_a_part_that_is_not_what_its_manifest_says(workspace, damage) -> None:
    assert len(workspace.read("labels"))  # what was read before counts for nothing once the file has changed
    part = _part(workspace, "labels")
    damage(part)
    for read in (
        lambda: workspace.read("labels"),
        lambda: workspace.read("labels", question_ids=["q1"], columns=["question_id"]),
        workspace.connect,
        lambda: gather(workspace, tiny.settings()),
    ):
        with pytest.raises(WorkspaceError, match=rf"{part} (is missing|was changed)[^\n]*quit build -w"):
            read()
    workspace.connect(tables=["questions"]).close()  # what others need is still there
    assert workspace.damaged() == [part]


def _change_the_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3] + b"?R1")


@pytest.mark.parametrize(
    ("damage", "finished"),
    [(flip, True), (truncate, True), (Path.unlink, True), (truncate, False), (_change_the_end, False)],
)
def test_what_a_stage_run_lost_is_forgotten_and_named(workspace: Workspace, damage, finished: bool) -> None:
    folder = next(workspace.path.glob("tables/*_label/f0"))
    if not finished:
        (folder / "manifest.json").unlink()
    lost, kept = sorted((folder / "labels").iterdir())
    assert discard_damaged(workspace, folder, ["labels"]) == []
    damage(lost)
    (line,) = discard_damaged(workspace, folder, ["labels"])
    assert line.startswith("labels/part-00000-of-00002.parquet ")
    assert workspace.manifest(folder) is None and sorted((folder / "labels").iterdir()) == [kept]


@pytest.fixture
def finished(tmp_path: Path, small_source: Path) -> Pipeline:
    source = shutil.copy(small_source, tmp_path / "mine.jsonl")
    pipeline = plan_build(tmp_path / "P", source=source, profile="embedded")
    pipeline.begin()
    for run in pipeline.runs:
        _finish(pipeline, run)
    assert pipeline.up_to_date
    return pipeline


def _finish(pipeline: Pipeline, run: object, **other: pa.Table) -> None:
    tables = {name: contracts.table(name).schema.empty_table() for name in run.stage.outputs}
    pipeline.workspace.write_part(pipeline.folder(run), WHOLE, tables | other)
    pipeline.__dict__["shards"] = lambda _: [WHOLE]
    pipeline.finish(run)


def test_a_build_takes_up_only_the_stage_that_lost_a_part(finished: Pipeline) -> None:
    before = files_of(finished.workspace.path / "tables")
    truncate(_part(finished.workspace, "descriptions"))
    (line,) = finished.discard_damaged()
    assert line.startswith("describe: ") and "descriptions/part-00000-of-00001.parquet" in line
    assert [run.key for run in finished.runs if not finished.is_done(run)] == ["describe"]
    _finish(finished, finished.stage_run("describe"))
    assert finished.up_to_date and files_of(finished.workspace.path / "tables") == before


def test_a_build_describes_the_parts_of_a_damaged_manifest_again_and_keeps_none_of_another_run(finished) -> None:
    before, run = files_of(finished.workspace.path / "tables"), finished.stage_run("describe")
    folder, manifest = finished.folder(run), finished.folder(run) / "manifest.json"
    whole = manifest.read_text()
    manifest.write_text("[")
    (line,) = finished.discard_damaged()
    assert line.startswith(f"describe: {manifest} cannot be read") and "\n" not in line
    assert finished.pending(run) == []
    finished.finish(run)
    assert finished.up_to_date and files_of(finished.workspace.path / "tables") == before
    facts = json.loads(whole)
    facts["tables"]["descriptions"]["rows"] -= 1
    manifest.write_text(json.dumps(facts))
    with pytest.raises(WorkspaceError, match="was altered. Build it again"):
        finished.workspace.manifest(folder)
    assert len(finished.discard_damaged()) == 1
    finished.finish(run)
    assert finished.up_to_date and files_of(finished.workspace.path / "tables") == before
    manifest.write_text("[")
    truncate(part := next((folder / "descriptions").glob("*.parquet")))
    _, line = finished.discard_damaged()  # a disk that lost both
    assert part.name in line and not part.exists()
    _finish(finished, run)
    manifest.write_text(whole.replace(folder.name, "0" * 16))
    with pytest.raises(WorkspaceError, match="is of another run"):
        finished.workspace.manifest(folder)
    (line,) = finished.discard_damaged()
    assert line.startswith(f"describe: {manifest} is of another run")
    assert not list(folder.rglob("*.parquet")) and not finished.up_to_date


def test_stages_that_rest_on_a_part_that_came_out_otherwise_run_again(finished: Pipeline) -> None:
    _part(finished.workspace, "splits").unlink()
    finished.discard_damaged()
    rows = table_of("splits", small.rows()["splits"][:1])
    _finish(finished, finished.stage_run("split"), splits=rows)
    left = {run.key.partition(":")[0] for run in finished.runs if not finished.is_done(run)}
    assert "enumerate" in left and "label" in left and "describe" not in left
    assert not list(finished.workspace.path.glob("tables/*_enumerate/*/passages/*"))


def test_tables_of_other_settings_that_rest_on_a_replaced_table_are_made_again(finished: Pipeline, monkeypatch) -> None:
    source, part = finished.sources[0].path, _part(finished.workspace, "splits")
    other = plan_build(finished.workspace.path, "labels.temperature=0.5", source=source, profile="embedded")
    for run in other.runs:
        _finish(other, run)
    split, read = other.stage_run("split"), next(run for run in other.runs if run.stage.name == "read")
    assert other.up_to_date and other.folder(split) == finished.folder(split)
    part.unlink()
    finished.discard_damaged()
    finished.begin()
    assert other.is_done(read), "the splits may come out as they were"
    for run in finished.runs:
        _finish(finished, run, **({"splits": table_of("splits", small.rows()["splits"][:1])} if run == split else {}))
    assert finished.up_to_date
    update = other.stage_run("update")
    assert other.is_done(read), "the passages came out as they were"
    assert not other.is_done(update) and [*other.folder(update).rglob("*.parquet")]
    removals: list[Path] = []

    def interrupted(paths: Iterable[Path]) -> None:
        removals.append(next(iter(paths)))
        removals[0].unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, execution(other) as carry_out, pytest.raises(KeyboardInterrupt):
        patch.setattr("quit.engine.workspace.remove_files", interrupted)
        carry_out._waiting([update])
    assert removals and [*other.folder(update).rglob("*.parquet")]
    other.discard_damaged()
    with execution(other) as carry_out:
        assert len(carry_out._waiting([update])) == 1
    assert not [*other.folder(update).rglob("*.parquet")], "a kill leaves no stale part that counts as new"


def test_a_resumed_build_never_shows_finished_stages_as_unfinished(finished: Pipeline, monkeypatch) -> None:
    workspace, seen = finished.workspace, []
    (finished.folder(finished.stage_run("describe")) / "manifest.json").unlink()
    whole, written = set(workspace.state), workspace.put_json

    def watch(name: str, value: dict) -> None:
        written(name, value)
        seen.extend([set(value)] if name == "state.json" else [])

    monkeypatch.setattr(workspace, "put_json", watch)
    finished.begin()
    for run in finished.runs:
        _finish(finished, run) if run.key == "describe" else finished.finish(run)
    assert seen == [whole - {"describe"}, whole] and list(workspace.state) == list(finished.fingerprints)


# Logs: what people decided


def _override(workspace: Workspace, hint: str, by: str) -> None:
    add(workspace, [Decision(hint, "leak", by, "it says so")])


def test_a_log_is_numbered_after_its_last_part_and_replaces_nothing(workspace: Workspace, monkeypatch) -> None:
    log = Log(workspace, "overrides")
    for by in ("ada", "bob", "cy"):
        _override(workspace, "q1-h01", by)
    first, _, third = log.files
    kept = third.read_bytes()
    first.unlink()
    _override(workspace, "q1-h01", "dee")
    assert [path.name for path in log.files] == [f"part-0000{number}.parquet" for number in (2, 3, 4)]
    assert third.read_bytes() == kept and log.read().column("by").to_pylist() == ["bob", "cy", "dee"]
    theirs, written = third.with_name("part-00005.parquet"), parts.write_part

    def slow(target: Path, rows: pa.Table, schema: pa.Schema) -> None:
        written(target, rows, schema)
        theirs.write_bytes(b"theirs")  # of a writer that does not know our lock

    monkeypatch.setattr(parts, "write_part", slow)
    with pytest.raises(WorkspaceError, match=r"part-00005.parquet was written .* meanwhile"):
        _override(workspace, "q1-h01", "ada")
    assert theirs.read_bytes() == b"theirs"


@pytest.mark.parametrize("log", ["overrides", "reviews"])
def test_a_damaged_log_is_refused_and_stays_and_no_bit_of_it_can_change_what_it_says(workspace, log: str) -> None:
    _override(workspace, "q1-h01", "ada")
    (part,) = (workspace.path / log).glob("part-*.parquet")
    whole, rows = part.read_bytes(), workspace.read(log)
    truncate(part)
    with pytest.raises(WorkspaceError, match=rf"{part} cannot be read[^\n]*cannot be rebuilt: take it"):
        workspace.connect()
    with pytest.raises(WorkspaceError, match=str(part)):
        ReviewStore(workspace).read() if log == "reviews" else _override(workspace, "q1-h00", "bob")
    assert [path.read_bytes() for path in (workspace.path / log).glob("part-*")] == [whole[:-7]]
    refused = 0
    for place in range(0, len(whole), len(whole) // 150):
        part.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        try:
            assert workspace.read(log).equals(rows)  # a bit that says nothing
        except WorkspaceError as error:
            assert str(part) in str(error)
            refused += 1
    assert refused > 75


@pytest.mark.parametrize("table", ["reviews", "labels"])
def test_too_little_memory_is_not_taken_for_damage(workspace: Workspace, table: str, monkeypatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("Unknown error: Failed to launch worker thread: Resource temporarily unavailable")

    for name in ("read", "iter_batches"):
        monkeypatch.setattr(pq.ParquetFile, name, fail)
    with pytest.raises(WorkspaceError, match="too little memory") as error:
        workspace.read(table)
    assert "cannot be read" not in str(error.value)


# What killed runs leave


def test_leftovers_are_ignored_and_removed_by_the_next_run(workspace: Workspace) -> None:
    folder = workspace.path
    assert {"state.json", "build.json", "reviews/applied.json"} <= {*CHANGING}
    for name in (*CHANGING, "workspace.json", "lock.json", "tables/10_label/a.parquet"):
        temporary_of(folder / name).write_text("half")
    other = temporary_of(folder / "report.html")  # no run's, and perhaps being written at this moment
    other.write_text("half")
    with workspace.lock(0):
        assert [path.name for path in folder.rglob(".*")] == [other.name]
    (folder / "overrides").mkdir()
    for log in ("overrides", "reviews"):
        temporary_of(folder / log / "part-00001.parquet").write_text("half")
    _override(workspace, "q1-h01", "ada")
    ReviewStore(workspace).append([{**row, "review_id": "other"} for row in tiny.reviews()])
    assert [path.name for path in folder.rglob(".*")] == [other.name]


# Small files of the wrong shape


WRONG = {
    "state.json": ["[]", '{"filter": 3}', "null", '"x"', "[" * 100_000],
    "build.json": ["[]", '{"profile": "embedded"}', '{"profile": 1, "overrides": 2, "sources": 3}'],
    "workspace.json": ["[]", '{"format": "1"}', '{"format": true}', "{", '{"format": 1e999}'],
    "tables/10_label/f0/manifest.json": ["[]", '{"tables": []}', '{"tables": {"labels": {"parts": [3]}}}'],
    "reviews/applied.json": ["[]", '{"parts": 3}'],
    "reviews/project.json": ['{"id": 3}', '{"key": "k", "folder": 3}', '{"key": "k", "tasks": 4}'],
    "reviews/sync.json": ["[]", '{"problems": 3}', '{"seen": {"1": 2}}'],
    "reviews/audit.json": ['{"size": 5}', '{"size": 5, "numbers": 3, "versions": {}, "labelers": [], "sample": [{}]}'],
    "usage.jsonl": ["[]", '{"requests": 3}', '{"model": "m", "requests": "many"}', '{"model": "m", "seconds": 1e999}'],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_small_file_of_the_wrong_shape_is_one_line_that_names_it(workspace: Workspace, name: str) -> None:
    def read_all() -> None:
        opened = Workspace.open(workspace.path)
        store, settings = ReviewStore(opened), load("embedded", ["review.audit=5"]).settings
        _ = opened.build, opened.state, opened.current(), store.applied, store.project, store.sync, totals(opened.path)
        draw_audit(opened, settings)

    for text in WRONG[name]:
        (workspace.path / name).write_text(text + "\n")
        with pytest.raises(WorkspaceError, match=rf"{name}[^\n]*(is damaged|cannot be read)[^\n]*$"):
            read_all()
    if name == "state.json":  # reading a pipe would wait for ever
        (workspace.path / name).unlink()
        os.mkfifo(workspace.path / name)
        with pytest.raises(WorkspaceError, match="a pipe"):
            read_all()


def test_use_is_counted_after_a_line_that_was_cut_short(tmp_path: Path) -> None:
    counts = {"m": Count(requests=1)}
    for _ in range(2):
        record(tmp_path, "read:m", {}, counts, load().settings)
    path = tmp_path / "usage.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    record(tmp_path, "read:m", {}, counts, load().settings)
    assert totals(tmp_path)["m"].requests == 2 and path.read_text().count("\n") == 3


# Sources that change while they are read


def test_a_source_that_changes_while_it_is_collected_is_refused(finished: Pipeline) -> None:
    source = finished.sources[0].path
    planned, before = source.read_bytes(), source.stat()
    source.write_bytes(planned + planned.splitlines()[0] + b"\n")
    with pytest.raises(InputError, match=rf"{source} has changed since this run was planned.*again"):
        finished.run_shard(finished.runs[0], WHOLE)
    source.write_bytes(planned)
    finished.run_shard(finished.runs[0], WHOLE)
    records = read_sources(finished.sources, finished.source_checksums)
    next(records)
    source.write_bytes(b"{}")  # it changes and comes back while it is read
    source.write_bytes(planned)
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(InputError, match="has changed"):
        list(records)


# Changes to what the next build is made of


def test_build_json_changes_only_under_the_lock_and_keeps_what_a_build_wrote_meanwhile(finished, monkeypatch) -> None:
    real = Workspace.lock

    def lock(workspace: Workspace, *arguments: object) -> object:
        workspace.set_build({**workspace.build, "overrides": ["run.workers=2"]})  # a build that had the lock until now
        return real(workspace, *arguments)

    finished.begin()
    monkeypatch.setattr(Workspace, "lock", lock)
    with locked_last_build(finished.workspace.path, ["review.minimum=2"]) as changed:
        assert finished.workspace.build["overrides"] == ["run.workers=2", "review.minimum=2"]
        assert changed.settings.run.workers == 2 and changed.settings.review.minimum == 2


@pytest.mark.slow
def test_a_pull_waits_for_a_build(finished, monkeypatch) -> None:
    finished.begin()
    finished.workspace.set_build({**finished.workspace.build, "overrides": ["run.lock_seconds=0.1"]})
    asked = lambda *_: pytest.fail("a server was asked while a build ran")  # noqa: E731
    monkeypatch.setattr("quit.annotation.client.connect", asked)
    with finished.workspace.lock(0):
        stopped = call_quit("review", "pull", "-w", finished.workspace.path, code=WorkspaceError.exit_code)
    assert "still holds" in stopped.err
