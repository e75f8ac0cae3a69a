"""What changed between two releases, and why, as far as the later one knows (its changelog and its rejects)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict, cast

from quit.common.rows import Row, grouped, limited_database, sql_rows
from quit.dataset.release import Release, verify
from quit.engine.reading import parquet_sql
from quit.settings import flatten
from quit.settings.settings import ReleaseSettings

_UNKNOWN = "no reason is recorded"
_UNKNOWN_OF_IMPORTED = ("setting", "model", "prompt")
"""Origins that an imported release does not know: only what both sides name is compared."""


class ComparedRelease(TypedDict):
    """One of two releases; ``questions``: by split."""

    name: str
    content_id: str
    questions: dict[str, int]
    reviews: int


class Difference(TypedDict):
    """What changed; ``same``: whether the content is. Rows are sorted by question.

    ``added``, ``removed``: question_id, question, split, reason. ``moved``: question_id, question, before, after
    (splits), reason. ``reworded``: question_id, before, after (texts). ``passages``: question_id, reason, of questions
    whose hints changed; their labels are not compared. ``labels``: question_id, up, down (passages from 1 to 2,
    from 2 to 1), reasons; ``labels_up``, ``labels_down``: their sums. ``answers_added``, ``answers_removed``:
    question_id, answer, origin, reason, of questions that are in both. ``origins``: what, before, after of settings
    (dotted keys), models, readers, prompts, sources and program version.
    """

    before: ComparedRelease
    after: ComparedRelease
    same: bool
    added: list[Row]
    removed: list[Row]
    moved: list[Row]
    reworded: list[Row]
    passages: list[Row]
    labels: list[Row]
    answers_added: list[Row]
    answers_removed: list[Row]
    origins: list[Row]
    labels_up: int
    labels_down: int


def diff(before: str | Path, after: str | Path) -> Difference:
    """Compare two releases, after verifying both. Raises ``InputError`` as ``verify`` does."""
    old, new = verify(before), verify(after)
    same = old.content_id == new.content_id
    changes = {name: [] for name in (*_LISTS, "origins")} if same else _compared(old, new)
    sums = {f"labels_{way}": sum(row[way] for row in changes["labels"]) for way in ("up", "down")}
    ends = {"before": _release(old), "after": _release(new)}
    return cast(Difference, {**ends, "same": same, **changes, **sums})


def _release(release: Release) -> ComparedRelease:
    return {
        "name": release.name, "content_id": release.content_id, "questions": release.facts["counts"]["questions"],
        "reviews": release.content["reviews"]["reviews"],
    }  # fmt: skip


def _compared(old: Release, new: Release) -> dict[str, list[Row]]:
    with limited_database(ReleaseSettings().memory_mb) as connection:
        for side, release in (("old", old), ("new", new)):
            for name in _TABLES:
                rows = parquet_sql(release.part_files(name))
                connection.execute(f"CREATE VIEW {side}_{name} AS SELECT * FROM {rows}")
            labelers = [info.name for info in release.readers if info.role == "labeler"]
            connection.execute(f"CREATE TABLE {side}_labelers AS SELECT unnest($1::VARCHAR[]) AS reader", [labelers])
            connection.execute(
                f"""CREATE VIEW {side}_replies AS SELECT question_id, permutation, reader, answer_key
                FROM {side}_answers JOIN {side}_distinct_answers USING (question_id, reader, number)
                SEMI JOIN {side}_labelers USING (reader)"""
            )
        connection.execute(_HINTS)
        changes = {name: sql_rows(connection, query) for name, query in _LISTS.items()}
    return {
        **changes,
        "moved": [_moved(**row) for row in changes["moved"]],
        "origins": _origins(old, new),
    }


_TABLES = (
    *("splits", "questions", "ranked_hints", "labels", "valid_answers", "verdicts", "changes", "rejects"),
    *("answers", "distinct_answers"),
)
_HINTS = """
    CREATE TABLE rehinted AS
    WITH o AS (SELECT question_id, list(hint ORDER BY rank) AS hints FROM old_ranked_hints WHERE selected GROUP BY 1),
         n AS (SELECT question_id, list(hint ORDER BY rank) AS hints FROM new_ranked_hints WHERE selected GROUP BY 1)
    SELECT question_id FROM o JOIN n USING (question_id) WHERE o.hints <> n.hints
