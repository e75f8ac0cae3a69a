"""Runs of variants over one corpus, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quit.errors import SettingsError
from quit.models.factory import Models
from quit.qa.folders import building
from quit.qa.settings import QaSettings
from quit.qa.sunar.assembly import Assembly
from quit.qa.sunar.queries import Query
from quit.qa.sunar.retrieval import SearchStack
from quit.qa.sunar.run import Run
from quit.qa.sunar.variants import effective

_SAME = ("workers", "batch", "device")  # settings that change no trace


def run_variants(
    settings: QaSettings, models: Models, stack: SearchStack, queries: list[Query], names: Sequence[str], out: Path
) -> dict[str, dict[str, Any]]:
    """Run variants over questions, each in a folder of its name below ``out``; return their figures."""
    if not names:
        raise SettingsError("No variant is named: --variant.")
    settings_of = {name: effective(settings.sunar, name) for name in names}  # a wrong name before any work
    assembly = Assembly(settings, models)
    systems = {name: (sunar, *assembly.system(stack, sunar)) for name, sunar in settings_of.items()}
    figures = {}
    for name, (sunar, system, identity) in systems.items():
        description = {"settings": sunar.model_dump(mode="json", exclude=set(_SAME)), "identity": identity.splitlines()}
        with building(out / name, "run"):
            run = Run(out / name, description)
            run.work(system, queries, sunar.workers)
            figures[name] = run.finish(queries, name)
    return figures
