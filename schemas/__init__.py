"""The contracts of everything that crosses a boundary: one schema a table and a file format, versioned."""

from schemas.contract import Column, Table
from schemas.tables import TABLES, table

WORKSPACE_FORMAT = 2
"""Version of a workspace's layout. A program refuses a workspace whose number is higher than its own. 2: answers are
kept by number, with their texts in ``distinct_answers``."""

__all__ = ["TABLES", "WORKSPACE_FORMAT", "Column", "Table", "table"]
