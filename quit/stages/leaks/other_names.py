"""Other established names and word forms that WordNet lacks: ``other_names.txt``, a line per thing."""

from __future__ import annotations

from pathlib import Path


def _table(lines: str) -> dict[str, frozenset[str]]:
    others: dict[str, frozenset[str]] = {}
    for line in lines.splitlines():
        names = frozenset(name.strip() for name in line.split("|"))
        for name in names:
            others[name] = others.get(name, frozenset()) | names - {name}
    return others


OTHER_NAMES = _table(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))
"""Lower-case name, without accents, to other names of the same thing."""