"""
_LEFT_OUT = """
    (SELECT question_id, string_agg(DISTINCT stage || ': ' || reason || ' (' || detail || ')', '; ' ORDER BY
        stage || ': ' || reason || ' (' || detail || ')') AS reason
     FROM {side}_rejects WHERE kind = 'question' AND question_id IS NOT NULL GROUP BY 1)
"""
_ADDED = f"""
    SELECT s.question_id, q.question, s.split,
           coalesce('was left out by ' || r.reason, 'new to the collection') AS reason
    FROM new_splits s JOIN new_questions q USING (question_id)
    LEFT JOIN {_LEFT_OUT.format(side="old")} r USING (question_id)
    WHERE s.question_id NOT IN (SELECT question_id FROM old_splits) ORDER BY 1
"""
_REMOVED = f"""
    SELECT s.question_id, q.question, s.split,
           coalesce('review: ' || c.reason, r.reason, 'no longer in the collection') AS reason
    FROM old_splits s JOIN old_questions q USING (question_id)
    LEFT JOIN (
        SELECT question_id, min(reason) AS reason FROM new_changes
        WHERE change = 'question_removed' AND len(reviews) > 0 GROUP BY 1
    ) c USING (question_id)
    LEFT JOIN {_LEFT_OUT.format(side="new")} r USING (question_id)
    WHERE s.question_id NOT IN (SELECT question_id FROM new_splits) ORDER BY 1
"""
_MOVED = """
    SELECT question_id, q.question, o.split AS before, n.split AS after, o.parametric AS was, n.parametric AS is_now
    FROM old_splits o JOIN new_splits n USING (question_id) JOIN new_questions q USING (question_id)
    WHERE o.split <> n.split ORDER BY 1
"""
_REWORDED = """
    SELECT question_id, o.question AS before, n.question AS after
    FROM old_questions o JOIN new_questions n USING (question_id) WHERE o.question <> n.question ORDER BY 1
"""
_PASSAGES = """
    SELECT question_id, 'its hints, or their order, are others' AS reason FROM rehinted ORDER BY 1
"""
# A row of `changes` explains a label only where it ends at the later release's label: it is compared with the labels
# without any review, of which some may be in the earlier release already. It was taken back only where the later
# release does not hold its answer as it left it. Else the labelers that are right in one release alone explain it.
_LABELS = f"""
    WITH changed AS (
        SELECT o.question_id, o.permutation, o.label AS was, n.label AS now,
               if(now > was, n.labelers, o.labelers) AS right_ones,
               unnest(if(len(right_ones) > 0, right_ones, [NULL])) AS reader  -- none: an imported release does not say
        FROM old_labels o JOIN new_labels n USING (question_id, permutation)
        WHERE o.label <> n.label AND o.question_id NOT IN (FROM rehinted)
    ), why AS (
        SELECT DISTINCT c.* EXCLUDE (reader, right_ones), CASE
            WHEN w.reason IS NOT NULL THEN 'review: ' || w.reason
            WHEN b.reason IS NOT NULL THEN 'taken back: ' || b.reason
            WHEN n.reader IS NULL THEN 'without the labeler ' || c.reader
            WHEN o.reader IS NULL THEN 'with the labeler ' || c.reader
            WHEN o.answer_key <> n.answer_key THEN 'other answers of ' || n.reader
            WHEN x.basis = 'review' OR y.basis = 'review' THEN 'review'
            WHEN x.basis <> y.basis THEN 'other gold answers'
            WHEN x.producer <> y.producer THEN 'judged by ' || y.judge || ', before by ' || x.judge
            WHEN x.correct <> y.correct THEN 'judged again by ' || y.judge
            ELSE '{_UNKNOWN}' END AS reason
        FROM changed c
        LEFT JOIN old_replies o USING (question_id, permutation, reader)
        LEFT JOIN new_replies n USING (question_id, permutation, reader)
        LEFT JOIN old_verdicts x ON x.question_id = o.question_id AND x.answer_key = o.answer_key
        LEFT JOIN new_verdicts y ON y.question_id = n.question_id AND y.answer_key = n.answer_key
        LEFT JOIN (
            SELECT question_id, permutation, after, min(reason) AS reason FROM new_changes
            WHERE change = 'label' GROUP BY ALL
        ) w ON w.question_id = c.question_id AND w.permutation = c.permutation AND w.after = c.now
        LEFT JOIN (
            SELECT question_id, permutation, before, min(reason) AS reason FROM old_changes
            WHERE change = 'label' AND (after > before) <>
                  ((question_id, answer_key) IN (SELECT (question_id, answer_key) FROM new_valid_answers))
            GROUP BY ALL
        ) b ON b.question_id = c.question_id AND b.permutation = c.permutation AND b.before = c.now
    )
    SELECT question_id, count(DISTINCT permutation) FILTER (now > was) AS up,
           count(DISTINCT permutation) FILTER (now < was) AS down,
           list(DISTINCT reason ORDER BY reason) AS reasons
    FROM why GROUP BY 1 ORDER BY 1
