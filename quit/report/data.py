"""Every figure of the report, out of a workspace's tables: JSON-like values, the same for the same workspace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import duckdb

from quit.common.progress import advance
from quit.common.rows import Row, sql_rows
from quit.dataset.files import current_files
from quit.dataset.release import Release, list_rows
from quit.dataset.statistics import statistics_of
from quit.engine.reading import TableReader
from quit.engine.usage import spent, totals
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.evaluate.labels import SPLITS
from quit.release.show import imported_lines
from quit.release.view import embedded_labels, shown_judge, shown_readers, shown_releases
from quit.report.charts import MAX_ROWS
from quit.report.examples import example_passage, examples
from quit.report.facts import Convergence, Difficulty, Facts, Leakage, ModelRequests
from quit.report.given import given_figures
from quit.report.labels import split_figures
from quit.report.people import review_progress
from quit.report.readers import PROBE, agreement_figures
from quit.review.status import review_status
from quit.settings import PassageDesign, Settings
from quit.status.judges import judge_figures
from quit.status.losses import funnel, leakage_losses, left_out, ways_out
from quit.status.notes import small_pool, type_agreement
from quit.status.partial import partly_asked
from quit.status.replies import reply_counts
from quit.status.summary import usage_table
from quit.text.words import shell_word
from quit.version import __version__

Figure = TypeVar("Figure")
_BARS = 20  # of a histogram
_FIGURES = 19  # steps of ``gather`` that progress is reported about


def gather(workspace: Workspace | Release, settings: Settings) -> Facts:
    """Return all that the report shows; ``None`` or empty where the workspace knows nothing of it.

    Raises ``InputError`` where nothing has been collected yet.
    """
    releases = shown_releases(workspace)
    release = workspace if isinstance(workspace, Release) else None
    build = workspace if isinstance(workspace, Workspace) else None
    design = design_of(release, settings)
    with workspace.connect() as connection:
        if not connection.execute("SELECT count(*) FROM questions").fetchall()[0][0]:
            raise InputError(f"{workspace} holds no question yet. Run: quit build -w {shell_word(workspace)}")
        readers = _figure(_readers(workspace, settings, connection))
        answering = [reader for reader in readers if f"read:{reader['name']}" in workspace.state]
        by_hints, patterns = reply_counts(workspace, [reader["name"] for reader in answering])
        status = review_status(build, settings.review) if build else None
        return {
            "name": release.name if release else settings.card.name or workspace.name,
            "date": last_changed(workspace),
            "program": __version__,
            "profile": Path(workspace.build["profile"]).name if workspace.build else None,
            "counts": _figure(_counts(connection)),
            "design": design.words,
            "readers": readers,
            "judge": shown_judge(workspace, settings)[0],
            "embedded_labels": embedded_labels(workspace, settings),
            "release": release is not None,
            "imported": imported_lines(release) if release and release.imported else [],
            "rejects": _figure(sql_rows(connection, _REJECTS)),
            "ways_out": ways_out(left_out(build), build) if build else None,
            "sources": _figure(sql_rows(connection, _SOURCES)),
            "convergence": _figure(_convergence(connection)),
            "leakage": _figure(_leakage(build, connection) if build else None),
            "probe": _figure(sql_rows(connection, PROBE)),
            "types": _figure(_types(connection)),
            "difficulty": _figure(_difficulty(connection)),
            "splits": _figure(split_figures(connection)),
            "given": _figure(given_figures(connection) if design.is_given else None),
            "drawn_from_all": sql_rows(connection, _PARAMETRIC) if _train(release, settings) == "any" else [],
            "passage": _figure(example_passage(workspace, connection, readers)),
            "examples": _figure(examples(workspace, connection)),
            "funnel": _figure(_funnel(build, releases) if build else []),
            "small_pool": small_pool(build) if build else None,
            "statistics": _figure(release.facts["statistics"] if release else _statistics(build) if build else None),
            "readers_by_hints": [
                {"reader": reader, "hints": hints, **counts._asdict()} for reader, hints, counts in sorted(by_hints)
            ],
            "agreement": _figure(agreement_figures(answering, patterns)),
            "asked": partly_asked(workspace),
            "type_agreement": dict(zip(("typed", "coarse", "fine"), type_agreement(workspace), strict=True)),
            "judges": _figure(judge_figures(workspace, settings)),
            "review": _figure(review_progress(build, status) if build and status else None),
            "audit": (release.facts.get("verification", {}) if release else status or {}).get("audit"),
            "usage": _figure(_usage(workspace, settings)),
            "releases": _figure(list_rows(releases)),
        }


def _figure(value: Figure) -> Figure:
    advance("figures", 1, _FIGURES)
    return value


def last_changed(workspace: TableReader) -> str | None:
    """Return the day (UTC, ISO 8601) on which the current tables last changed; None where nothing is current, as in a
    release. Not the clock's: the same workspace gives the same report."""
    path = workspace.path / "state.json"
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat() if path.exists() else None


