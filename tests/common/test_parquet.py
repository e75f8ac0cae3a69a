"""Reading Parquet files: the rows of some questions, against a loop in Python."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.common.parquet import ALL, Owner, Questions, opened, parquet_writer, pieces, rows_of, write_parquet
from quit.common.ranges import Range
from quit.errors import InputError, WorkspaceError
from tests.paths import ROOT

IDS = [f"q{number:03d}" for number in range(100)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = pa.table({"question_id": IDS, "place": range(100)})
    pq.write_table(table, tmp_path / "a=b.parquet", row_group_size=10)  # a name that others take for a partition
    return tmp_path / "a=b.parquet"


@pytest.mark.parametrize(
    ("questions", "groups"),
    [
        (ALL, range(10)),
        (Questions(Range(0, 1, "q025", "q031")), (2, 3)),
        (Questions(Range(0, 2, None, "q010")), (0,)),
        (Questions.of(pa.array(["q007", "q011", "of none"])), (0, 1)),
        (Questions.of(pa.array([], pa.string())), ()),
    ],
)
@pytest.mark.parametrize("columns", [["place"], ["question_id", "place"]])
def test_rows_of_questions_come_from_the_row_groups_that_may_hold_them(path, questions, groups, columns) -> None:
    shard = questions.shard
    ids = IDS if questions.ids is None else questions.ids.to_pylist()
    rows = [
        place
        for place, name in enumerate(IDS)
        if name in ids and (shard.first or "") <= name and (shard.end is None or name < shard.end)
    ]
    tables = [*pieces(path, columns, questions, size=7)]
    assert [place for table in tables for place in table["place"].to_pylist()] == rows
    assert all(table.column_names == columns and 0 < len(table) <= 7 for table in tables)
    with opened(path) as file:
        assert questions.groups(file.metadata) == [*groups]


def test_a_file_is_read_as_it_was_written_or_named_in_one_line(path: Path) -> None:
    assert rows_of(path).column_names == ["question_id", "place"]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"a=b.parquet cannot be read: [^\n]+$"):
        rows_of(path)
    with pytest.raises(WorkspaceError, match=r"Copy it\.$"), opened(path, (), Owner(WorkspaceError, "Copy it.")):
        pass


@pytest.mark.parametrize("folder", ["a:b", "file:x", "%41", "[a]", "{b}", "a'b", "s3:x"])
def test_a_relative_path_is_a_path_whatever_its_name(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(folder).mkdir()
    table = pa.table({"place": [1, 2]})
    write_parquet(Path(folder) / "whole.parquet", table)
    with parquet_writer(Path(folder) / "pieces.parquet", table.schema) as file:
        file.write_table(table)
    for name in ("whole.parquet", "pieces.parquet"):
        with opened(Path(folder) / name) as parquet:
            assert parquet.read() == table


def test_every_parquet_file_of_ours_has_that_writer() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "quit").rglob("*.py")}
    assert [path.name for path, text in texts.items() if "ParquetWriter(" in text or "pq.write_table(" in text] == [
        "parquet.py"
    ]
