"""What a workspace left out: rows, questions by stage, what the leakage filter costs, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from quit.common.rows import Row, sql_rows
from quit.engine.workspace import Workspace
from quit.evaluate.labels import SPLITS
from quit.models.equivalence.bem import is_bem
from quit.render.table import plain_name, share
from quit.stages.collect import collect_stage
from quit.stages.filter import filter_stage
from quit.stages.order import STAGES
from quit.text.words import counted, shell_word

PAPER_LOSSES = 442, 17645
"""Questions that the paper's filter left out, of how many (3.1.2): 17,203 remain."""


def left_out(workspace: Workspace) -> list[Row]:
    """Return every row of ``rejects``: stage, kind, reason, detail, file, position, record_id, question_id, hint_id."""
    columns = "stage, kind, reason, detail, file, position, record_id, question_id, hint_id"
    with workspace.connect(tables=["rejects"]) as connection:
        return sql_rows(connection, f"SELECT {columns} FROM rejects ORDER BY ALL")


def ways_out(rejects: Iterable[Mapping[str, Any]], workspace: object = None) -> str | None:
    """Return what to do about questions that a leaking hint costs, with a command for the first; None where there are
    none. ``rejects``: rows with ``reason`` and ``detail``. ``workspace``: the commands' default if not given."""
    leaks = (row["detail"] for row in rejects if row["reason"] == "answer_leak")
    hints = [match[1] for detail in leaks if (match := re.search(r"of \d+ hints leak; (\S+): ", detail))]
    if not hints:
        return None
    place = f" -w {shell_word(workspace)}" if workspace is not None else ""
    return (
        f"{counted(len(hints), 'question leaves', 'questions leave')} for leaking hints. Rewrite or delete such a hint;"
        f" or drop hints alone: quit build{place} --set leakage.mode=hint; or, where it is no leak: quit override leak"
        f"{place} --hint {hints[0]} --decision no_leak --by YOU --reason WHY"
    )


def funnel(workspace: Workspace) -> list[tuple[str, int]]:
    """Return (what, number of questions) from the sources to the splits: what is left after each stage and reason that
    left questions out. Questions beyond a limit (``collect.questions``) come after the others of their stage."""
    losses = workspace.rows(
        "SELECT stage, reason, count(DISTINCT question_id) FROM rejects WHERE kind = 'question' GROUP BY ALL",
        ["rejects"],
    )
    [(rest,)] = workspace.rows("SELECT count(*) FROM questions", ["questions"])
    splits = dict(workspace.rows("SELECT split, count(*) FROM splits GROUP BY 1", ["splits"]))
    number = {stage.name: stage.number for stage in STAGES}
    losses.sort(key=lambda loss: (number.get(loss[0], 0), loss[1] == "beyond_questions", loss[1]))
    rest += sum(count for stage, _, count in losses if stage == collect_stage.name)
    steps = [("in the sources", rest)]
    for stage, reason, count in losses:
        rest -= count
        steps.append((f"after {stage} ({plain_name(reason)})", rest))
    return [*steps, *((f"in {split}", splits.get(split, 0)) for split in SPLITS)]


def leakage_losses(workspace: Workspace) -> str | None:
    """Return how many questions the leakage filter left out and by which method; None before it ran.

    The paper's share stands beside it only where BEM itself judged, by the paper's method.
    """
    if "filter" not in (current := workspace.current()) or not current["filter"].manifest.get("models"):
        return None
    manifest = current["filter"].manifest
    [(questions, losses)] = workspace.rows(
        "SELECT count(*), count(*) FILTER (question_id IN (SELECT question_id FROM rejects WHERE stage = 'filter' AND "
        "kind = 'question')) FROM questions",
        ["questions", "rejects"],
    )
    method = manifest["settings"]["leakage"]["method"]
    bem = is_bem(manifest["models"][filter_stage.models.index("equivalence")])
    model = "BEM" if bem else "the embedded equivalence model"
    if method == "bem" and not bem:
        model += " in BEM's place"
    text = (
        f"Answer leakage: {losses:,} of {questions:,} questions left out ({share(losses, questions)}), by method "
        f"{method} with {model}"
    )
    loss, total = PAPER_LOSSES
    return text + (f"; the paper: {loss / total:.1%}." if bem and method == "bem" else ".")
