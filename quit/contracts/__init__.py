"""The contracts of everything that crosses a boundary: one schema per table, versioned."""

from quit.contracts.contract import Column, TableContract
from quit.contracts.tables import TABLES, table

WORKSPACE_FORMAT = 1
"""Version of a workspace's layout. A program refuses a workspace whose number is higher than its own."""

__all__ = ["TABLES", "WORKSPACE_FORMAT", "Column", "TableContract", "table"]
