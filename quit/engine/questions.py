"""Which questions leave a workspace and which come, when its sources are others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from quit.common.progress import note
from quit.common.ranges import WHOLE
from quit.common.rows import tuples
from quit.engine.logs import Log
from quit.engine.parts import part_name, read_part
from quit.engine.reading import TableReader
from quit.engine.workspace import Workspace
from quit.errors import WorkspaceError
from quit.stages.labelling.verdicts import fitting, live_reviews
from quit.text.words import counted


def fitting_rows(workspace: TableReader, rows: pa.Table) -> pa.Table:
    """Return the rows, of decisions or of reviews, whose question still shows what its annotators saw."""
    ids = rows["question_id"].unique().to_pylist()
    questions = workspace.read_questions("questions", ids, ("question_id", "question", "answers"))
    hints = workspace.read_questions("ranked_hints", ids, ("question_id", "hint", "selected"))
    return fitting(rows, questions, hints)


def check_questions(workspace: Workspace, folder: Path, replace: bool) -> None:
    """Note how many questions leave and come, once they are collected and before they are current; one with another
    text is another question.

    ``folder``: of the stage run that collected them. Raises ``WorkspaceError`` where reviewed questions would leave,
    unless ``replace``; what was collected is removed then.
    """
    part = folder / "questions" / part_name(WHOLE)
    before, after = _texts(workspace.read("questions")), _texts(read_part(part))
    departures, arrivals = dict(before.items() - after.items()), after.items() - before.items()
    reviews = live_reviews(Log(workspace, "reviews").read())
    if (losses := sorted(departures.keys() & {*reviews["question_id"].to_pylist()})) and not replace:
        if workspace.manifest(folder) is None:
            workspace.discard(folder)
        raise WorkspaceError(
            f"{counted(len(losses), 'reviewed question')} would leave {workspace} or get another text: "
            f"{', '.join(losses[:3])}{', ...' if len(losses) > 3 else ''}. Nothing was changed. Name all sources, "
            "add those of the last build (--add, add=True), or let reviewed questions leave (--replace, replace=True)."
        )
    if departures or arrivals:
        leave = counted(len(departures), "question leaves", "questions leave")
        note(f"{leave}, {counted(len(arrivals), 'comes', 'come')}.", loud=bool(departures))


def _texts(questions: pa.Table) -> dict[str, str]:
    return dict(tuples(questions, "question_id", "question"))
