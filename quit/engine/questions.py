"""Which questions leave a workspace and which come, when its sources are others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import pyarrow as pa

from quit.common.parquet import rows_of
from quit.common.progress import note
from quit.common.ranges import WHOLE
from quit.common.rows import grouped, tuples
from quit.engine.parts import part_name
from quit.engine.reading import OF_RELEASE, TableReader
from quit.engine.workspace import Workspace
from quit.errors import WorkspaceError
from quit.settings import Review
from quit.stages.labelling.verdicts import fitting, live_reviews, settled_rows, under_review
from quit.text.words import counted, first_names


def fitting_rows(workspace: TableReader, rows: pa.Table) -> pa.Table:
    """Return the rows, of decisions or of reviews, whose question still shows what its annotators saw."""
    if not len(rows):
        return rows
    ids = rows["question_id"].unique().to_pylist()
    questions = workspace.read("questions", question_ids=ids, columns=("question_id", "question", "answers"))
    hints = workspace.read("ranked_hints", question_ids=ids, columns=("question_id", "hint", "selected"))
    return fitting(rows, questions, hints)


def counting_reviews(workspace: TableReader, question_ids: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of all pulled reviews that count and whose question still shows what its annotators saw; of some
    questions, if these are named."""
    return fitting_rows(workspace, live_reviews(workspace.read("reviews", question_ids=question_ids)))


def decision_counts(workspace: TableReader, decisions: pa.Table, settings: Review) -> tuple[int, int]:
    """Return how many decisions on questions of the splits under review are settled, and how many are open."""
    rows = under_review(decisions, workspace.read("splits", runs=["split"]), settings)
    settled = len(settled_rows(rows))
    return settled, len(rows) - settled


def check_questions(workspace: Workspace, folder: Path, sources: Sequence[Mapping[str, str]], replace: bool) -> None:
    """Note how many questions leave and come, once they are collected and before they are current; one with another
    text is another question. Those of ``sources`` (kind, file, sha256) that are no longer named are noted by source.

    ``folder``: of the stage run that collected them. Unless ``replace``, raises ``WorkspaceError`` where reviewed
    questions would leave, or such of a source that is no longer named that are in a release or that language models
    answered; what was collected is removed then.
    """
    part = folder / "questions" / part_name(WHOLE)
    before, after = _texts(workspace.read("questions")), _texts(rows_of(part, owner=workspace.owner))
    departures, arrivals = dict(before.items() - after.items()), after.items() - before.items()
    losses = sorted(departures.keys() & {*counting_reviews(workspace)["question_id"].to_pylist()})
    by_source = _by_source(workspace, sources, before.keys() - after.keys())
    unnamed = {question_id for ids in by_source.values() for question_id in ids}
    what = ", ".join(f"{name} with {counted(len(ids), 'question')}" for name, ids in by_source.items())
    fault = ""
    if losses:
        fault = f"{counted(len(losses), 'reviewed question')} would leave {workspace} or get another text: "
        fault += f"{first_names(losses)}. Nothing was changed. Name all sources, add those"
    elif ground := _rests_on(workspace, unnamed):
        fault = (
            f"{what} would leave {workspace}, since no source names it. {ground} Nothing was changed. Keep the sources"
        )
    if fault and not replace:
        if workspace.manifest(folder) is None:
            workspace.discard(folder)
        ways = "of the last build (--add, add=True), or let questions leave (--replace, replace=True)."
        raise WorkspaceError(f"{fault} {ways}")
    if departures or arrivals:
        leave = counted(len(departures), "question leaves", "questions leave")
        advice = f" No longer named: {what}; --add keeps sources." if unnamed else ""
        note(f"{leave}, {counted(len(arrivals), 'comes', 'come')}.{advice}", loud=bool(departures))


def _by_source(workspace: Workspace, sources: Sequence[Mapping[str, str]], left: Set[str]) -> dict[str, list[str]]:
    """Return source -> those of these questions that no other source had, for the sources of the current tables that
    ``sources`` lack by name and by content. Records of Python are one source, whatever their file."""

    def names(source: Mapping[str, str]) -> set[str]:
        return {_name(source["kind"], source["file"]), source["sha256"]}

    _, manifest = workspace.current()["collect"]
    identities = {name for source in sources for name in names(source)}
    last = manifest.get("sources", ())
    gone = {_name(source["kind"], source["file"]) for source in last if not names(source) & identities}
    origins_of: dict[str, set[str]] = {}
    for kind, file, question in tuples(workspace.read("origins"), "source", "file", "question_id"):
        origins_of.setdefault(question, set()).add(_name(kind, file))
    leaving = ((min(origins_of[name]), name) for name in sorted(left & origins_of.keys()) if origins_of[name] <= gone)
    return grouped(leaving)


def _name(kind: str, file: str) -> str:
    """Return a source without what it says of one of its files or splits."""
    return f"{kind}:{re.sub('^records-[0-9a-f]+', 'records', re.split('[/#]', file)[0])}"


def _rests_on(workspace: Workspace, questions: Set[str]) -> str:
    """Say what rests on these questions, in a sentence: a release, or replies of language models; else nothing."""
    from quit.engine.usage import totals

    for path in sorted(workspace.path.glob("releases/*/tables/questions.parquet")) if questions else ():
        if not questions.isdisjoint(rows_of(path, ["question_id"], OF_RELEASE)["question_id"].to_pylist()):
            return f"The release {path.parents[1].name} has them."
    has_answers = questions and len(workspace.read("answers", columns=["question_id"], question_ids=[*questions]))
    return "Language models answered them." if has_answers and totals(workspace.path) else ""


def _texts(questions: pa.Table) -> dict[str, str]:
    return dict(tuples(questions, "question_id", "question"))
