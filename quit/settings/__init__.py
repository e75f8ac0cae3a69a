"""Every number of a run: defaults from the paper, a profile over them, ``--set key=value`` over that.

Each section is the settings of one stage; only the sections a stage reads are part of its fingerprint. Unknown keys are
refused with the nearest right name. See ``docs/reference/settings.md`` (generated from here).
"""

from quit.settings.bandits import Bandits, Reports
from quit.settings.benchmark import Benchmark, FineTune
from quit.settings.complexity import Complexity
from quit.settings.construction import (
    PLACES,
    Collect,
    Convergence,
    Difficulty,
    Labels,
    Leakage,
    Probe,
    QuestionType,
    Run,
    Split,
)
from quit.settings.corpora import Corpora, FirstStages, Graph
from quit.settings.loading import LISTS, PROFILES, Loaded, flatten, load, parse, profile_file, profile_names
from quit.settings.models import Judge, LanguageModel, Models, ReaderSettings, ServerSettings
from quit.settings.release import Release
from quit.settings.review import Review
from quit.settings.schedules import FlowName, Limits, Notice, Schedule, Serving
from quit.settings.section import Section
from quit.settings.settings import Settings
from quit.settings.sunar import Sunar

__all__ = [
    "LISTS",
    "PLACES",
    "PROFILES",
    "Bandits",
    "Benchmark",
    "Collect",
    "Complexity",
    "Convergence",
    "Corpora",
    "Difficulty",
    "FineTune",
    "FirstStages",
    "FlowName",
    "Graph",
    "Judge",
    "Labels",
    "LanguageModel",
    "Leakage",
    "Limits",
    "Loaded",
    "Models",
    "Notice",
    "Probe",
    "QuestionType",
    "ReaderSettings",
    "Release",
    "Reports",
    "Review",
    "Run",
    "Schedule",
    "Section",
    "ServerSettings",
    "Serving",
    "Settings",
    "Split",
    "Sunar",
    "flatten",
    "load",
    "parse",
    "profile_file",
    "profile_names",
]
