"""Steps that are killed, and parts that are damaged."""

from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

from quit.errors import WorkspaceError
from quit.qa.benchmark import stages as module
from quit.qa.benchmark.stages import CheckpointedTables
from quit.qa.contracts.benchmark import RELABELLED


def test_a_killed_step_goes_on_at_its_first_missing_part(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "PART", 2)
    batches: list[list[int]] = []

    def make(places: range) -> list[dict]:
        if 4 in places and len(batches) < 3:
            batches.append([])
            raise KeyboardInterrupt
        batches.append(list(places))
        return [{"question_id": str(place), "row": place, "label": 2} for place in places]

    questions = [str(place) for place in range(5)]
    stages = CheckpointedTables(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        stages.table("relabel", "x", {"a": 1}, questions, RELABELLED, make)
    _, table = CheckpointedTables(tmp_path).table("relabel", "x", {"a": 1}, questions, RELABELLED, make)
    assert batches == [[0, 1], [2, 3], [], [4]] and table["row"].to_pylist() == [0, 1, 2, 3, 4]
    other, _ = CheckpointedTables(tmp_path).table("relabel", "x", {"a": 2}, questions, RELABELLED, make)
    assert len(batches) == 7 and other
    part = next(tmp_path.rglob("00001"))
    edited = pq.read_table(part / "rows.parquet").slice(1)
    for damage in (lambda: pq.write_table(edited, part / "rows.parquet"), lambda: (part / "facts.json").unlink()):
        damage()
        with pytest.raises(WorkspaceError, match="(altered|cannot be read).*Delete .*00001 and run"):
            for key in ({"a": 1}, {"a": 2}):
                CheckpointedTables(tmp_path).table("relabel", "x", key, questions, RELABELLED, make)


def test_a_part_on_disk_has_its_counts_after_a_kill(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "PART", 1)

    def counts() -> Counter[str]:
        stages, counter = CheckpointedTables(tmp_path), Counter()

        def make(places: range) -> list[dict]:
            counter.update(windows=len(places))
            return [{"question_id": str(place), "row": place, "label": 2} for place in places]

        stages.table("rerank", "x", {}, ["0", "1"], RELABELLED, make, counter)
        return stages.counts["rerank x"]

    killed = patch.object(module, "write_json", side_effect=KeyboardInterrupt)
    with killed, pytest.raises(KeyboardInterrupt):
        counts()
    assert counts() == counts() == {"windows": 2}
