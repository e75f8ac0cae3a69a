"""A valid record of each kind of source, as in a file, and files of such records."""

import json
from pathlib import Path
from typing import Any

from quit.sources import hinteval, jsonl, triviahg, wikihint
from quit.sources.records import SourceRecord

READERS = {"triviahg": triviahg, "wikihint": wikihint, "hinteval": hinteval, "jsonl": jsonl}
GOOD: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("good.json").read_text(encoding="utf-8"))


def good(kind: str, **changes: object) -> dict[str, Any]:
    """Return the record with some fields replaced; ``...`` takes a field away."""
    return {key: value for key, value in {**GOOD[kind], **changes}.items() if value is not ...}


def dataset(**subsets: dict[str, Any]) -> dict[str, Any]:
    """Return a dataset of HintEval: subset -> id -> instance."""
    named = {name: {"name": name, "metadata": {}, "instances": instances} for name, instances in subsets.items()}
    return {"name": "d", "version": None, "description": None, "url": None, "metadata": {}, "subsets": named}


def read(kind: str, folder: Path, value: object) -> list[SourceRecord]:
    """Write a file ``s.json``, a text or bytes as they are, and return what the reader of the kind makes of it."""
    path = folder / "s.json"
    content = value if isinstance(value, str | bytes) else json.dumps(value)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(READERS[kind].read(path))


def read_two(kind: str, folder: Path, first: dict[str, Any], second: dict[str, Any]) -> list[SourceRecord]:
    """Read a file of two records; HintEval has their ids outside, here ``q1`` and ``q2``."""
    if kind == "jsonl":
        return read(kind, folder, "\n".join(map(json.dumps, (first, second))))
    return read(kind, folder, dataset(test={"q1": first, "q2": second}) if kind == "hinteval" else [first, second])