"""


def _answers(side: str, other: str, change: str) -> str:
    opposite = "answer_removed" if change == "answer_added" else "answer_added"
    return f"""
        SELECT v.question_id, v.answer, v.origin,
               coalesce('review: ' || c.reason, 'taken back: ' || b.reason, '{_UNKNOWN}') AS reason
        FROM {side}_valid_answers v
        LEFT JOIN (
            SELECT question_id, answer, min(reason) AS reason FROM new_changes WHERE change = '{change}' GROUP BY 1, 2
        ) c ON c.question_id = v.question_id AND c.answer = v.answer
        LEFT JOIN (
            SELECT question_id, answer, min(reason) AS reason FROM old_changes WHERE change = '{opposite}' GROUP BY 1, 2
        ) b ON b.question_id = v.question_id AND b.answer = v.answer
        WHERE v.question_id IN (SELECT question_id FROM {other}_splits)
          AND NOT EXISTS (
              SELECT 1 FROM {other}_valid_answers o WHERE o.question_id = v.question_id AND o.answer = v.answer
          )
        ORDER BY 1, 2
    """


_LISTS = {
    "added": _ADDED,
    "removed": _REMOVED,
    "moved": _MOVED,
    "reworded": _REWORDED,
    "passages": _PASSAGES,
    "labels": _LABELS,
    "answers_added": _answers("new", "old", "answer_added"),
    "answers_removed": _answers("old", "new", "answer_removed"),
}


def _moved(was: bool | None, is_now: bool | None, **row: Any) -> Row:
    """Return a row of ``moved``; ``was``, ``is_now``: parametrically answerable, None where an imported release does
    not say."""
    if was is None or is_now is None:
        reason = _UNKNOWN
    elif was != is_now:
        reason = f"parametrically answerable: {'yes' if was else 'no'} before, {'yes' if is_now else 'no'} now"
    else:
        reason = "drawn again: the split's sizes, shares, seed, rule (split.train) or collection changed"
    return {**row, "reason": reason}


def _origins(old: Release, new: Release) -> list[Row]:
    imported = old.imported is not None or new.imported is not None
    changes = [*_changes("origin", {"imported": old.imported is not None}, {"imported": new.imported is not None})]
    origins_now = _origins_of(new.content)
    for what, before in _origins_of(old.content).items():
        after = origins_now[what]
        if imported and what in _UNKNOWN_OF_IMPORTED:
            both = before.keys() & after.keys()
            before, after = {key: before[key] for key in both}, {key: after[key] for key in both}
        changes += _changes(what, before, after)
    return changes


def _origins_of(content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a release was made with: kind -> name -> value."""
    return {
        "setting": dict(flatten(content["settings"])),
        "model": {key: ", ".join(names) for key, names in content["models"].items()},
        "reader": {row["name"]: f"{row['role']}, {row['identity']}" for row in content["readers"]},
        "prompt": {use: f"{row['name']}@{row['sha256_12']}" for use, row in content["prompts"].items()},
        "source": _sources(content),
        "program": {"version": content["program_version"]},
    }


def _sources(content: Mapping[str, Any]) -> dict[str, str]:
    checksums_of = grouped((f"{row['name']}:{row['file']}", row["checksum"]) for row in content["sources"])
    return {name: ", ".join(sorted(checksums)) for name, checksums in checksums_of.items()}


def _changes(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[Row]:
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            yield {"what": what, "key": key, "before": before.get(key), "after": after.get(key)}
