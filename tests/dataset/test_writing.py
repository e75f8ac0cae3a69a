from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from quit.contracts import table
from quit.dataset.files import ROWS_A_GROUP
from quit.dataset.writing import write_table


def test_the_bytes_of_a_table_do_not_depend_on_its_pieces(tmp_path: Path) -> None:
    count, names = ROWS_A_GROUP + 1000, ("question_id", "permutation", "label", "labelers")
    values = ((f"q{n // 325}", str(n % 7), n % 2 + 1, ["a"] if n % 2 else []) for n in range(count))
    rows = pa.table(dict(zip(names, map(list, zip(*values))))).cast(table("labels").schema)
    files = []
    for size in (count, 1000, 77_777):
        path = tmp_path / f"{size}.parquet"
        assert write_table(path, "labels", (rows.slice(start, size) for start in range(0, count, size))) == count
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]
    assert pq.read_table(tmp_path / "1000.parquet").equals(rows)
