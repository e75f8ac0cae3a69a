"""Parts of tables: what is read of a large one."""

from pathlib import Path

import pytest

from quit import contracts
from quit.common.ranges import Range
from quit.engine import parts


@pytest.mark.parametrize("columns", [None, ["question_id", "split"]])
def test_of_a_large_part_only_the_row_groups_of_a_shard_are_read(tmp_path: Path, monkeypatch, columns) -> None:
    monkeypatch.setattr(parts, "_GROUP", 10)
    split = {"split": "test", "parametric": False, "draw": 0.5}
    rows = [{"question_id": f"q{number:03d}", **split} for number in range(100)]
    contract = contracts.table("splits")
    parts.write_part(tmp_path / "part.parquet", contract.from_rows(rows), contract.schema)
    shard = Range(0, 1, "q025", "q031")
    ids = parts.read_part(tmp_path / "part.parquet", columns, shard).column("question_id").to_pylist()
    assert ids == [row["question_id"] for row in rows[20:40]]
    assert len(parts.read_part(tmp_path / "part.parquet", columns)) == 100
