"""What to know beside a workspace's counts: few answers, leftovers of spreadsheets, limits of models, types."""

from __future__ import annotations

from itertools import chain

from quit.engine.reading import TableReader
from quit.engine.workspace import Workspace
from quit.models.readers.pool import FITTING_MINIMUM, pool_size
from quit.render.table import share
from quit.sources.notes import leftovers
from quit.text.words import counted


def type_agreement(workspace: TableReader) -> tuple[int, int, int]:
    """Return (questions whose source names their type, classifier agrees on the coarse type, on the fine type)."""
    [row] = workspace.rows(
        """
        SELECT count(*), count(*) FILTER (q.coarse = d.classifier_coarse), count(*) FILTER (q.fine = d.classifier_fine)
        FROM questions q JOIN descriptions d USING (question_id)
        WHERE q.coarse IS NOT NULL AND q.fine IS NOT NULL AND d.classifier_fine IS NOT NULL
        """,
        ["questions", "descriptions"],
    )
    return row


def small_pool(workspace: Workspace) -> str | None:
    """Return what to know about a small pool of answers; None where it is large, or no embedded reader has read."""
    models = (facts.get("models", ()) for run, (_, facts) in workspace.current().items() if run.startswith("read:"))
    if "/pool-of-" not in "".join(chain(*models)):
        return None
    rows = workspace.rows(
        f"""SELECT answer FROM (SELECT question_id, unnest(answers) AS answer FROM questions
                                UNION SELECT question_id, candidate FROM candidates)
            SEMI JOIN descriptions USING (question_id) GROUP BY 1 LIMIT {20 * FITTING_MINIMUM}""",
        ["questions", "candidates", "descriptions"],
    )
    return about_small_pool(pool_size(answer for (answer,) in rows))


def about_small_pool(size: int) -> str | None:
    """Return what to know about labels by readers that choose from so few answers; None where there are enough."""
    if size >= FITTING_MINIMUM:
        return None
    return (
        f"The embedded readers choose from {counted(size, 'answer')} (gold answers and candidates of all questions). "
        f"With fewer than {FITTING_MINIMUM} they are often right by chance, so the share of label 2 says little. Give "
        "questions more candidates (plausible wrong answers), or build more questions together."
    )


def leftovers_of_spreadsheets(workspace: Workspace) -> str | None:
    """Return which questions and gold answers seem to be what a spreadsheet left; None where none does."""
    rows = workspace.rows("SELECT question_id, question, answers FROM questions ORDER BY ALL", ["questions"])
    notes = [f"{one}: {note}" for one, question, answers in rows for note in leftovers(question, answers)]
    return f"Left by a spreadsheet ({len(notes):,}): {' '.join(notes[:5])}" if notes else None


def beyond_limits(workspace: TableReader) -> str | None:
    """Return how many rows of each table have a note (:mod:`quit.models.limits`); None where none has."""
    tables = []
    for name in ("ranked_hints", "descriptions", "verdicts", "second_verdicts"):
        notes = workspace.read(name, columns=["note"]).column("note")
        if count := len(notes) - notes.null_count:
            tables.append(f"{count:,} rows of {name}")
    return f"Texts beyond the limits of embedded models (column note): {', '.join(tables)}." if tables else None


def type_sentence(typed: int, coarse: int, fine: int) -> str:
    """Return what :func:`type_agreement` counts in words."""
    lower = " The sources give some fine types another coarse type than the classifier's." if coarse < fine else ""
    return (
        f"Question types: the classifier agrees with the sources' own on {share(coarse, typed)} (coarse) and "
        f"{share(fine, typed)} (fine) of {typed:,} questions.{lower}"
    )
