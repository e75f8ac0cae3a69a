"""Settings of QA systems: their sections of a profile, beside those of the construction (:mod:`quit.settings`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quit.qa.settings.bandits import Bandits, Reports
from quit.qa.settings.benchmark import Benchmark, FineTune
from quit.qa.settings.complexity import Complexity
from quit.qa.settings.corpora import Corpora, FirstStages, Graph
from quit.qa.settings.sunar import AUTHORS_CODE, Sunar
from quit.settings import Loaded, Settings
from quit.settings.loading import read, validated


class QaSettings(Settings):
    """The settings of a run, those of QA systems too, section by section."""

    corpora: Corpora = Corpora()
    first_stages: FirstStages = FirstStages()
    graph: Graph = Graph()
    bandits: Bandits = Bandits()
    reports: Reports = Reports()
    complexity: Complexity = Complexity()
    benchmark: Benchmark = Benchmark()
    finetune: FineTune = FineTune()
    sunar: Sunar = Sunar()


def load(profile: str | Path = "embedded", overrides: Sequence[str] = ()) -> Loaded[QaSettings]:
    """Return the settings of a profile with overrides, as :func:`quit.settings.load` does."""
    values, origins = read(profile, overrides)
    return Loaded(parse(values), origins)


def parse(values: Mapping[str, Any]) -> QaSettings:
    """Return validated settings, as :func:`quit.settings.parse` does; ``sunar.authors_code`` gives what is not named
    its values."""
    settings = validated(values, QaSettings)
    if not settings.sunar.authors_code:
        return settings
    sections = {}
    for name, of_code in AUTHORS_CODE.items():
        section = getattr(settings, name)
        unnamed = {key: value for key, value in of_code.items() if key not in section.model_fields_set}
        sections[name] = section.model_copy(update=unnamed)
    return settings.model_copy(update=sections)
