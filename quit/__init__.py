"""QUIT builder: build datasets for inferential question answering, read them, and use each instrument on its own.

``quit.build("workspace", "starter")`` builds, ``quit.open("workspace")`` opens what was built. In an interactive
session the name hides the builtin ``quit``, nothing else; ``exit`` and Ctrl-D still end it.
"""

import os
from typing import TYPE_CHECKING, Any

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # Arrow's own keep what was freed from models and Python

from quit import errors as errors
from quit.version import __version__ as __version__

if TYPE_CHECKING:
    from quit.annotation.reports import PullReport as PullReport
    from quit.annotation.reports import PushReport as PushReport
    from quit.library.building import build as build
    from quit.library.building import check as check
    from quit.library.building import plan as plan
    from quit.library.checking import SourceCheck as SourceCheck
    from quit.library.instruments import convergence as convergence
    from quit.library.instruments import evaluate_run as evaluate_run
    from quit.library.instruments import find_leaks as find_leaks
    from quit.library.instruments import judge as judge
    from quit.library.instruments import passages as passages
    from quit.library.results import ExportResult as ExportResult
    from quit.library.results import ReleaseFacts as ReleaseFacts
    from quit.library.tables import Tables as Tables
    from quit.library.tables import open_tables
    from quit.models.judges import Ruling as Ruling
    from quit.models.protocols import JudgeItem as JudgeItem
    from quit.models.protocols import Prompt as Prompt
    from quit.models.protocols import Reply as Reply
    from quit.models.protocols import Verdict as Verdict
    from quit.operations.plan import Plan as Plan
    from quit.review.apply import ApplyReport as ApplyReport
    from quit.review.status import ReviewStatus as ReviewStatus
    from quit.stages.leaks.find import Finding as Finding
    from quit.status.story import Story as Story

    open = open_tables  # mypy --strict exports `import x as x`, but not `import x as y`

_MODULES = {
    "annotation.reports": ("PullReport", "PushReport"),
    "library.building": ("build", "check", "plan"),
    "library.checking": ("SourceCheck",),
    "library.results": ("ExportResult", "ReleaseFacts"),
    "library.tables": ("Tables", "open"),
    "library.instruments": ("convergence", "evaluate_run", "find_leaks", "judge", "passages"),
    "models.judges": ("Ruling",),
    "models.protocols": ("JudgeItem", "Prompt", "Reply", "Verdict"),
    "operations.plan": ("Plan",),
    "review.apply": ("ApplyReport",),
    "review.status": ("ReviewStatus",),
    "stages.leaks.find": ("Finding",),
    "status.story": ("Story",),
}
__all__ = sorted(["errors", *(name for names in _MODULES.values() for name in names)])


def __getattr__(name: str) -> Any:
    """Return a name of the interface, loaded when it is first used."""
    from importlib import import_module

    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"quit.{module}"), "open_tables" if name == "open" else name)
    raise AttributeError(f"module 'quit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
