"""Searching a workspace's questions: one small table in memory, built from the Parquet files and built again when they
change."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from quit.common.rows import Row, sql_rows
from quit.dataset.release import Release
from quit.engine.questions import counting_reviews
from quit.engine.workspace import Workspace
from quit.errors import InputError, QuitError
from quit.release.view import shown_releases
from quit.sources import parse_source, read_sources

ORDERS = {
    "id": "question_id",
    "most": "share DESC NULLS LAST, question_id",
    "fewest": "share NULLS LAST, question_id",
    "hardest": "difficulty DESC NULLS LAST, question_id",
    "disagreement": "disagreement DESC NULLS LAST, question_id",
    "cut": "cut DESC, question_id",
    "leaks": "leaks DESC, question_id",
    "changed": "changed DESC, question_id",
    "reviewers": "reviewers DESC, question_id",
}
"""Order of the results: by id, by share of label 2, by difficulty, by the share of passages on which labelers disagree,
by replies cut at the token limit, by leaking hints, by labels that people changed, by people who reviewed."""
COLUMNS = {"share": "most", "disagreement": "disagreement", "cut": "cut", "leaks": "leaks", "changed": "changed",
           "reviewers": "reviewers"}  # fmt: skip
"""Columns of figures and their orders; one that is 0 for every question is not shown."""
FILTERS = {"state": "state", "type": "coarse", "difficulty": "difficulty_bin", "needs": "needs"}
"""What results can be narrowed to: the split (or why a question was left out), the coarse type, the difficulty's
bin, the fewest hints that suffice in every order."""
CHECKS = {
    "leak": "leaks > 0",
    "no-label-2": "fully = 0",
    "disagreement": "disagreement >= 0.5",
    "cut": "cut > 0",
    "changed": "changed > 0",
}
"""What an owner looks for: a hint leaks an answer; no passage has label 2; labelers disagree on half of the passages or
more; a reply was cut at the token limit; people changed labels."""

_OVERVIEW = """
    CREATE TABLE overview AS
    WITH labelled AS (
        SELECT question_id, count(*) AS passages, count(*) FILTER (label = 2) AS fully,
            count(*) FILTER (len(labelers) BETWEEN 1 AND $labelers - 1) / count(*) AS disagreement
        FROM labels GROUP BY 1
    ), gone AS (
        SELECT question_id, min(stage || ': ' || reason) AS reason, any_value(source) AS source FROM rejects
        WHERE kind = 'question' AND question_id IS NOT NULL GROUP BY 1
    ), everyone AS (
        SELECT question_id, question, answers, source FROM questions UNION ALL
        SELECT question_id, coalesce(t.question, question_id), coalesce(t.answers, []), source
        FROM gone ANTI JOIN questions USING (question_id) LEFT JOIN texts t USING (question_id)
    ), hinted AS (
        SELECT question_id, string_agg(hint, ' ' ORDER BY position) AS hints FROM hints GROUP BY 1
    ), leaking AS (
        SELECT question_id, count(DISTINCT hint_id) AS leaks FROM leak_findings WHERE NOT overridden GROUP BY 1
    ), shortened AS (
        SELECT question_id, count(*) FILTER (ended = 'length') AS cut, string_agg(DISTINCT ended, ', ' ORDER BY ended)
            FILTER (starts_with(ended, 'content_filter')) AS withheld FROM answers GROUP BY 1
    ), altered AS (
        SELECT question_id, count(*) FILTER (change = 'label') AS changed FROM changes GROUP BY 1
    ), reviewed AS (
        SELECT question_id, count(DISTINCT annotator) AS reviewers FROM live WHERE kind = 'annotation' GROUP BY 1
    )
    SELECT q.question_id, q.question, q.answers, q.source, d.coarse, d.difficulty, d.difficulty_bin,
           coalesce(s.split, g.reason, 'not split yet') AS state, l.passages, l.fully, l.fully / l.passages AS share,
           CASE WHEN $labelers > 1 AND NOT EXISTS (SELECT 1 FROM answers WHERE NOT asked) THEN l.disagreement END
               AS disagreement, coalesce(k.leaks, 0) AS leaks,
           coalesce(c.cut, 0) AS cut, c.withheld, coalesce(a.changed, 0) AS changed,
           coalesce(r.reviewers, 0) AS reviewers,
           CASE WHEN o.question_id IS NOT NULL THEN coalesce(fewest_in_every_order::VARCHAR, 'no set suffices') END
               AS needs,
           lower(strip_accents(
               concat_ws(' ', q.question_id, q.question, array_to_string(q.answers, ' '), h.hints)
           )) AS haystack
    FROM everyone q LEFT JOIN descriptions d USING (question_id) LEFT JOIN splits s USING (question_id)
    LEFT JOIN labelled l USING (question_id) LEFT JOIN gone g USING (question_id) LEFT JOIN hinted h USING (question_id)
    LEFT JOIN leaking k USING (question_id) LEFT JOIN shortened c USING (question_id)
    LEFT JOIN question_roles o USING (question_id)
    LEFT JOIN altered a USING (question_id) LEFT JOIN reviewed r USING (question_id)
