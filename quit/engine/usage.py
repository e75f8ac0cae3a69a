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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quit.common.progress import note
from quit.errors import WorkspaceError
from quit.settings import Settings

if TYPE_CHECKING:
    from quit.models.generation.ledger import Ledger

FIELDS = (
    "requests", "cached", "retries", "empty", "prompt_tokens", "completion_tokens", "cached_tokens", "thought_tokens",
    "assumed_cost", "assumed_tokens", "seconds",
)  # fmt: skip


def record(
    path: Path,
    run: str,
    before: dict[str, dict[str, Any]],
    after: dict[str, dict[str, Any]],
    settings: Settings,
) -> None:
    """Append the use of each language model between two snapshots of the meter; nothing where there was none.

    ``path``: the workspace. ``settings``: the prices of now, for ``cost`` (None: the model has none), and ``workers``,
    shards worked on at a time, which decides the order in which a server saw them.
    """
    lines, models = [], {model.name: model for model in settings.replying_models}
    for model, counts in after.items():
        counts_since: dict[str, Any] = {name: counts[name] - before.get(model, {}).get(name, 0) for name in FIELDS}
        counts_since["seconds"] = round(counts_since["seconds"], 3)
        counts_since["origins"] = counts["origins"] - before.get(model, {}).get("origins", Counter())
        if any(counts_since.values()):
            cost = settings.spent(models[model], counts_since) if model in models else None
            facts = {"cost": cost, "workers": settings.run.workers, "finished": time.time()}
            lines.append({"run": run, "model": model, **counts_since, **facts})
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


def entries(path: Path) -> list[dict[str, Any]]:
    """Return the diary's lines, oldest first. A line cut short by a kill is left out.

    Raises :class:`WorkspaceError` for a line that is no entry.
    """
    diary = path / "usage.jsonl"
    checked = []
    lines = diary.read_text(encoding="utf-8", errors="replace").split("\n") if diary.is_file() else []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not _is_entry(entry):
            raise WorkspaceError(
                f"{diary} is damaged: line {number} is not an entry of a model and its counts. Remove the line; no "
                "table rests on it."
            )
        checked.append(entry)
    return checked


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("model"), str):
        return False
    origins = entry.get("origins", {})
    if not isinstance(origins, dict):
        return False
    counts = [*(entry.get(name, 0) for name in FIELDS), entry.get("cost") or 0, *origins.values()]
    return all(isinstance(count, int | float) and abs(count) < 1e18 for count in counts)


@contextmanager
def capped(path: Path, settings: Settings, ledger: Ledger) -> Iterator[None]:
    """Keep what requests cost in ``W/spent.json`` while a build with a cap works, so that builds share it.

    Earlier requests count at the price of their time; where they had none, at today's.
    """
    from quit.models.generation.ledger import Amount

    models = {model.name: model for model in settings.replying_models}
    spent = assumed = Amount()
    without_price: set[str] = set()
    for entry in entries(path):
        counts, name, cost = {field: entry.get(field, 0) for field in FIELDS}, entry["model"], entry.get("cost")
        if cost is None and name in models:
            cost = settings.spent(models[name], counts)
        if cost is None and counts["requests"]:
            without_price.add(name)
        tokens = counts["prompt_tokens"] + counts["completion_tokens"] + counts["assumed_tokens"]
        spent = spent.plus(Amount(cost or 0.0, tokens))
        assumed = assumed.plus(Amount(counts["assumed_cost"], counts["assumed_tokens"]))
    if without_price and settings.run.max_cost:
        note(
            f"run.max_cost leaves out what was asked of {', '.join(sorted(without_price))}: no price is known.",
            loud=True,
        )
    ledger.open(path / "spent.json", spent, assumed)
    try:
        yield
    finally:
        ledger.close()


def totals(path: Path) -> dict[str, dict[str, float]]:
    """Return model -> sums of :data:`FIELDS` over all runs of the workspace."""
    sums: dict[str, dict[str, float]] = {}
    for entry in entries(path):
        of_model = sums.setdefault(entry["model"], dict.fromkeys(FIELDS, 0))
        for name in FIELDS:
            of_model[name] += entry.get(name, 0)
    return sums


def origins(path: Path) -> dict[str, dict[str, int]]:
    """Return model -> origin of its replies (a server's address, what that says of the model) -> how many were used,
    over all runs of the workspace."""
    sums: dict[str, Counter[str]] = {}
    for entry in entries(path):
        sums.setdefault(entry["model"], Counter()).update(entry.get("origins", {}))
    return {model: dict(sorted(counts.items())) for model, counts in sums.items() if counts}


def origin_lines(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return one line per model on the origins of its replies."""
    return [
        f"{model}: " + ", ".join(f"{count:,} from {name or 'this program'}" for name, count in each.items())
        for model, each in counts.items()
    ]
