"""A workspace behind a URL: what one machine writes another reads, and nothing is lost or trusted blindly."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from quit.common.ranges import Range, ranges
from quit.engine.damage import discard_damaged
from quit.engine.logs import Log
from quit.engine.workspace import Workspace
from quit.errors import WorkspaceError
from quit.operations.backup import backup, restore
from quit.review.store import ReviewStore
from tests.rows import table_of
from tests.running import together
from tests.store.conftest import FOLDER, hints, opened, store

FOLDER_KEY = "tables/02_filter/f0"


def _key(index: int, count: int) -> str:
    return f"{FOLDER_KEY}/usable_hints/part-{index:05d}-of-{count:05d}.parquet"


def _parts(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in workspace.path.glob("tables/*/*/*/part-*"))


@pytest.fixture
def there(place: str, machine) -> Workspace:
    """A finished stage of three parts, as another machine opens it."""
    store(Workspace.create(place), [[0, 1], [2, 3], [4, 5]])
    machine("second")
    return opened(place)


def test_another_machine_reads_what_was_written_and_fetches_no_more_than_it_reads(place: str, there: Workspace) -> None:
    assert there.state == {"filter": "f0"} and list(there.current()) == ["filter"]
    assert _parts(there) == []
    some = there.read("usable_hints", Range(1, 3, "q002", "q004"))
    assert some.equals(hints(2, 3)) and _parts(there) == ["part-00001-of-00003.parquet"]
    with there.connect(tables=["rejects"]) as connection:
        assert connection.execute("SELECT count(*) FROM rejects").fetchone() == (0,)
    assert len(_parts(there)) == 1
    with there.connect() as connection:
        assert connection.execute("SELECT count(*), max(question_id) FROM usable_hints").fetchone() == (6, "q005")
    assert there.damaged() == [] and str(there) == there.address == place and there.name == "W"


def test_there_is_no_workspace_before_it_is_made_and_none_among_other_things(place: str, machine) -> None:
    message = f"{place} is not a workspace. Name another folder, or build it: quit build -w {place}"
    with pytest.raises(WorkspaceError, match=message):
        Workspace.open(place)
    objects = Workspace(place).store.objects
    objects.write("locks/probe-1", b"of a run that was killed here")
    assert not list(Workspace(place).store.below(Workspace(place).path))
    objects.delete(["locks/probe-1"])
    objects.write("holiday.jpg", b"sea")
    with pytest.raises(WorkspaceError, match="holds other files"):
        Workspace.create(place)
    assert list(objects.listing()) == ["holiday.jpg"]
    objects.write("workspace.json", b'{"format": 999}')
    with pytest.raises(WorkspaceError, match="newer program .version 999"):
        Workspace.open(place)
    objects.write("workspace.json", b'{"format": 0}')
    with pytest.raises(WorkspaceError, match="workspace.json is damaged: format"):
        Workspace.open(place)


def test_the_mirror_is_mended_when_a_file_was_changed_cut_short_or_removed(place: str, there: Workspace) -> None:
    whole = there.read("usable_hints")
    first, second, third = sorted(there.path.glob("tables/*/*/*/part-*"))
    first.write_bytes(first.read_bytes()[:-1])
    changed = bytearray(second.read_bytes())
    changed[40] ^= 255
    second.write_bytes(changed)
    third.unlink()
    assert opened(place).read("usable_hints").equals(whole)
    assert first.read_bytes()[-4:] == b"PAR1" and second.read_bytes() != bytes(changed)
    second.write_bytes(changed)
    assert opened(place).damaged() == [] and second.read_bytes() != bytes(changed)


def test_a_part_that_is_damaged_in_the_store_is_named_and_never_used(place: str, there: Workspace) -> None:
    objects, key = there.store.objects, _key(1, 3)
    objects.write(key, (objects.read(key) or b"")[:-9] + b"damaged!!")
    with pytest.raises(WorkspaceError, match=f"{place}/{key} does not have the checksum of its manifest"):
        there.read("usable_hints")
    assert there.damaged() == [there.path / key] and not (there.path / key).exists()
    objects.delete([key])
    with pytest.raises(WorkspaceError, match=f"{place}/{key} is missing"):
        opened(place).read("usable_hints")


def test_tables_that_were_made_again_are_read_although_their_manifest_has_the_same_size(place, there, machine) -> None:
    assert there.read("usable_hints").equals(hints(*range(6)))
    size = (there.path / FOLDER_KEY / "manifest.json").stat().st_size
    machine("first")
    first = opened(place)
    first.discard(first.folder(*FOLDER))
    store(first, [[0, 1], [2, 3], [4, 6]])
    assert (first.path / FOLDER_KEY / "manifest.json").stat().st_size == size
    machine("second")
    assert opened(place).read("usable_hints").equals(hints(0, 1, 2, 3, 4, 6))
    there.refresh()
    assert there.read("usable_hints").equals(hints(0, 1, 2, 3, 4, 6))


def test_a_build_forgets_parts_that_the_store_lost_or_has_otherwise_and_fetches_no_others(place, there, machine):
    folder = there.folder(*FOLDER)
    first, second, third = (_key(number, 3) for number in range(3))
    assert discard_damaged(there, folder, ["usable_hints"]) == [] and _parts(there) == []
    there.store.objects.write(first, b"short")
    there.store.objects.delete([second])
    again = opened(place)
    with again.lock(10):
        damaged = discard_damaged(again, folder, ["usable_hints"])
        assert damaged == [
            "usable_hints/part-00000-of-00003.parquet was altered in the store.",
            "usable_hints/part-00001-of-00003.parquet is missing in the store.",
        ]
        assert list(again.store.objects.listing("tables")) == [third] and again.manifest(folder) is None
        shards = ranges([f"q{number:03d}" for number in range(6)], 3)
        for shard, numbers in zip(shards[:2], ([0, 1], [2, 3]), strict=True):
            again.write_part(folder, shard, {"usable_hints": hints(*numbers)})
        again.finish(folder, ["usable_hints"], 3, {"stage": "filter"})
    machine("third")
    assert opened(place).read("usable_hints").equals(hints(*range(6)))


def test_an_unfinished_part_that_cannot_be_read_leaves_the_store_and_a_damaged_mirror_is_repaired(place, machine):
    first, second = ranges(["q000", "q001"], 2)
    here = Workspace.create(place)
    folder = here.folder(*FOLDER)
    for shard, number in ((first, 0), (second, 1)):
        here.write_part(folder, shard, {"usable_hints": hints(number)})
    sound, damaged = sorted(folder.rglob("part-*"))
    sound.write_bytes(sound.read_bytes()[:-5])  # here only
    damaged.write_bytes(b"PAR1 half")
    here.store.objects.write(_key(1, 2), damaged)
    again = opened(place)
    with again.lock(10):
        (line,) = discard_damaged(again, folder, ["usable_hints"])
        assert line.startswith("usable_hints/part-00001-of-00002.parquet cannot be read")
        assert [again.part_done(folder, ["usable_hints"], shard) for shard in (first, second)] == [True, False]
    assert list(again.store.objects.listing("tables")) == [_key(0, 2)]


def test_an_interrupted_stage_goes_on_on_another_machine(place: str, machine) -> None:
    first, second = ranges(["q000", "q001"], 2)
    here = Workspace.create(place)
    with here.lock(60):
        here.write_part(here.folder(*FOLDER), first, {"usable_hints": hints(0)})
        here.write_part(here.folder(*FOLDER), Range(4, 9), {"usable_hints": hints(8)})  # of another number of shards
    machine("second")
    there = opened(place)
    folder = there.folder(*FOLDER)
    with there.lock(60):
        assert [there.part_done(folder, ["usable_hints"], shard) for shard in (first, second)] == [True, False]
        assert there.manifest(folder) is None
        there.write_part(folder, second, {"usable_hints": hints(1)})
        there.finish(folder, ["usable_hints"], 2, {"stage": "filter"})
        there.set_current({"filter": "f0"})
    machine("third")
    assert opened(place).read("usable_hints").equals(hints(0, 1))
    assert list(there.store.objects.listing("tables")) == [f"{FOLDER_KEY}/manifest.json", _key(0, 2), _key(1, 2)]


def test_a_part_that_never_left_its_machine_is_copied_not_made_again(place: str, machine) -> None:
    here = Workspace.create(place)
    folder = here.folder(*FOLDER)
    here.store.objects.create = lambda key, path: 1 / 0  # killed here
    with pytest.raises(ZeroDivisionError):
        here.write_part(folder, Range(0, 1), {"usable_hints": hints(0)})
    assert here.store.objects.listing("tables") == {}
    again = opened(place)
    assert not again.part_done(folder, ["usable_hints"], Range(0, 1))  # a look changes nothing
    assert again.store.objects.listing("tables") == {}
    assert again.part_done(folder, ["usable_hints"], Range(0, 1), publish=True)
    assert list(again.store.objects.listing("tables")) == [_key(0, 1)]


def test_of_two_who_make_the_same_part_the_first_counts_for_both(place: str, machine) -> None:
    here = Workspace.create(place)
    shard, folder = Range(0, 1), here.folder(*FOLDER)
    here.write_part(folder, shard, {"usable_hints": hints(0)})
    machine("second")
    there = opened(place)
    there.write_part(there.folder(*FOLDER), shard, {"usable_hints": hints(1)})
    name = _key(0, 1)
    assert (there.path / name).read_bytes() == (here.path / name).read_bytes() == there.store.objects.read(name)


def test_a_run_that_lost_the_workspace_stops_before_it_says_anything(place: str, machine) -> None:
    here = Workspace.create(place)
    with pytest.raises(WorkspaceError, match="another run has taken the workspace"), here.lock(60):
        here.set_current({"collect": "ours"})
        there = opened(place)
        there.store.objects.create("locks/build/00000002.json", json.dumps({"token": "theirs", "beat": 0}).encode())
        there.set_current({"collect": "theirs"})
        here.set_current({"collect": "ours", "filter": "ours"})
    assert opened(place).state == {"collect": "theirs"}


def test_who_has_no_lock_sees_what_was_finished_after_a_refresh_and_a_removed_workspace_is_gone(place, machine) -> None:
    here = Workspace.create(place)
    machine("worker")
    worker = opened(place)
    store(here, [[0], [1]])
    assert len(worker.read("usable_hints")) == 0
    worker.refresh()
    assert worker.read("usable_hints").equals(hints(0, 1))
    ReviewStore(here).set_applied(["part-00001.parquet"])
    here.store.objects.delete(here.store.objects.listing())
    emptied = Workspace.create(place)
    assert not any(emptied.path.glob("tables/*"))
    assert emptied.state == {} and ReviewStore(emptied).applied == [] and emptied.current() == {}


def test_rows_that_two_machines_append_at_once_are_all_kept(place: str, machine: Callable[[str], None]) -> None:
    Workspace.create(place)
    workspaces = []
    for name in ("a", "b", "c"):
        machine(name)
        workspaces.append(opened(place))

    def work(workspace: Workspace, by: str) -> None:
        for _ in range(4):
            make = lambda log: table_of("overrides", [{"override_id": f"o{len(log) + 1:06d}", "by": by}])  # noqa: E731
            assert len(Log(workspace, "overrides").append(make)) == 1

    together(*(partial(work, workspace, str(number)) for number, workspace in enumerate(workspaces)))
    machine("d")
    log = Log(opened(place), "overrides").read()
    assert log.column("override_id").to_pylist() == [f"o{number:06d}" for number in range(1, 13)]
    assert sorted(log.column("by").to_pylist()) == sorted("012" * 4)


def test_of_two_pulls_at_once_the_second_is_told_to_pull_again(place: str, machine, tmp_path: Path) -> None:
    here = Workspace.create(place)
    machine("second")
    there = opened(place)
    first, second = ReviewStore(here), ReviewStore(there)
    one, two = (table_of("reviews", [{"review_id": name}]).to_pylist() for name in ("one", "two"))
    first.append(one)
    with pytest.raises(WorkspaceError, match="Pull again"):
        second.append(two)
    assert second.append(two) == "part-00002.parquet"
    machine("third")
    assert len(ReviewStore(opened(place)).read()) == 2


def test_a_backup_on_another_machine_has_records_that_python_gave(place: str, machine, tmp_path: Path) -> None:
    here = Workspace.create(place)
    store(here, [[1, 2]])
    here.store.add(here.path / "sources" / "records.jsonl", lambda temporary: temporary.write_bytes(b"{}\n"))
    machine("second")
    backup(opened(place), tmp_path / "W.tar")
    restore(tmp_path / "W.tar", tmp_path / "back")
    assert (tmp_path / "back" / "sources" / "records.jsonl").read_bytes() == b"{}\n"