def _funnel(workspace: Workspace, releases: Sequence[Release]) -> list[tuple[str, int]]:
    """Questions from the sources to the releases; the splits, which part them, as one step."""
    steps = funnel(workspace)
    sizes = ((release.name, release.facts["counts"]["questions"]["all"]) for release in releases)
    in_releases = ((f"in release {name}", size) for name, size in sizes)
    return [*steps[:-3], ("in train, dev or test", sum(count for _, count in steps[-3:])), *in_releases]


def _counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    return sql_rows(
        connection,
        """
        SELECT (SELECT count(*) FROM splits) AS questions, (SELECT count(*) FROM labels) AS passages,
            (SELECT count(*) FROM labels WHERE label = 2) AS fully,
            (SELECT CASE WHEN count(*) = count(parametric) THEN count(*) FILTER (parametric) END FROM splits)
                AS parametric,
            (SELECT count(*) FROM valid_answers SEMI JOIN splits USING (question_id)) AS valid_answers,
            (SELECT count(*) FROM origins) AS records
        """,
    )[0]


def _readers(workspace: TableReader, settings: Settings, connection: duckdb.DuckDBPyConnection) -> list[dict[str, str]]:
    """The profile's (or a release's) readers, then those that have answers and are in no profile."""
    readers = [
        {"name": reader.name, "role": reader.role, "kind": reader.kind} for reader in shown_readers(workspace, settings)
    ]
    names = {reader["name"] for reader in readers}
    answering = sql_rows(connection, "SELECT DISTINCT reader FROM distinct_answers ORDER BY 1")
    return [
        *readers,
        *({"name": row["reader"], "role": "", "kind": ""} for row in answering if row["reader"] not in names),
    ]


def design_of(release: Release | None, settings: Settings) -> PassageDesign:
    """Return which passages the questions of a release, or else of a workspace, have."""
    return PassageDesign(**release.content["settings"]["passages"]) if release else settings.passages


def _train(release: Release | None, settings: Settings) -> str:
    """Return ``split.train``; an imported release does not name it."""
    return release.content["settings"]["split"].get("train", "parametric") if release else settings.split.train


LEAKS = """
    WITH leaking AS (
        SELECT question_id, count(DISTINCT hint_id) AS hints, bool_and(overridden) AS overridden,
               string_agg(DISTINCT words, '; ' ORDER BY words) AS words
        FROM (SELECT *, format('“{}” gives away “{}” ({})', span, answer, replace(method, '_', ' ')) AS words
              FROM leak_findings) GROUP BY 1
    ), gone AS (
        SELECT DISTINCT question_id FROM rejects WHERE kind = 'question' AND question_id IS NOT NULL
    )
    SELECT l.question_id, q.question, l.hints AS leaking, count(h.hint_id) AS hints, l.words,
           CASE WHEN l.question_id IN (FROM gone) THEN if(l.overridden, 'left out for another reason', 'left out')
                WHEN l.overridden THEN 'kept: a person overruled it' ELSE 'kept without these hints' END AS outcome
    FROM leaking l JOIN questions q USING (question_id) LEFT JOIN hints h USING (question_id)
    GROUP BY ALL ORDER BY leaking DESC, l.question_id LIMIT $rows
"""
"""Questions with leaking hints, those with most first."""
_PARAMETRIC = """
    SELECT split, count(*) AS questions, count(*) FILTER (parametric) AS parametric FROM splits GROUP BY 1 ORDER BY 1
"""
_SOURCES = "SELECT source, count(*) AS questions FROM questions GROUP BY 1 ORDER BY 2 DESC, 1"
_REJECTS = """
    SELECT stage, kind, reason, count(*) AS count, min(detail) AS example FROM rejects
    GROUP BY 1, 2, 3 ORDER BY 1, 4 DESC, 2, 3
"""


def _histogram(connection: duckdb.DuckDBPyConnection, table: str, value: str, group: str) -> list[Row]:
    """Return ``low, high, <group value>: count`` for equal bars over 0 to 1; 1 itself is in the last one."""
    source = f"FROM {table} WHERE {value} IS NOT NULL"
    groups = [row["name"] for row in sql_rows(connection, f"SELECT DISTINCT {group} AS name {source} ORDER BY 1")]
    bars = [{"low": at / _BARS, "high": (at + 1) / _BARS, **{name: 0 for name in groups}} for at in range(_BARS)]
    counts = sql_rows(
        connection,
        f"""SELECT least(greatest(floor({value} * $bins), 0), $bins - 1)::INTEGER AS bar, {group} AS name,
                   count(*) AS count
            {source} GROUP BY 1, 2""",
        {"bins": _BARS},
    )
    for row in counts:
        bars[row["bar"]][row["name"]] = row["count"]
    return bars


