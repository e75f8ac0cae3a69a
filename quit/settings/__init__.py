"""Every number of a run: defaults from the paper, a profile over them, ``--set key=value`` over that.

Only the sections that a stage reads are part of its fingerprint. Unknown keys are
refused with the nearest right name. See ``docs/reference/settings.md`` (generated from here).
"""

# ruff: noqa: F401  # what others import from here

from quit.settings.card import Card
from quit.settings.construction import (
    Collect,
    Convergence,
    Difficulty,
    Leakage,
    PassageDesign,
    QuestionTypeSettings,
    RunSettings,
    Split,
)
from quit.settings.loading import (
    LISTS,
    Loaded,
    file_of,
    flatten,
    load,
    load_card,
    of_section,
    parse,
    plain,
    profile_file,
    profile_names,
    without,
)
from quit.settings.models import JudgeSettings, LanguageModel, ReaderSettings, ServerSettings
from quit.settings.review import Review
from quit.settings.schedules import Limits, Schedule, ServeSettings
from quit.settings.settings import Settings
