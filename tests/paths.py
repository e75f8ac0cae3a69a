"""Where things of this checkout lie."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONPATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
"""What a process needs to find this checkout first, wherever it starts."""
DATA = ROOT.parent / "shared" / "data"
STARTER = ROOT / "quit" / "starter" / "questions.jsonl"
FEW = ROOT / "tests" / "few.toml"
"""A profile of two readers and two hints: four passages a question, for tests that are not about models."""


def starter_lines(count: int | None = None) -> list[str]:
    """Return the lines of the starter collection, a question each: the first ones, or all."""
    return STARTER.read_text(encoding="utf-8").splitlines()[:count]


def starter_file(path: Path, *places: int | None) -> Path:
    """Write some lines of the starter collection, those of ``slice(*places)``, to a file; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in starter_lines()[slice(*places)]), encoding="utf-8")
    return path
