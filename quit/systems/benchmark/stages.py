"""Work that is on disk is not done again: each step's table is written in parts of some questions, under a fingerprint
of all that it depends on. A run that was killed resumes at its first missing part."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from quit.common.files import read_json, write_json
from quit.common.ids import content_hash
from quit.common.progress import note
from quit.contracts.tables import TableContract
from quit.errors import WorkspaceError
from quit.systems.experiment import write_table

PART = 64
"""Questions after which work is on disk."""


class Stages:
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

        Raises :class:`WorkspaceError` for a part that cannot be read or written.
        """
        fingerprint = content_hash(stage, dict(key), list(questions), PART)
        folder = self._folder / stage / fingerprint
        starts = range(0, len(questions), PART)
        pieces = []
        spent = read_json(folder / "seconds.json") or {}
        counts = read_json(folder / "counts.json") or {}
        for number, start in enumerate(starts):
            target = folder / f"part-{number:05d}-of-{len(starts):05d}.parquet"
            if not target.is_file():
                note(f"{stage} {label}: questions {start + 1} to {min(start + PART, len(questions))}")
                began, before = time.monotonic(), Counter(counter)
                rows = contract.from_rows(make(range(start, min(start + PART, len(questions)))))
                spent[str(number)] = round(time.monotonic() - began, 3)
                write_json(folder / "seconds.json", spent)
                write_json(folder / "key.json", dict(key))
                if counter is not None:
                    counts[str(number)] = counter - before
                    write_json(folder / "counts.json", counts)
                write_table(target, rows)  # last: a part that is there has its counts
            try:
                pieces.append(pq.read_table(target, partitioning=None).cast(contract.schema))
            except (OSError, pa.ArrowException) as error:
                raise WorkspaceError(
                    f"{target} cannot be read: {error}. Delete it and run the same command."
                ) from error
        self.seconds[f"{stage} {label}"] = round(sum(spent.values()), 3)
        self.counts[f"{stage} {label}"] = sum(map(Counter, counts.values()), Counter())
        return fingerprint, pa.concat_tables(pieces) if pieces else contract.schema.empty_table()
