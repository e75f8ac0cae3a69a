import os
import signal
import subprocess
import threading
import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit import contracts
from quit.common.files import temporary_of
from quit.common.ranges import Range, ranges
from quit.engine.workspace import Workspace
from quit.errors import WorkspaceError
from tests.report import tiny
from tests.running import until

HINTS = contracts.table("usable_hints")


def hints(*numbers: int) -> pa.Table:
    """Rows of the table usable_hints."""
    return HINTS.from_rows([{"hint_id": f"q{number:03d}-h00", "question_id": f"q{number:03d}"} for number in numbers])


def store(workspace: Workspace, parts: list[list[int]]) -> None:
    """Write a finished stage of so many parts, under the lock."""
    folder = workspace.folder("filter", 2, "f0")
    shards = ranges([f"q{number:03d}" for part in parts for number in part], len(parts))
    with workspace.lock(60):
        for shard, numbers in zip(shards, parts, strict=True):
            workspace.write_part(folder, shard, {"usable_hints": hints(*numbers)})
        workspace.finish(folder, ["usable_hints"], len(parts), {"stage": "filter"})
        workspace.set_current({"filter": "f0"})


@given(st.integers(0, 60), st.integers(1, 80))
def test_ranges_cover_every_question_once(questions: int, count: int) -> None:
    identities = [f"q{number:03d}" for number in range(questions)]
    shards = ranges(identities, count)
    assert [shard.index for shard in shards] == list(range(len(shards)))
    for identity in identities:
        assert sum(not shard.misses(identity, identity) for shard in shards) == 1
    sizes = [sum(not shard.misses(identity, identity) for identity in identities) for shard in shards]
    assert max(sizes) - min(sizes) <= 1


def test_an_unfinished_stage_is_not_current(tmp_path) -> None:
    workspace = Workspace.create(tmp_path / "W")
    folder = workspace.folder("filter", 2, "f0")
    first, second = ranges(["q000", "q001"], 2)
    workspace.write_part(folder, first, {"usable_hints": hints(0)})
    workspace.set_current({"filter": "f0"})
    assert [workspace.part_done(folder, ["usable_hints"], shard) for shard in (first, second)] == [True, False]
    assert workspace.current() == {} and len(workspace.read("usable_hints")) == 0


def test_names_of_folders_are_neither_partitions_nor_patterns(tmp_path) -> None:
    folder = tmp_path / "split=test" / "reader=x"
    workspace = tiny.workspace(folder / "W[1]")
    tiny.workspace(folder / "W1", tiny.without_label_2())
    plain = tiny.workspace(tmp_path / "plain")
    for table in ("splits", "labels", "distinct_answers"):
        sql = f"SELECT * FROM {table} ORDER BY ALL"
        assert workspace.rows(sql, [table]) == plain.rows(sql, [table]) != []


def test_finishing_removes_parts_of_another_sharding_and_ruins(tmp_path) -> None:
    workspace = Workspace.create(tmp_path / "W")
    folder = workspace.folder("filter", 2, "f0")
    workspace.write_part(folder, Range(0, 7, None, "q001"), {"usable_hints": hints(0)})
    (folder / "usable_hints" / ".part-00000-of-00002.parquet.99").write_bytes(b"half")
    store(workspace, [[0], [1]])
    assert sorted(os.listdir(folder / "usable_hints")) == ["part-00000-of-00002.parquet", "part-00001-of-00002.parquet"]
    assert len(workspace.read("usable_hints")) == 2


def test_a_folder_with_other_things_is_refused(tmp_path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(WorkspaceError, match="not a workspace"):
        Workspace.create(tmp_path)
    with pytest.raises(WorkspaceError, match="quit build"):
        Workspace.open(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_a_real_full_disk_leaves_no_half_part(tmp_path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    workspace = Workspace.create(tmp_path / "W")
    folder = workspace.folder("filter", 2, "f0")
    (folder / "usable_hints").mkdir(parents=True)
    shard = Range(0, 1)
    os.symlink("/dev/full", temporary_of(folder / "usable_hints" / "part-00000-of-00001.parquet"))
    with pytest.raises(WorkspaceError, match="disk is full"):
        workspace.write_part(folder, shard, {"usable_hints": hints(*range(1000))})
    assert not workspace.part_done(folder, ["usable_hints"], shard)


def test_the_second_run_waits_and_is_told_who_holds_the_workspace(tmp_path) -> None:
    workspace = Workspace.create(tmp_path / "W")
    messages: list[str] = []
    order: list[str] = []

    def second() -> None:
        with Workspace.open(tmp_path / "W").lock(120, messages.append):
            order.append("second")

    with workspace.lock(0):
        thread = threading.Thread(target=second)
        thread.start()
        while not messages:
            time.sleep(0.01)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert f"process {os.getpid()}" in messages[0]


@pytest.mark.slow
def test_the_lock_is_flock_which_nfs_4_carries_and_ends_with_the_process_that_holds_it(tmp_path) -> None:
    workspace = Workspace.create(tmp_path / "W")
    command = f"exec 9>>{tmp_path}/W/lock; flock 9; touch {tmp_path}/held; exec sleep 600"
    other = subprocess.Popen(["sh", "-c", command])
    until(lambda: (tmp_path / "held").exists(), other)
    with pytest.raises(WorkspaceError, match="Another run still holds"), workspace.lock(0.1):
        pass
    other.send_signal(signal.SIGKILL)
    other.wait()
    with workspace.lock(60):
        assert f"process {os.getpid()}" in workspace.holder
    assert not workspace.holder
