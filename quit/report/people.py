"""What people said, for the report: progress, their agreement with one another, and the judge's with them. No one is
named."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quit.common.rows import cursor
from quit.engine.questions import counting_reviews
from quit.engine.workspace import Workspace
from quit.evaluate.agreement import cohen_kappa
from quit.evaluate.significance import accuracy_interval
from quit.review.report import ReviewStatus
from quit.settings import Review
from quit.stages.labelling.verdicts import decide, rows_of_pages


def review_progress(workspace: Workspace, status: ReviewStatus) -> dict[str, Any] | None:
    """Return what :func:`quit.review.report.review_status` says (``status``) without anybody's address, or None before
    the first review.

    Annotators are numbered by address.
    """
    if not status["reviews"]["rows"]:
        return None
    people = workspace.rows("SELECT DISTINCT annotator FROM reviews ORDER BY 1", ["reviews"])
    numbers = {name: f"annotator {number}" for number, (name,) in enumerate(people, start=1)}
    left_out = ("project", "unclear", "disagreements", "problems", "audit")
    return _with_numbers({name: value for name, value in status.items() if name not in left_out}, numbers)


def _with_numbers(value: Any, number: dict[str, str]) -> Any:
    """Return JSON-like values with numbers in place of names."""
    if isinstance(value, dict):
        return {key: _with_numbers(entry, number) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_numbers(entry, number) for entry in value]
    return number.get(value, value) if isinstance(value, str) else value


def judge_against_people(workspace: Workspace, settings: Review) -> dict[str, Any] | None:
    """Return how the judge's verdicts compare with what people settled, or None where they settled none of them.

    Only answers that the judge had to decide (basis ``model``) count. ``both_yes``, ``only_judge``, ``only_people``,
    ``both_no``: answers; ``unread``: settled answers whose verdict could not be read; ``agreement``: share alike;
    ``low``, ``high``: its 95% interval, over draws of questions; ``kappa``: Cohen's, None where it is not defined.
    ``kinds``: the same for blind pages and for the others, each a dict with ``blind``. ``others``: the same for each
    other judge, each a dict with ``judge``.
    """
    live = counting_reviews(workspace)
    ids = live["question_id"].unique().to_pylist()
    columns = ("question_id", "answer_key", "correct", "basis")
    verdicts = workspace.read("verdicts", runs=["judge"], columns=columns, question_ids=ids)
    figures = _comparison(verdicts, settings, live)
    if figures is None:
        return None
    kinds = [
        {"blind": blind, **of_one}
        for blind in (True, False)
        if (of_one := _comparison(verdicts, settings, rows_of_pages(live, blind)))
    ]
    second = workspace.read("second_verdicts", columns=("judge", *columns), question_ids=ids)
    others = [
        {"judge": judge, **of_one}
        for judge in second["judge"].unique().to_pylist()
        if (of_one := _comparison(second.filter(pc.equal(second["judge"], judge)), settings, live))
    ]
    return {**figures, "kinds": kinds, "others": others}


def _comparison(verdicts: pa.Table, settings: Review, live: pa.Table) -> dict[str, Any] | None:
    with cursor() as connection:
        connection.register("verdicts", verdicts)
        connection.register("decisions", decide(live, settings))
        rows = connection.execute(
            """
            SELECT correct, decision, v.question_id FROM verdicts v JOIN decisions d
                ON v.question_id = d.question_id AND answer_key = key
            WHERE v.basis = 'model' AND kind = 'answer' AND decision IS NOT NULL ORDER BY v.question_id
            """
        ).fetchall()
    pairs = Counter((judge, people) for judge, people, _ in rows)
    agreements = [(judge == people, question_id) for judge, people, question_id in rows if judge is not None]
    unread = pairs.pop((None, True), 0) + pairs.pop((None, False), 0)
    if not pairs:
        return None
    return {
        "answers": pairs.total(),
        "both_yes": pairs[True, True],
        "only_judge": pairs[True, False],
        "only_people": pairs[False, True],
        "both_no": pairs[False, False],
        "unread": unread,
        "agreement": (pairs[True, True] + pairs[False, False]) / pairs.total(),
        **dict(zip(("low", "high"), accuracy_interval(*zip(*agreements, strict=True)), strict=True)),
        "kappa": cohen_kappa(pairs),
    }
