"""Rows as tables of their contract."""

import pyarrow as pa
import pytest

from quit.contracts import TABLES, TableContract

VALUES = {"string": "x", "list<element: string not null>": ["x"], "bool": True, "double": 0.5, "float": 0.5}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_column_takes_null_where_its_contract_says_so(table: TableContract) -> None:
    row = {column.name: VALUES.get(str(column.type), 1) for column in table.columns}
    assert table.from_rows([row]).schema == table.schema
    for column in table.columns:
        rows = [row, {**row, column.name: None}]
        if column.nullable:
            assert table.from_rows(rows)[column.name].null_count == 1
        else:
            with pytest.raises(pa.ArrowInvalid, match=rf"{table.name}\.{column.name} must not be null"):
                table.from_rows(rows)
