"""QUIT builder: the domain of a pipeline that constructs inferential question answering datasets, and a library.

``import quit`` gives what :mod:`quit.library` defines: ``quit.open("workspace")``, ``quit.find_leaks(...)`` and so on,
each loaded when it is first used. Building is a flow: ``from flows.build import build``. In an interactive session the
name hides the builtin ``quit``, nothing else; ``exit`` and Ctrl-D still end it.

The package knows questions, hints, passages, readers and labels. It imports neither Prefect nor the Label Studio SDK;
``flows`` and ``annotation`` do that.
"""

from typing import TYPE_CHECKING, Any

from quit.version import __version__ as __version__

if TYPE_CHECKING:
    from quit.library import Tables as Tables
    from quit.library import convergence as convergence
    from quit.library import evaluate_run as evaluate_run
    from quit.library import find_leaks as find_leaks
    from quit.library import judge as judge
    from quit.library import labels as labels
    from quit.library import open_tables as open  # noqa: F401
    from quit.library import passages as passages

_LIBRARY = ("Tables", "convergence", "evaluate_run", "find_leaks", "judge", "labels", "open", "passages")


def __getattr__(name: str) -> Any:
    if name not in _LIBRARY:
        raise AttributeError(f"module 'quit' has no attribute {name!r}")
    from quit import library

    return getattr(library, "open_tables" if name == "open" else name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LIBRARY])