"""


Version = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
"""Stage runs with hashes of their tables, and names of parts that people appended."""
Choices = Mapping[str, list[tuple[str, int]]]
"""Filter -> (value, questions of the collection)."""


@dataclass(frozen=True)
class Search:
    """Questions with every word of ``text`` in id, question, answers or hints (case and accents do not matter).

    ``filters``: name of :data:`FILTERS` -> value, or empty; ``order``: a name of :data:`ORDERS`; ``checks``: names of
    :data:`CHECKS` that must all hold.
    """

    text: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)
    order: str = "id"
    checks: Sequence[str] = ()

    def sql(self, choices: Choices) -> tuple[str, list[str]]:
        """Return FROM and WHERE, and their values. Raises ``InputError`` for a name or value that there is not."""
        filters = {name: value for name, value in self.filters.items() if value}
        options = [("order", self.order, list(ORDERS)), *(("check", name, list(CHECKS)) for name in self.checks)]
        options += [(name, value, [choice for choice, _ in choices[name]]) for name, value in filters.items()]
        for name, value, names in options:
            if value not in names:
                raise InputError(f"There is no {name} {value!r}. Known: {', '.join(names) or 'none'}.")
        words = self.text.split()
        where = [
            "true",
            *(CHECKS[name] for name in self.checks),
            *("contains(haystack, lower(strip_accents(?)))" for _ in words),
            *(f"{FILTERS[name]} = ?" for name in filters),
        ]
        return f"FROM overview WHERE {' AND '.join(where)}", [*words, *filters.values()]


@dataclass(frozen=True)
class Results:
    """``rows``: ``page`` of questions (from 1) of so many ``pages``; ``total``: how many questions there are;
    ``checks``: name of :data:`CHECKS` -> questions of the collection; ``columns``: those of :data:`COLUMNS` that are
    not 0 for every question."""

    rows: list[Row]
    page: int
    pages: int
    total: int
    choices: Choices
    checks: Mapping[str, int]
    columns: list[str]


class Lookup:
    """The search table of one workspace; ``labelers``: how many there are (below two none can
    disagree, nor where not all were asked about every passage). Safe to use from several threads."""

    def __init__(self, workspace: Workspace | Release, labelers: int = 0) -> None:
        self.workspace = workspace
        self._values = {"labelers": labelers}
        self._lock = threading.Lock()
        self._version: Version | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None

    def search(self, search: Search, page: int = 1, size: int = 50) -> Results:
        """Return one ``page`` (from 1) of results, the last one for a higher number. Raises as :meth:`Search.sql`
        does."""
        cursor = self._cursor()
        choices = self._choices(cursor)
        matching, values = search.sql(choices)
        total = cursor.execute(f"SELECT count(*) {matching}", values).fetchall()[0][0]
        pages = max(1, -(-total // size))
        page = min(max(page, 1), pages)
        query = f"SELECT * EXCLUDE (haystack) {matching} ORDER BY {ORDERS[search.order]} LIMIT ? OFFSET ?"
        rows = sql_rows(cursor, query, [*values, size, (page - 1) * size])
        counts = _cells(cursor, "count(*) FILTER ({})", CHECKS)
        figures = _cells(cursor, "count(*) FILTER ({} > 0)", {column: column for column in COLUMNS})
        columns = [column for column, count in figures.items() if count]
        return Results(rows, page, pages, total, choices, counts, columns)

    def neighbours(self, question_id: str, search: Search) -> tuple[str | None, str | None]:
        """Return the ids before and after a question in the results of a search; None at their ends. Raises as
        :meth:`Search.sql` does."""
        cursor = self._cursor()
        matching, values = search.sql(self._choices(cursor))
        rows = cursor.execute(
            f"""SELECT before, after FROM (
                SELECT question_id, lag(question_id) OVER found AS before, lead(question_id) OVER found AS after
                {matching} WINDOW found AS (ORDER BY {ORDERS[search.order]})) WHERE question_id = ?""",
            [*values, question_id],
        ).fetchall()
        return rows[0] if rows else (None, None)

    def _choices(self, cursor: duckdb.DuckDBPyConnection) -> Choices:
        return {
            name: cursor.execute(
                f"SELECT {column}, count(*) FROM overview WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"
            ).fetchall()
            for name, column in FILTERS.items()
        }

    def row(self, question_id: str) -> Row | None:
        """Return the question's row of the results, or None where the collection has no such question."""
        query = "SELECT * EXCLUDE (haystack) FROM overview WHERE question_id = ?"
        rows = sql_rows(self._cursor(), query, [question_id])
        return rows[0] if rows else None

    def releases(self, question_id: str) -> list[Row]:
        """Return ``release, split, passages, fully`` of the releases that hold a question, by name."""
        rows: list[Row] = []
        sql = """SELECT any_value(split) AS split, count(*) AS passages, count(*) FILTER (label = 2) AS fully
            FROM splits JOIN labels USING (question_id) WHERE question_id = ? GROUP BY question_id"""
        for release in shown_releases(self.workspace):
            with release.connect(tables=["splits", "labels"]) as connection:
                rows += [{"release": release.name, **row} for row in sql_rows(connection, sql, [question_id])]
        return rows

    def version(self) -> Version:
        """Return what changes when the workspace does: its tables and the parts that people appended."""
        logs = [
            path.name
            for name in ("reviews", "overrides")
            for path in (self.workspace.path / name).glob("part-*.parquet")
        ]
        return tuple(self.workspace.versions.items()), tuple(sorted(logs))

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            version = self.version()
            if self._connection is None or version != self._version:
                connection = self.workspace.connect(connection=duckdb.connect())  # with a table for its cursors
                connection.register("live", counting_reviews(self.workspace))
                connection.register("texts", _texts_left_out(self.workspace))
                connection.execute(_OVERVIEW, self._values)
                self._connection, self._version = connection, version
            return self._connection.cursor()


