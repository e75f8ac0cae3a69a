"""One question's whole life, gathered from every table: for ``quit show``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict, cast

import duckdb

from quit.common.ids import is_given, own_id, passage_id
from quit.common.rows import Row, grouped, sql_rows
from quit.engine.questions import counting_reviews
from quit.engine.reading import TableReader
from quit.engine.request import settings_of
from quit.errors import InputError, QuitError
from quit.release.view import embedded_labels, shown_readers
from quit.render.table import plain_name
from quit.review.overrides import listed
from quit.sources.files import shown_file, unit
from quit.stages.labelling.passages import passage_hints, permutation_name

_MINE = "WHERE question_id IN $ids"
_QUERIES = {
    "question": f"SELECT * FROM questions {_MINE}",
    "origins": f"""SELECT source, file, position, record_id FROM (FROM origins UNION ALL BY NAME
        FROM rejects WHERE stage = 'collect' AND kind = 'question') {_MINE} ORDER BY file, position""",
    "rejects": f"SELECT stage, kind, reason, detail, file, position, hint_id FROM rejects {_MINE}",
    "candidates": f"SELECT candidate FROM candidates {_MINE} ORDER BY position",
    "drawn_candidates": f"""SELECT candidate, fine, similarity, producer FROM drawn_candidates {_MINE}
        ORDER BY position""",
    "hints": f"""SELECT h.hint_id, h.hint, h.source, h.file, r.rank, r.convergence, r.producer,
            coalesce(r.selected, false) AS selected
        FROM hints h LEFT JOIN ranked_hints r USING (question_id, hint_id) {_MINE}
        ORDER BY r.rank NULLS LAST, h.position""",
    "leak_findings": f"SELECT * EXCLUDE (question_id) FROM leak_findings {_MINE} ORDER BY hint_id",
    "description": f"SELECT * EXCLUDE (question_id) FROM descriptions {_MINE}",
    "probe": f"SELECT reader, repetition, answer, correct FROM probe_answers {_MINE} ORDER BY ALL",
    "split": f"SELECT split, parametric, draw FROM splits {_MINE}",
    "passages": f"""SELECT permutation, label, labelers FROM passages
        LEFT JOIN labels USING (question_id, permutation)
        {_MINE} ORDER BY permutation""",
    "answers": f"""SELECT permutation, reader, answer
        FROM answers JOIN (SELECT * FROM distinct_answers {_MINE}) USING (question_id, reader, number)
        {_MINE} AND asked""",
    "verdicts": f"""SELECT answer, correct, probability, basis, passages, judge, coalesce(votes, []) AS votes
        FROM verdicts LEFT JOIN (
            SELECT question_id, answer_key,
                list({{'judge': judge, 'correct': correct, 'probability': probability}} ORDER BY judge) AS votes
            FROM second_verdicts WHERE basis = 'model' GROUP BY ALL
        ) USING (question_id, answer_key) {_MINE} ORDER BY passages DESC, answer""",
    "valid_answers": f"SELECT answer, origin, passages FROM valid_answers {_MINE} ORDER BY origin, answer",
    "reviews": f"""SELECT annotator, state, version, kind, answer, correct, text, updated,
            review_id IN (FROM counting) AS counts FROM reviews {_MINE}
        ORDER BY annotator, annotation, version, kind, answer""",
    "roles": f"SELECT * EXCLUDE (question_id) FROM question_roles {_MINE}",
    "sets": f"""SELECT subset, count(*) AS orders, count(*) FILTER (label = 2) AS label_2
        FROM passages JOIN labels USING (question_id, permutation) {_MINE} GROUP BY question_id, subset
        ORDER BY len(subset), subset""",
    "hint_roles": f"""SELECT w.rank AS digit, hint, shapley, smallest_set, harmed
        FROM hint_roles w JOIN ranked_hints USING (question_id, hint_id) {_MINE} ORDER BY digit""",
    "changes": f"""SELECT change, before, after, answer, any_value(reviews) AS reviews, reason, count(*) AS passages
        FROM changes {_MINE} GROUP BY ALL ORDER BY ALL""",
}
_ONE_ROW = ("question", "description", "split", "roles")


class StoryHint(TypedDict):
    """A hint; ``rank``, ``convergence`` and ``producer`` are None until it is ranked."""

    hint_id: str
    hint: str
    source: str
    file: str
    rank: int | None
    convergence: float | None
    producer: str | None
    selected: bool


class StoryPassage(TypedDict):
    """A passage; ``label`` and ``correct_labelers`` are None until it is labelled. ``answers``: by reader."""

    id: str
    permutation: str
    text: str
    label: int | None
    correct_labelers: list[str] | None
    answers: dict[str, str]


class StoryVerdict(TypedDict):
    """A verdict on a distinct answer, which labelers gave to so many ``passages``; ``votes``: by a second model."""

    answer: str
    correct: bool | None
    probability: float | None
    basis: str
    passages: int
    judge: str
    votes: list[Row]


class StoryReject(TypedDict):
    """What was left out at a stage, and why."""

    stage: str
    kind: str
    reason: str
    detail: str
    file: str | None
    position: int | None
    hint_id: str | None


class SubsetLabels(TypedDict):
    """A set of hints, by its digits: passages (``orders``), and those of label 2."""

    subset: str
    orders: int
    label_2: int


class HintRole(TypedDict):
    """What a hint contributes to label 2 (the table ``hint_roles``); ``digit``: its number in the passages."""

    digit: int
    hint: str
    shapley: float
    smallest_set: int | None
    harmed: float


class Labelling(TypedDict):
    """The readers whose answers decide labels, and :func:`quit.release.view.embedded_labels`; none where the build's
    profile is gone."""

    labelers: list[str]
    embedded_labels: str | None


class Story(Labelling):
    """A question with its rows of every table. A row has the columns of the table that it is named after, without
    ``question_id``; ``labelers``: readers whose answers decide labels."""

    question_id: str
    question: Row | None
    origins: list[Row]
    rejects: list[StoryReject]
    candidates: list[str]
    drawn_candidates: list[Row]
    hints: list[StoryHint]
    leak_findings: list[Row]
    description: Row | None
    probe: list[Row]
    split: Row | None
    passages: list[StoryPassage]
    verdicts: list[StoryVerdict]
    valid_answers: list[Row]
    reviews: list[Row]
    roles: Row | None
    sets: list[SubsetLabels]
    hint_roles: list[HintRole]
    changes: list[Row]
    overrides: list[Row]


def story(workspace: TableReader, name: str) -> Story:
    """Return everything the current tables say of one question, as JSON-like values.

    ``name``: a question id, or a source record's own id where only one question has it. A question that was left out
    on the way has the reason under ``rejects``. Raises :class:`InputError` when no question, or more than one, is
    meant. A row of ``reviews`` ``counts`` unless it is skipped, withdrawn, superseded, somebody else's, or set aside.
    """
    identity = name
    if not len(workspace.read("questions", columns=["question_id"], question_ids=[name])):
        with workspace.connect(tables=["questions", "origins", "rejects"]) as connection:
            identity = _resolve(connection, name)
    return next(stories(workspace, [identity]))


def stories(workspace: TableReader, question_ids: Sequence[str]) -> Iterator[Story]:
    """Yield the story of each of these questions, as :func:`story` returns it."""
    ids = f"({', '.join(f'${number + 1}' for number in range(len(question_ids))) or 'NULL'})"
    rows_of: dict[str, dict[str, list[Row]]] = {}
    counting = counting_reviews(workspace, question_ids)
    with workspace.connect(question_ids) as connection:
        connection.register("counting", counting.select(["review_id"]))
        for name, query in _QUERIES.items():
            sql = query.replace("SELECT", "SELECT question_id AS owner,", 1).replace("$ids", ids)
            rows_of[name] = grouped((row.pop("owner"), row) for row in sql_rows(connection, sql, list(question_ids)))
    labelling = _labelling(workspace)
    for identity in question_ids:
        yield _story(workspace, {name: rows_of[name].get(identity, []) for name in _QUERIES}, identity, labelling)


def _story(workspace: TableReader, rows: dict[str, list[Row]], identity: str, labelling: Labelling) -> Story:
    answers_of: dict[str, dict[str, str]] = {}
    order = {run.removeprefix("read:"): position for position, run in enumerate(workspace.state)}
    for row in sorted(rows.pop("answers"), key=lambda row: order[row["reader"]]):
        answers_of.setdefault(row["permutation"], {})[row["reader"]] = row["answer"]
    text = [hint["hint"] for hint in rows["hints"] if hint["selected"]]
    names = {
        permutation_name([hint["rank"]]): own_id(identity, hint["hint_id"])
        for hint in rows["hints"]
        if hint["selected"] and is_given(identity, hint["hint_id"])
    }
    rows["passages"] = [
        {
            "id": names.get(row["permutation"]) or passage_id(identity, row["permutation"]),
            "permutation": row["permutation"],
            "text": " ".join(passage_hints(text, row["permutation"])),
            "label": row["label"],
            "correct_labelers": row["labelers"],
            "answers": answers_of.get(row["permutation"], {}),
        }
        for row in rows["passages"]
    ]
    for row in rows["origins"]:
        row["where"] = f"{shown_file(row['file'])}, {unit(row['source'], row['file'])} {row['position'] + 1}"
    first = {name: next(iter(rows[name]), None) for name in _ONE_ROW}
    candidates = [row["candidate"] for row in rows["candidates"]]
    ours = {"candidates": candidates, "overrides": listed(workspace, identity)}
    return cast(Story, {"question_id": identity, **labelling, **rows, **first, **ours})


def _labelling(workspace: TableReader) -> Labelling:
    try:
        settings = settings_of(workspace)
    except QuitError:
        return {"labelers": [], "embedded_labels": None}
    labelers = [reader.name for reader in shown_readers(workspace, settings) if reader.role == "labeler"]
    return {"labelers": labelers, "embedded_labels": embedded_labels(workspace, settings)}


def _resolve(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    def rows(sql: str) -> list[Row]:
        return sql_rows(connection, sql, [name])

    for table in ("questions", "rejects"):
        if rows(f"SELECT 1 FROM {table} WHERE question_id = ? LIMIT 1"):
            return name
    matches = rows("SELECT DISTINCT question_id FROM origins WHERE record_id = ? ORDER BY 1")
    if len(matches) == 1:
        return matches[0]["question_id"]
    if matches:
        names = ", ".join(row["question_id"] for row in matches)
        raise InputError(f"{len(matches)} questions have the source id {name!r}: {names}. Name one of these.")
    for row in rows("SELECT stage, reason, detail, file FROM rejects WHERE record_id = ? LIMIT 1"):
        raise InputError(
            f"The record {name!r} of {row['file']} was left out at {row['stage']}: {plain_name(row['reason'])} "
            f"({row['detail'].rstrip('.')})."
        )
    near = rows(
        "SELECT question_id, max(greatest(jaro_winkler_similarity(question_id, $1), "
        "jaro_winkler_similarity(record_id, $1))) AS likeness FROM questions LEFT JOIN origins USING (question_id) "
        "GROUP BY 1 HAVING likeness > 0.9 ORDER BY 2 DESC, 1 LIMIT 3"
    )
    names = f" The nearest: {', '.join(row['question_id'] for row in near)}." if near else ""
    raise InputError(f"There is no question {name!r}.{names}")
