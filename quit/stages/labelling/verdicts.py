"""Which annotations count, the votes in them, and the decisions that follow by the owner's rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.columns import first_matches, is_in, plain, rows_hash
from quit.common.ids import content_hash
from quit.common.rows import Row, cursor, grouped, sql_rows, tuples
from quit.models.protocols import NO_ANSWER
from quit.settings import Review
from quit.text.answers import answer_key

DECISIONS = pa.schema(
    [
        pa.field("question_id", pa.string(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("answer", pa.string()),
        pa.field("decision", pa.bool_()),
        pa.field("yes", pa.int64(), nullable=False),
        pa.field("no", pa.int64(), nullable=False),
        pa.field("basis", pa.string(), nullable=False),
        pa.field("reviews", contracts.tables.TEXTS, nullable=False),
    ]
)
"""``content``: what its voters saw (:func:`content_of`). ``kind``: ``answer`` (key: the answer's) or ``flag``
(key: its name). ``decision``: null while it is open. ``basis``: ``unanimous``, ``majority``, ``adjudicator``, ``tie``,
``waiting`` (for the adjudicator) or ``too_few``.
``reviews``: those who voted for the decision (all voters while it is open)."""

_LATEST = """
    WITH versions AS (
        SELECT project, annotation, version, state, annotator, question_id, content, updated, review_id, task, text
        FROM reviews WHERE kind = 'annotation' AND state NOT IN ('overwritten', 'copied')
    ), latest AS (
        SELECT * FROM versions QUALIFY row_number() OVER (PARTITION BY project, annotation ORDER BY version DESC) = 1
    )
    SELECT * FROM latest WHERE list_contains($states, state)
    QUALIFY row_number() OVER (PARTITION BY annotator, question_id, content ORDER BY updated DESC, annotation DESC) = 1
"""

COVERAGE = ("question_id", "answer", "basis")
"""Columns of ``verdicts`` that tell how far people judged."""
FLAGS = ("leak", "hint_false", "gold_wrong", "ambiguous", "offensive")
"""What annotators can say is wrong with a question. Only those in ``review.removing_flags`` change anything."""
HINT_FLAGS = ("leak", "hint_false", "offensive")
"""Flags that concern a question's hints too."""


def content_of(question: str, gold_answers: Sequence[str], hints: Sequence[str] | None = None) -> str:
    """Return a hash of what an annotator saw: the question and the keys of its gold answers, and the ``hints`` in any
    order where what was said concerns them too."""
    golds = sorted({answer_key(answer) for answer in gold_answers})
    return content_hash("seen", question, golds, [] if hints is None else ["hints", *sorted(hints)], size=8)


def contents(questions: pa.Table, ranked_hints: pa.Table, question_ids: Iterable[str]) -> dict[str, set[str]]:
    """Return question id -> the contents that annotators see of it now, without and with hints, of some questions.

    An empty content, of rows that say none, fits as well. A question that is not in ``questions`` has none.
    """
    ids = pa.array(sorted({*question_ids}), pa.string())
    rows = questions.filter(pc.is_in(questions["question_id"], ids))
    hints = ranked_hints.filter(pc.and_(pc.is_in(ranked_hints["question_id"], ids), ranked_hints["selected"]))
    hints_of: dict[str, list[str]] = grouped(tuples(hints, "question_id", "hint"))
    return {
        question_id: {"", content_of(text, golds), content_of(text, golds, hints_of.get(question_id, []))}
        for question_id, text, golds in tuples(rows, "question_id", "question", "answers")
    }


def fitting(rows: pa.Table, questions: pa.Table, ranked_hints: pa.Table) -> pa.Table:
    """Return the rows, of decisions or of reviews, whose question still shows what its annotators saw; for flags of its
    hints, the hints too."""
    content = rows["content"]
    if "content_with_hints" in rows.column_names:  # reviews
        of_hints = pc.and_(pc.equal(rows["kind"], "flag"), pc.is_in(rows["text"], pa.array(HINT_FLAGS)))
        content = pc.if_else(of_hints, rows["content_with_hints"], content)
    pairs_of_rows = rows.select(["question_id"]).append_column("content", pc.fill_null(content, ""))
    pairs = pairs_of_rows.group_by(["question_id", "content"]).aggregate([])
    now = contents(questions, ranked_hints, pairs["question_id"].to_pylist())
    fits = [content in now.get(question_id, ()) for question_id, content in tuples(pairs, "question_id", "content")]
    if all(fits):
        return rows
    fitting = pairs.filter(pa.array(fits, pa.bool_()))
    return rows.filter(pa.array(first_matches(pairs_of_rows, fitting, ("question_id", "content")) >= 0))


def live_reviews(reviews: pa.Table) -> pa.Table:
    """Return the rows of ``reviews`` that count: the latest version of each annotation, unless withdrawn or skipped;
    one annotation per person, question and content (the newest). A version that someone else wrote over an annotator's
    work, or that nobody submitted, does not count."""
    if not len(reviews):
        return reviews
    with cursor() as connection:
        connection.register("reviews", reviews)
        return connection.sql(
            f"SELECT * FROM reviews WHERE review_id IN (SELECT review_id FROM ({_LATEST})) "
            "ORDER BY question_id, annotator, kind, answer_key, text",
            params={"states": ["submitted"]},
        ).to_arrow_table()


def annotations_of(live: pa.Table) -> pa.Table:
    """Return the rows of annotations themselves: one per person, question and content."""
    return live.filter(pc.equal(live["kind"], "annotation"))


def rows_of_pages(live: pa.Table, blind: bool) -> pa.Table:
    """Return the rows that were made on blind pages, or with ``blind`` false those made on all others."""
    return live.filter(pc.equal(pc.fill_null(live.column("blind"), False), blind))


def unclear_annotations(reviews: pa.Table) -> list[Row]:
    """Return the annotations about which their annotators have to be asked, by annotator and question.

    Keys: ``annotator``, ``question_id``, ``project``, ``task``, ``ask`` (``empty``, ``both`` or ``gold``: see the
    column ``text`` of ``reviews``) and ``answers``: those without a verdict. One that its annotator updated is judged
    as it is now.
    """
    with cursor() as connection:
        connection.register("reviews", reviews)
        return sql_rows(
            connection,
            f"""
            SELECT l.annotator, l.question_id, l.project, l.task, l.text AS ask,
                   coalesce(list(r.answer ORDER BY r.answer) FILTER (r.kind = 'answer' AND r.correct IS NULL), [])
                   AS answers
            FROM ({_LATEST}) l JOIN reviews r USING (review_id)
            WHERE l.text IS NOT NULL GROUP BY ALL ORDER BY ALL
            """,
            {"states": ["submitted", "empty"]},
        )


def votes(live: pa.Table) -> pa.Table:
    """Return ``question_id, content, kind, key, answer, annotator, yes, review_id``: one row per person, content and
    answer or flag.

    An answer is voted on by those who saw it, and by those who typed it (accepting), except by people whose
    annotation is unclear (see :func:`unclear_annotations`). ``NO ANSWER``, typed, is no answer. A flag is voted
    on by everyone who submitted.
    """
    with cursor() as connection:
        connection.register("live", live)
        return connection.sql(
            """
            SELECT question_id, coalesce(content, '') AS content, 'answer' AS kind, answer_key AS key,
                   min(answer) AS answer, annotator, bool_or(correct) AS yes, min(review_id) AS review_id
            FROM live WHERE kind IN ('answer', 'missing') AND answer_key <> $nothing AND correct IS NOT NULL
            GROUP BY ALL
            UNION ALL
            SELECT a.question_id, f.content, 'flag', f.text, NULL, a.annotator,
                   exists(SELECT 1 FROM live m WHERE m.kind = 'flag' AND m.review_id = a.review_id AND m.text = f.text),
                   a.review_id
            FROM live a JOIN (
                SELECT DISTINCT question_id, text, list_contains($hint_flags, text) AS of_hints,
                       coalesce(if(of_hints, content_with_hints, content), '') AS content
                FROM live WHERE kind = 'flag'
            ) f ON a.question_id = f.question_id
                AND coalesce(if(f.of_hints, a.content_with_hints, a.content), '') = f.content
            WHERE a.kind = 'annotation'
            ORDER BY 1, 2, 3, 4, 6
            """,
            params={"hint_flags": list(HINT_FLAGS), "nothing": answer_key(NO_ANSWER)},
        ).to_arrow_table()


def decide(live: pa.Table, settings: Review) -> pa.Table:
    """Return the decisions (schema ``DECISIONS``) under the owner's rule, sorted by question, content, kind, key.

    ``live``: the reviews that count (:func:`live_reviews`).

    ``majority``: more than half of the voters; a tie stays open. ``adjudicator``: the named person's verdict, else a
    unanimous one, else it waits. With fewer voters than ``minimum`` (and no adjudicator among them) it stays open.
    """
    if not len(live):
        return DECISIONS.empty_table()
    with cursor() as connection:
        connection.register("votes", votes(live))
        decisions = connection.sql(
            """
            WITH tally AS (
                SELECT question_id, content, kind, key, min(answer) AS answer,
                       count(*) FILTER (yes) AS yes, count(*) FILTER (NOT yes) AS no,
                       bool_or(yes) FILTER ($rule = 'adjudicator' AND lower(annotator) = $adjudicator) AS ruled
                FROM votes GROUP BY question_id, content, kind, key
            ), settled AS (
                SELECT *, CASE
                    WHEN ruled IS NOT NULL THEN 'adjudicator'
                    WHEN yes + no < $minimum THEN 'too_few'
                    WHEN yes = 0 OR no = 0 THEN 'unanimous'
                    WHEN $rule = 'adjudicator' THEN 'waiting'
                    WHEN yes = no THEN 'tie'
                    ELSE 'majority' END AS basis
                FROM tally
            ), decided AS (
                SELECT *, CASE basis
                    WHEN 'adjudicator' THEN ruled
                    WHEN 'unanimous' THEN yes > 0
                    WHEN 'majority' THEN yes > no END AS decision
                FROM settled
            )
            SELECT d.question_id, d.content, d.kind, d.key, any_value(d.answer) AS answer,
                   any_value(d.decision) AS decision, any_value(d.yes) AS yes, any_value(d.no) AS no,
                   any_value(d.basis) AS basis,
                   list(v.review_id ORDER BY v.review_id) FILTER (d.decision IS NULL OR v.yes = d.decision) AS reviews
            FROM decided d JOIN votes v USING (question_id, content, kind, key)
            GROUP BY d.question_id, d.content, d.kind, d.key ORDER BY 1, 2, 3, 4
            """,
            params={
                "rule": settings.adjudication,
                "adjudicator": (settings.adjudicator or "").lower(),  # as servers write addresses
                "minimum": settings.minimum,
            },
        ).to_arrow_table()
    return decisions.cast(DECISIONS)


def under_review(decisions: pa.Table, splits: pa.Table, settings: Review) -> pa.Table:
    """Return the decisions on questions of the splits under review: no other has an effect on labels. ``splits``: those
    before any label update."""
    inside = splits["question_id"].filter(pc.is_in(splits["split"], pa.array([*settings.splits])))
    return decisions.filter(pc.is_in(decisions["question_id"], plain(inside)))


def settled_rows(decisions: pa.Table) -> pa.Table:
    """Return the decisions that the owner's rule settles; the others are open."""
    return decisions.filter(decisions["decision"].is_valid())


class Coverage(TypedDict):
    """How far people judged the distinct answers of some splits; ``share``: judged ones; ``reviewed``: questions."""

    splits: list[str]
    answers: int
    judged: int
    share: float
    questions: int
    reviewed: int


def coverage(verdicts: Iterable[pa.Table], splits: pa.Table, among: Sequence[str]) -> Coverage:
    """Return how far people judged the splits ``among``.

    ``verdicts``: columns of :data:`COVERAGE`; the basis of people's is ``review``. Gold answers count
    where a reader gave them; NO ANSWER does not. A question is reviewed when people judged all its answers, and it has
    any.
    """
    inside = splits["question_id"].filter(pc.is_in(splits["split"], pa.array([*among])))
    question_ids, tallies = plain(inside), []
    for rows in verdicts:
        counted = pc.and_(is_in(rows["question_id"], question_ids), pc.not_equal(rows["answer"], NO_ANSWER))
        judged = pc.cast(pc.equal(rows["basis"], "review"), pa.int64())
        columns = {"question_id": plain(rows["question_id"]), "judged": judged}
        tallies.append(pa.table(columns).filter(counted))
    by_question = pa.concat_tables(tallies).group_by("question_id").aggregate([("judged", "count"), ("judged", "sum")])
    whole, judged = (by_question[f"judged_{name}"] for name in ("count", "sum"))
    answers, judged_answers = (pc.sum(column).as_py() or 0 for column in (whole, judged))
    return {
        "splits": list(among),
        "answers": answers,
        "judged": judged_answers,
        "share": judged_answers / answers if answers else 1.0,
        "questions": len(question_ids),
        "reviewed": pc.sum(pc.equal(whole, judged)).as_py() or 0,
    }


def decisions_hash(decisions: pa.Table) -> str:
    """Return a hash of the settled decisions and their reviews: all that a label update depends on."""
    return rows_hash(settled_rows(decisions), lambda piece: ["reviews", piece.to_pydict()], size=8)


def disagreements(decisions: pa.Table) -> list[Row]:
    """Return the open decisions as rows, those with most voters first: the queue of the adjudicator."""
    rows = decisions.filter(pc.is_in(decisions.column("basis"), pa.array(["tie", "waiting"]))).to_pylist()
    return sorted(rows, key=lambda row: (-(row["yes"] + row["no"]), row["question_id"], row["kind"], row["key"]))