def _texts_left_out(workspace: Workspace | Release) -> pa.Table:
    """Return ``question_id, question, answers`` of the questions that ``collect`` left out, from the sources as far as
    these are still there unchanged."""
    sql = "SELECT source, file, position, question_id FROM rejects WHERE stage = 'collect' AND kind = 'question'"
    places = {tuple(place): question_id for *place, question_id in workspace.rows(sql, ["rejects"])}
    texts: list[tuple[str, str, list[str]]] = []
    if places and isinstance(workspace, Workspace) and workspace.build:
        checksums = [source["sha256"] for source in workspace.current()["collect"].manifest["sources"]]
        with suppress(QuitError):
            for record in read_sources([*map(parse_source, workspace.build["sources"])], checksums):
                if (raw := record.question) and (question_id := places.get((raw.source, raw.file, raw.position))):
                    texts.append((question_id, raw.question, [*raw.answers]))
    kinds = {"question_id": pa.string(), "question": pa.string(), "answers": pa.list_(pa.string())}
    return pa.table([pa.array([row[at] for row in texts], kind) for at, kind in enumerate(kinds.values())], [*kinds])


def _cells(cursor: duckdb.DuckDBPyConnection, aggregate: str, columns: Mapping[str, str]) -> dict[str, Any]:
    """Return name -> an aggregate of a column, or of a condition, over all questions."""
    cells = ", ".join(map(aggregate.format, columns.values()))
    return dict(zip(columns, cursor.execute(f"SELECT {cells} FROM overview").fetchall()[0], strict=True))
