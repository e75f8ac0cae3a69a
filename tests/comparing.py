"""Two workspaces compared: by the bytes of their files, by the rows of their tables."""

import hashlib
from pathlib import Path

import pyarrow as pa

from quit import contracts
from quit.engine.workspace import Workspace


def bytes_of(folder: Path, pattern: str = "*") -> dict[str, str]:
    """Return path -> checksum of every table file and manifest below ``tables`` whose path ends like the pattern."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "tables").rglob(pattern))
        if path.is_file()
    }


def files_of(folder: Path) -> dict[str, bytes]:
    """Return path -> content of every file."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tables_of(folder: Path) -> dict[str, pa.Table]:
    """Return every table's current rows."""
    workspace = Workspace.open(folder)
    return {name: workspace.read(name) for name in contracts.TABLES}
