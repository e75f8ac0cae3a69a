"""How far judges agree, with people and with one another: on all answers, and by length of the answer, reader that gave
it, and family of that reader, since a judge may prefer long answers or its own family's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import pyarrow as pa

from quit.common.rows import Row, sql_rows
from quit.dataset.release import Release
from quit.engine.questions import counting_reviews
from quit.engine.reading import TableReader
from quit.engine.workspace import Workspace
from quit.evaluate.agreement import kappas
from quit.release.view import reader_families
from quit.render.table import VERDICTS, Table, number, share
from quit.settings import Review, Settings
from quit.stages.labelling.verdicts import DECISIONS, decide, rows_of_pages
from quit.text.vendors import family

if TYPE_CHECKING:
    import duckdb

PEOPLE = "people"
_RULINGS = f"""
    CREATE TEMP TABLE rulings AS
    SELECT question_id, answer_key, judge, producer, correct, 1 AS place FROM own WHERE basis = 'model'
    UNION SELECT question_id, answer_key, judge, producer, correct, if(judge IN (SELECT judge FROM own), 1, 2)
    FROM second_verdicts WHERE basis = 'model'
    UNION SELECT question_id, answer_key, '{PEOPLE}', '', correct, 0 FROM own WHERE basis = 'review'
    UNION SELECT question_id, key, '{PEOPLE}', '', decision, 0 FROM decisions
    WHERE kind = 'answer' AND decision IS NOT NULL
"""
_PARTS = """
    CREATE TEMP TABLE parts AS SELECT question_id, answer_key, '' AS kind, 'all' AS part FROM own
    UNION ALL SELECT question_id, answer_key, 'words',
        CASE WHEN words = 1 THEN '1 word' WHEN words = 2 THEN '2 words' WHEN words < 5 THEN '3 to 4 words'
        ELSE '5 words or more' END
    FROM (SELECT *, len(string_split_regex(trim(answer), '\\s+')) AS words FROM own WHERE $detailed)
    UNION SELECT question_id, answer_key, 'reader', reader FROM distinct_answers WHERE $detailed
    UNION SELECT question_id, answer_key, 'family', family FROM distinct_answers JOIN families USING (reader)
"""
_PARTS_IN_WORDS = {"words": "of {}", "reader": "of {}", "family": "of the family {}"}
_HEADS = ("judges", "answers", "number", "alike", "kappa", "accept")
_NOTE = (
    "Of answers that both had to decide. Kappa: Cohen's, with its 95% interval over draws of questions. Accept: the "
    "shares that the first and the second accept."
)
_COUNTS = ("both", "only_first", "only_second", "neither", "unread")
_PAIR = """
    SELECT kind || '/' || part AS part, question_id,
        count(*) FILTER (a.correct AND b.correct) AS both,
        count(*) FILTER (a.correct AND NOT b.correct) AS only_first,
        count(*) FILTER (NOT a.correct AND b.correct) AS only_second,
        count(*) FILTER (NOT a.correct AND NOT b.correct) AS neither,
        count(*) FILTER (a.correct IS NULL OR b.correct IS NULL) AS unread
    FROM rulings a JOIN rulings b USING (question_id, answer_key) JOIN parts USING (question_id, answer_key)
    WHERE a.judge = $first AND b.judge = $second GROUP BY ALL
"""


@dataclass(frozen=True)
class JudgeAgreement:
    """Two judges (``first`` may be :data:`PEOPLE`) on answers that both had to decide. ``by``, ``part``: of which
    answers: ``words`` and how many, ``reader`` or ``family`` and its name; nothing and ``all``.

    ``both``, ``only_first``, ``only_second``, ``neither``: who accepts so many answers; ``unread``: answers on which
    one of them gave no readable verdict. ``kappa``: Cohen's, with its 95% interval over draws of questions; None where
    one of them always says the same, and an interval that was not asked for.
    """

    first: str
    second: str
    by: str
    part: str
    both: int
    only_first: int
    only_second: int
    neither: int
    unread: int
    kappa: float | None
    low: float | None
    high: float | None

    @property
    def answers(self) -> int:
        """The answers that both decided."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def alike(self) -> str:
        """The share on which they agree, as text."""
        return share(self.both + self.neither, self.answers)


class PageAgreement(TypedDict):
    """People and the labels' judge on blind pages, or on all others."""

    blind: bool
    agreement: Row


class Judges(TypedDict):
    """How far judges agree with people and with one another: rows as :class:`JudgeAgreement`."""

    agreements: list[Row]
    pages: list[PageAgreement]


def judge_agreements(
    opened: TableReader, families: Mapping[str, str] | None = None, decisions: pa.Table | None = None
) -> list[JudgeAgreement]:
    """Return the agreement of every two judges of a workspace or release: people first, then the labels' own judge.

    ``families``: reader -> its family, for the agreement on parts of the answers and for intervals. ``decisions``:
    people's (schema ``DECISIONS``), beside the verdicts of theirs in the tables.
    """
    readers = families if families and len({*families.values()}) > 1 else {}  # of one family are all
    with opened.connect(tables=["second_verdicts", "distinct_answers"]) as connection:
        connection.register("own", opened.read("verdicts", runs=["judge"]))
        connection.register("decisions", DECISIONS.empty_table() if decisions is None else decisions)
        names = {"reader": [*readers], "family": [*readers.values()]}
        connection.register("families", pa.table(names, pa.schema([(name, pa.string()) for name in names])))
        connection.execute(_RULINGS)
        connection.execute(_PARTS, {"detailed": families is not None})
        judges = connection.execute("SELECT DISTINCT place, judge, producer FROM rulings ORDER BY ALL").fetchall()
        return [
            agreement
            for (_, *first), (_, *second) in combinations(judges, 2)
            for agreement in _agreements(connection, first, second, families is not None)
        ]


