"""Two workspaces compared: by the bytes of their files, by the rows of their tables."""

from pathlib import Path

import pyarrow as pa

from quit import contracts
from quit.engine.workspace import Workspace


def files_of(folder: Path, pattern: str = "*") -> dict[str, bytes]:
    """Return path -> content of every file whose path ends like the pattern."""
    paths = sorted(path for path in folder.rglob(pattern) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def tables_of(folder: Path) -> dict[str, pa.Table]:
    """Return every table's current rows."""
    workspace = Workspace.open(folder)
    return {name: workspace.read(name) for name in contracts.TABLES}
