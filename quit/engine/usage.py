"""The use of language models: a log of requests, tokens and seconds per stage run, for the summary and the next plan.

``W/usage.jsonl`` is no part of the reproducible outputs: its figures differ between two runs with the same tables.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quit.common.progress import note
from quit.common.rows import grouped
from quit.errors import WorkspaceError
from quit.models.generation.meter import Count, Usage
from quit.settings import Settings
from quit.settings.models import LanguageModel

if TYPE_CHECKING:
    from quit.models.generation.ledger import Ledger


@dataclass(frozen=True)
class Entry:
    """A line of the log: what a model was asked. ``cost``: at the prices of then, None where it had none; ``origins``:
    of its replies (a server's address, what that says of the model), and how many were used."""

    model: str
    usage: Usage
    cost: float | None
    origins: dict[str, int]


def record(path: Path, run: str, before: Mapping[str, Count], after: Mapping[str, Count], settings: Settings) -> None:
    """Append the use of each language model between two snapshots of the meter; nothing where there was none.

    ``path``: the workspace. ``settings``: the prices of now, for ``cost`` (None: the model has none), and ``workers``,
    shards worked on at a time, which decides the order in which a server saw them.
    """
    lines, models = [], {model.name: model for model in settings.replying_models}
    for model, count in after.items():
        earlier = before.get(model, Count())
        usage, origins = count.plus(earlier, -1), count.origins - earlier.origins
        usage.seconds = round(usage.seconds, 3)
        if usage != Usage() or origins:
            cost = spent(settings, models[model], usage) if model in models else None
            facts = {"cost": cost, "workers": settings.run.workers, "finished": time.time()}
            lines.append({"run": run, "model": model, **asdict(usage), "origins": origins, **facts})
    if not lines:
        return
    with (path / "usage.jsonl").open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":  # the last line was cut short
                file.write(b"\n")
        file.writelines(json.dumps(line).encode() + b"\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def spent(settings: Settings, spec: LanguageModel, usage: Usage) -> float | None:
    """Return what requests have cost, None where the model has no price. Replies that did not come, or did not say what
    they cost, count as their worst case."""
    cost = settings.cost(spec, usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
    return None if cost is None else cost + usage.assumed_cost


def entries(path: Path) -> list[Entry]:
    """Return the log's entries, oldest first. A line cut short by a kill is left out.

    Raises :class:`WorkspaceError` for a line that is no entry.
    """
    log = path / "usage.jsonl"
    checked = []
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    for number, line in enumerate(lines, start=1):
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if (entry := _entry(values)) is None:
            raise WorkspaceError(
                f"{log} is damaged: line {number} is not an entry of a model and its counts. Remove the line; no "
                "table rests on it."
            )
        checked.append(entry)
    return checked


def _entry(values: Any) -> Entry | None:
    """Return an entry of the log, None for anything else."""
    if not isinstance(values, dict) or not isinstance(values.get("model"), str):
        return None
    counts, cost, origins = (
        [values.get(each.name, 0) for each in fields(Usage)],
        values.get("cost"),
        values.get("origins", {}),
    )
    if not isinstance(origins, dict):
        return None
    numbers = [*counts, cost or 0, *origins.values()]
    is_entry = all(isinstance(number, int | float) and abs(number) < 1e18 for number in numbers)
    return Entry(values["model"], Usage(*counts), cost, origins) if is_entry else None


@contextmanager
def capped(path: Path, settings: Settings, ledger: Ledger) -> Iterator[None]:
    """Keep what requests cost in ``W/spent.json`` while a build with a cap works, so that builds share it.

    Earlier requests count at the price of their time; where they had none, at today's.
    """
    from quit.models.generation.ledger import Amount

    models = {model.name: model for model in settings.replying_models}
    total = assumed = Amount()
    without_price: set[str] = set()
    for entry in entries(path):
        usage, cost = entry.usage, entry.cost
        if cost is None and entry.model in models:
            cost = spent(settings, models[entry.model], usage)
        if cost is None and usage.requests:
            without_price.add(entry.model)
        tokens = usage.prompt_tokens + usage.completion_tokens + usage.assumed_tokens
        total = total.plus(Amount(cost or 0.0, tokens))
        assumed = assumed.plus(Amount(usage.assumed_cost, usage.assumed_tokens))
    if without_price and settings.run.max_cost:
        note(
            f"run.max_cost leaves out what was asked of {', '.join(sorted(without_price))}: no price is known.",
            loud=True,
        )
    ledger.open(path, total, assumed)
    try:
        yield
    finally:
        ledger.close()


def totals(path: Path) -> dict[str, Usage]:
    """Return model -> what it was asked over all runs of the workspace."""
    usages = grouped((entry.model, entry.usage) for entry in entries(path))
    return {model: reduce(Usage.plus, of_model) for model, of_model in usages.items()}


def origins(path: Path) -> dict[str, dict[str, int]]:
    """Return model -> origin of its replies -> how many were used, over all runs of the workspace."""
    sums: dict[str, Counter[str]] = {}
    for entry in entries(path):
        sums.setdefault(entry.model, Counter()).update(entry.origins)
    return {model: dict(sorted(counts.items())) for model, counts in sums.items() if counts}


def origin_lines(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return one line per model on the origins of its replies."""
    return [
        f"{model}: " + ", ".join(f"{count:,} from {name or 'this program'}" for name, count in each.items())
        for model, each in counts.items()
    ]