def _agreements(
    connection: duckdb.DuckDBPyConnection, first: Sequence[str], second: Sequence[str], detailed: bool
) -> Iterator[JudgeAgreement]:
    """Yield the agreement of two judges, each a name and what it rests on."""
    rows = connection.sql(_PAIR, params={"first": first[0], "second": second[0]}).to_arrow_table()
    families = {family(producer): name for name, producer in (second, first)}
    parts, questions = (rows[name].combine_chunks().dictionary_encode() for name in ("part", "question_id"))
    cells = np.zeros((len(questions.dictionary), len(parts.dictionary), len(_COUNTS)), np.int64)
    cells[questions.indices, parts.indices] = np.stack([rows[name] for name in _COUNTS], axis=1)
    values = kappas(cells[..., :4], 2000 if detailed else 0)
    for name, counts, kappa in sorted(
        zip(parts.dictionary.to_pylist(), cells.sum(axis=0).tolist(), values, strict=True)
    ):
        by, _, part = name.partition("/")
        if by == "family" and part in families:
            part += f", that of {families[part]}"
        yield JudgeAgreement(first[0], second[0], by, part, *counts, *kappa)


def judge_figures(opened: Workspace | Release, settings: Settings) -> Judges:
    """Return how far judges agree with people and with one another, and the labels' judge with people by page."""
    live = counting_reviews(opened)
    agreements = judge_agreements(opened, reader_families(opened, settings), decide(live, settings.review))
    return {"agreements": [*map(asdict, agreements)], "pages": _on_pages(opened, settings.review, live)}


def _on_pages(opened: Workspace | Release, settings: Review, live: pa.Table) -> list[PageAgreement]:
    pages: list[PageAgreement] = []
    for blind in (True, False):
        agreements = judge_agreements(opened, decisions=decide(rows_of_pages(live, blind), settings))
        if agreements and agreements[0].first == PEOPLE:
            pages.append({"blind": blind, "agreement": asdict(agreements[0])})
    return pages


def disagreements(opened: TableReader) -> list[Row]:
    """Return the answers on which another judge disagrees with the judge, or the judge said nothing readable, most
    passages at stake first; ``second``: that other judge's name."""
    with opened.connect(tables=["verdicts", "second_verdicts", "questions"]) as connection:
        return sql_rows(
            connection,
            """
            SELECT v.question_id, q.question, q.answers AS gold, v.answer, v.correct, v.raw,
                s.judge AS second, s.correct AS second_correct, s.probability AS second_probability, v.passages
            FROM verdicts v JOIN second_verdicts s USING (question_id, answer_key) JOIN questions q USING (question_id)
            WHERE v.basis = 'model' AND v.producer <> s.producer AND v.correct IS DISTINCT FROM s.correct
            ORDER BY v.passages DESC, v.question_id, v.answer_key, s.judge
            """,
        )


def agreement_tables(agreements: Sequence[JudgeAgreement]) -> list[Table]:
    """Return the agreement on all answers, and that on parts of them."""
    tables = []
    for title, rows in (
        ("Agreement of judges", [row for row in agreements if not row.by]),
        ("Agreement by length, reader and family of the reader", [row for row in agreements if row.by]),
    ):
        cells = [
            (f"{row.first}, {row.second}", _PARTS_IN_WORDS.get(row.by, "{}").format(row.part), row.answers, row.alike,
             number(row.kappa) + ("" if row.low is None else f" ({number(row.low)} to {number(row.high)})"),
             ", ".join(share(row.both + alone, row.answers) for alone in (row.only_first, row.only_second)))
            for row in rows
        ]  # fmt: skip
        unread = [f" {row.first}, {row.second}: {row.unread:,} not readable." for row in rows if row.unread]
        if cells:
            note = _NOTE if rows[0].by else _NOTE + "".join(unread)
            tables.append(Table(title, _HEADS, cells, (1,), note, fold=bool(rows[0].by)))
    return tables


def disagreement_table(rows: Sequence[Row], limit: int) -> Table:
    """Return what :func:`disagreements` returns as a table of ``limit`` rows at most (0: all)."""
    cells = [
        (f"{row['passages']:,}", VERDICTS[row["correct"]],
         f"{row['second']}: {VERDICTS[row['second_correct']]} {number(row['second_probability'], '.2f', '')}".strip(),
         row["answer"],
         "; ".join(row["gold"]), row["question"])
        for row in rows[: limit or None]
    ]  # fmt: skip
    heads = ("times given", "judge", "other judge", "answer", "gold", "question")
    note = "--limit 0 shows all." if len(rows) > len(cells) else ""
    return Table("Where they differ", heads, cells, (1, 2, 3, 4, 5), note, len(rows) - len(cells))
