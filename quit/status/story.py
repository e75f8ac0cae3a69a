"""One question's whole life, gathered from every table: for ``quit show``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quit.common.ids import passage_id
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.review.overrides import listed


def story(workspace: Workspace, wanted: str) -> dict[str, Any]:
    """Return everything the current tables say of one question, as JSON-like values.

    ``wanted``: a question id, or a source record's own id where only one question has it. A question that was left out
    on the way has the reason under ``rejects``. Raises :class:`InputError` when no question, or more than one, is
    meant.
    """
    identity = wanted
    if not len(workspace.read_questions("questions", [wanted], ["question_id"])):
        with workspace.connect() as connection:
            identity = _resolve(_asker(connection), wanted)
    with workspace.connect(identity) as connection:
        rows = _asker(connection)
        mine = "FROM {} WHERE question_id = ?"
        questions = rows(f"SELECT * {mine.format('questions')}", identity)
        hints = rows(
            """
            SELECT h.hint_id, h.hint, h.source, h.file, r.rank, r.convergence, r.producer,
                coalesce(r.selected, false) AS selected
            FROM hints h LEFT JOIN ranked_hints r USING (hint_id) WHERE h.question_id = ?
            ORDER BY r.rank NULLS LAST, h.position
            """,
            identity,
        )
        answers = rows(
            """SELECT permutation, reader, answer FROM answers JOIN distinct_answers USING (question_id, reader, number)
            WHERE question_id = ?""",
            identity,
        )
        by_passage: dict[str, dict[str, str]] = {}
        for row in answers:
            by_passage.setdefault(row["permutation"], {})[row["reader"]] = row["answer"]
        labels = {
            row["permutation"]: row
            for row in rows(f"SELECT permutation, label, labelers {mine.format('labels')}", identity)
        }
        text = [hint["hint"] for hint in hints if hint["selected"]]
        passages = [
            {
                "id": passage_id(identity, row["permutation"]),
                "permutation": row["permutation"],
                "text": " ".join(text[int(index)] for index in row["permutation"]),
                "label": labels.get(row["permutation"], {}).get("label"),
                "correct_labelers": labels.get(row["permutation"], {}).get("labelers"),
                "answers": by_passage.get(row["permutation"], {}),
            }
            for row in rows(f"SELECT permutation {mine.format('passages')} ORDER BY permutation", identity)
        ]
        return {
            "question_id": identity,
            "question": questions[0] if questions else None,
            "origins": rows(
                f"SELECT source, file, position, record_id {mine.format('origins')} ORDER BY file, position", identity
            ),
            "rejects": rows(
                f"SELECT stage, kind, reason, detail, file, position, hint_id {mine.format('rejects')}", identity
            ),
            "candidates": [
                row["candidate"]
                for row in rows(f"SELECT candidate {mine.format('candidates')} ORDER BY position", identity)
            ],
            "drawn_candidates": rows(
                f"SELECT candidate, fine, similarity, producer {mine.format('drawn_candidates')} ORDER BY position",
                identity,
            ),
            "hints": hints,
            "leak_findings": rows(
                f"SELECT * EXCLUDE (question_id) {mine.format('leak_findings')} ORDER BY hint_id", identity
            ),
            "overrides": listed(workspace, identity),
            "description": next(
                iter(rows(f"SELECT * EXCLUDE (question_id) {mine.format('descriptions')}", identity)), None
            ),
            "probe": rows(
                f"SELECT reader, repetition, answer, correct {mine.format('probe_answers')} ORDER BY ALL", identity
            ),
            "split": next(iter(rows(f"SELECT split, parametric, draw {mine.format('splits')}", identity)), None),
            "passages": passages,
            "verdicts": rows(
                f"SELECT answer, correct, probability, basis, passages, judge {mine.format('verdicts')} ORDER BY "
                "passages DESC, answer",
                identity,
            ),
            "valid_answers": rows(
                f"SELECT answer, origin, passages {mine.format('valid_answers')} ORDER BY origin, answer", identity
            ),
            "reviews": rows(
                f"""SELECT annotator, state, version, kind, answer, correct, text, updated {mine.format("reviews")}
                ORDER BY annotator, annotation, version, kind, answer""",
                identity,
            ),
            "changes": rows(
                f"""SELECT change, before, after, answer, any_value(reviews) AS reviews, reason, count(*) AS passages
                {mine.format("changes")} GROUP BY change, before, after, answer, reason ORDER BY ALL""",
                identity,
            ),
        }


def _asker(connection: Any) -> Callable[..., list[dict[str, Any]]]:
    def rows(sql: str, *values: Any) -> list[dict[str, Any]]:
        return connection.sql(sql, params=list(values)).to_arrow_table().to_pylist()

    return rows


def _resolve(rows: Any, wanted: str) -> str:
    for table in ("questions", "rejects"):
        if rows(f"SELECT 1 FROM {table} WHERE question_id = ? LIMIT 1", wanted):
            return wanted
    matches = rows("SELECT DISTINCT question_id FROM origins WHERE record_id = ? ORDER BY 1", wanted)
    if len(matches) == 1:
        return matches[0]["question_id"]
    if matches:
        listed = ", ".join(row["question_id"] for row in matches)
        raise InputError(f"{len(matches)} questions have the source id {wanted!r}: {listed}. Name one of these.")
    gone = rows("SELECT stage, reason, detail, file FROM rejects WHERE record_id = ? LIMIT 1", wanted)
    if gone:
        row = gone[0]
        raise InputError(
            f"The record {wanted!r} of {row['file']} was left out at {row['stage']}: {row['reason']} ({row['detail']})."
        )
    near = rows(
        "SELECT question_id FROM questions ORDER BY jaro_winkler_similarity(question_id, ?) DESC, 1 LIMIT 3", wanted
    )
    listed = ", ".join(row["question_id"] for row in near) or "the workspace has none"
    raise InputError(f"There is no question {wanted!r}. The nearest: {listed}.")
