"""Which readers were asked about a part of the passages only; tests/engine/test_partial.py counts them in builds."""

from quit.status.partial import asked_tables, partly_asked
from tests.report import tiny


def test_readers_have_rows_only_where_one_was_not_asked_about_all(tmp_path) -> None:
    assert partly_asked(tiny.workspace(tmp_path / "W")) == [] == asked_tables([])
    [table] = asked_tables([{"reader": "one", "asked": 1250, "passages": 2500}])
    assert table.cells == [["one", "1,250", "2,500", "50.0%"]]