def _convergence(connection: duckdb.DuckDBPyConnection) -> Convergence:
    use = "CASE WHEN selected THEN 'in passages' ELSE 'left aside' END"
    bars = _histogram(connection, "ranked_hints", "convergence", use)
    return {
        "bars": bars,
        "groups": list(bars[0])[2:],  # after low and high
        "producers": sql_rows(
            connection,
            f"""SELECT coalesce(producer, 'unknown') AS producer, {use} AS hints, count(*) AS count,
                       avg(convergence) AS mean, median(convergence) AS median
                FROM ranked_hints WHERE convergence IS NOT NULL GROUP BY 1, 2 ORDER BY 2, 3 DESC, 1""",
        ),
    }


def _leakage(workspace: Workspace, connection: duckdb.DuckDBPyConnection) -> Leakage:
    return {
        "losses": leakage_losses(workspace),
        "hints": sql_rows(connection, "SELECT count(*) AS count FROM hints")[0]["count"],
        "methods": sql_rows(
            connection,
            """SELECT method, count(*) AS findings, count(DISTINCT hint_id) AS hints,
                      count(DISTINCT question_id) AS questions,
                      count(*) FILTER (overridden) AS overridden FROM leak_findings GROUP BY 1 ORDER BY 2 DESC, 1""",
        ),
        "by_question": sql_rows(
            connection,
            """SELECT leaking, count(*) AS questions FROM (
                   SELECT q.question_id, count(DISTINCT f.hint_id) AS leaking FROM questions q
                   LEFT JOIN leak_findings f ON f.question_id = q.question_id AND NOT f.overridden GROUP BY 1)
               GROUP BY 1 ORDER BY 1""",
        ),
        "bars": _histogram(connection, "leak_findings", "probability", "'findings'"),
        "leaking": sql_rows(connection, "SELECT count(DISTINCT question_id) AS count FROM leak_findings")[0]["count"],
        "questions": sql_rows(connection, LEAKS, {"rows": MAX_ROWS}),
    }


def _types(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    counts = ", ".join(f"count(*) FILTER (s.split = '{split}') AS {split}" for split in SPLITS)
    return sql_rows(
        connection,
        f"""SELECT d.coarse, count(*) AS questions, {counts}, count(DISTINCT d.fine) AS fine
            FROM descriptions d JOIN splits s USING (question_id) WHERE d.coarse IS NOT NULL
            GROUP BY 1 ORDER BY 2 DESC, 1""",
    )


def _difficulty(connection: duckdb.DuckDBPyConnection) -> Difficulty:
    source = "(SELECT d.*, s.split FROM descriptions d JOIN splits s USING (question_id))"
    counts = ", ".join(f"count(*) FILTER (split = '{split}') AS {split}" for split in SPLITS)
    return {
        "bars": _histogram(connection, source, "difficulty", "difficulty_bin"),
        "bins": sql_rows(
            connection,
            f"""SELECT difficulty_bin AS bin, count(*) AS questions, {counts}, avg(difficulty) AS mean FROM {source}
                WHERE difficulty_bin IS NOT NULL GROUP BY 1 ORDER BY mean""",
        ),
    }


def _statistics(workspace: Workspace) -> Row | None:
    """The paper's table 1, and labels by hints, difficulty and type; without semantic similarity (that one is measured
    when a release is frozen)."""
    files = current_files(workspace)
    if not all(files.parts.get(name) for name in ("descriptions", "splits", "valid_answers", "labels")):
        return None
    return statistics_of(files).to_dict()


def _usage(workspace: TableReader, settings: Settings) -> ModelRequests:
    """What language models were asked and what that cost at the profile's prices (None: no price is given)."""
    prices = {model.name: model for model in settings.replying_models}
    costs = []
    for name, usage in totals(workspace.path).items():
        spec, replies = prices.get(name), usage.requests + usage.cached
        costs.append({
            "model": name, "replies": int(replies), "asked": int(usage.requests), "kept": int(usage.cached),
            "kept_share": usage.cached / replies if replies else 0.0, "cost": spec and spent(settings, spec, usage),
        })  # fmt: skip
    table = usage_table(workspace)
    return {"heads": list(table.heads), "rows": [list(row) for row in table.rows], "costs": costs}
