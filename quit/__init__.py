"""QUIT builder: the domain of a pipeline that constructs inferential question answering datasets.

The package knows questions, hints, passages, readers and labels. It imports neither Prefect nor the Label Studio SDK;
``flows`` and ``annotation`` do that. ``quit`` shadows a REPL builtin: write ``from quit.records import Question``.
"""

__version__ = "0.1.0"
