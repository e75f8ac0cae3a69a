"""Work that is on disk is not done again: each step's table is written in parts of some questions
(:class:`quit.common.steps.Steps`), under a fingerprint of all that it depends on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit.common.files import read_json, write_json
from quit.common.ids import content_hash
from quit.common.manifests import fault
from quit.common.parquet import rows_of, write_parquet
from quit.common.progress import note
from quit.common.steps import MANIFEST, Steps
from quit.contracts.tables import TableContract
from quit.errors import WorkspaceError

PART = 64
"""Questions after which work is on disk."""


class CheckpointedTables:
    """The tables of the steps, below ``folder``.

    ``seconds``: what each step's present parts took when they were made; ``counts``: what was counted then.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, Counter[str]] = {}

    def table(
        self,
        stage: str,
        label: str,
        key: Mapping[str, Any],
        questions: Sequence[str],
        contract: TableContract,
        make: Callable[[range], list[dict[str, Any]]],
        counter: Counter[str] | None = None,
    ) -> tuple[str, pa.Table]:
        """Return a step's fingerprint and table; ``make`` is given places in ``questions`` and returns rows of
        ``contract``. ``counter``: what the step's model counts while it works, kept with each part.

        Raises :class:`WorkspaceError` for a part that cannot be read or written, or was altered.
        """
        fingerprint = content_hash(stage, dict(key), list(questions), PART)
        steps = Steps(self._folder / stage / fingerprint, key)
        pieces, seconds, counts = [], 0.0, Counter[str]()
        for number, start in enumerate(range(0, len(questions), PART)):
            folder = steps[number]
            if not folder.is_dir():
                places = range(start, min(start + PART, len(questions)))
                note(f"{stage} {label}: questions {start + 1} to {places.stop}")
                began, before = time.monotonic(), Counter(counter)
                rows = contract.from_rows(make(places))
                facts = {"seconds": round(time.monotonic() - began, 3), "counts": Counter(counter) - before}
                with steps.adding(number) as new:
                    write_parquet(new / "rows.parquet", rows)
                    write_json(new / "facts.json", facts)
            if problem := fault(folder / MANIFEST):
                raise WorkspaceError(f"{problem}. Delete {folder} and run the same command.")
            pieces.append(rows_of(folder / "rows.parquet").cast(contract.schema))
            facts = read_json(folder / "facts.json")
            seconds += facts["seconds"]
            counts.update(facts["counts"])
        self.seconds[f"{stage} {label}"] = round(seconds, 3)
        self.counts[f"{stage} {label}"] = counts
        return fingerprint, pa.concat_tables(pieces) if pieces else contract.schema.empty_table()
