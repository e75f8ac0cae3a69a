"""What a release says of itself, and what changed between two, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from quit.common.rows import Row
from quit.dataset.dataset import FULLY
from quit.dataset.description import RestingReviews
from quit.dataset.release import Release
from quit.release.diff import Difference
from quit.release.gates import GateResult
from quit.render.table import Table, markdown, percent, plain_name, table_1
from quit.text.words import counted


def lines(release: Release) -> list[str]:
    """Return a release's description as lines of Markdown."""
    return markdown(described(release)).splitlines()


def described(release: Release) -> list[Table | str]:
    """Return what a release says of itself."""
    facts, content = release.facts, release.content
    shown = [
        f"source: {source['name']} {source['file']} ({source['licence'] or 'licence not stated'}), "
        f"{source['checksum'][:12]}"
        for source in content["sources"]
    ]
    shown += [f"{reader['role']}: {reader['name']} ({reader['identity']})" for reader in content["readers"]]
    shown += [f"prompt: {use}: {prompt['name']}@{prompt['sha256_12']}" for use, prompt in content["prompts"].items()]
    shown += imported_lines(release) if release.imported else [_reviews(content["reviews"])]
    gates = []
    for gate in facts["gates"]:
        gates.append(f"{gate['state']:9} {gate['gate']}" + (f": {gate['waiver']}" if gate["waiver"] else ""))
        gates += [f"{'':9} {example}" for example in gate.get("examples", [])[:1] if gate["waiver"]]
    name = f"Release {release.name}  {release.path}\ncontent id {release.content_id}"
    return [name, _figures(facts["statistics"]), "\n".join(shown), "\n".join(gates)]


def gate_lines(results: Sequence[GateResult]) -> list[str]:
    """Return what gates say, for a terminal: what is wrong where one is not passed, and what was waived."""
    lines = []
    for result in results:
        lines.append(f"{result.state:9} {result.gate}")
        if result.state != "passed":
            violations = f"{counted(result.violations, 'violation')}. {result.why}"
            reason = f"Waived: {result.waiver}" if result.waiver else violations
            texts = result.examples if result.state == "not asked" else (reason, *result.examples)
            lines += [f"{'':9} {text}" for text in texts]
    return lines


def frozen_line(path: str | Path, name: str, content_id: str, new: bool) -> str:
    """Return what a command says of a release that it froze, or found frozen."""
    if new:
        return f"{path}: release {name}, content id {content_id}"
    return f"{path} already holds this release (content id {content_id}): nothing to do."


def imported_lines(release: Release) -> list[str]:
    """Return what is known of the files that a release was imported from, for a terminal."""
    imported = release.imported or {}
    labels = imported["labels"]
    shown = [
        f"labels: as published ({labels['rule']}); {labels['differences']:,} of {labels['passages']:,} differ from our "
        "rule, which compares keys of answers"
    ]
    shown += [
        f"  {row['question_id']} {row['permutation']}: published {row['published']}, ours {row['ours']} "
        f"({', '.join(row['labelers'])})"
        for row in labels["examples"]
    ]
    if labels["differences"] > len(labels["examples"]):
        shown.append(f"  and {labels['differences'] - len(labels['examples']):,} more")
    if imported["repeated_answers"]:
        shown.append(f"answers: {imported['repeated_answers']:,} questions list one twice; it is kept once")
    shown += [f"not read: the field {name} of {count:,} questions" for name, count in imported["unread"].items()]
    return [*shown, *(f"not in the files: {text}" for text in imported["unknown"])]


def _reviews(reviews: RestingReviews) -> str:
    people = counted(len(reviews["annotators"]), "person", "people")
    return (
        f"reviews: {reviews['reviews']:,} by {people}; {reviews['coverage']['share']:.1%} of the answers in "
        f"{', '.join(reviews['coverage']['splits'])} judged by people"
        + (f"; {reviews['set_aside']:,} set aside" if reviews.get("set_aside") else "")
    )


def _figures(statistics: Mapping[str, Any]) -> Table:
    """Return the paper's table 1 and the share of label 2 by hints, difficulty and type, a column per split."""
    table = table_1(statistics["summary"])
    splits = table.heads[1:]
    rows = list(table.rows)
    for groups, key, name in (
        ("by_hints", "n_hints", "label 2, hints: {}"),
        ("by_difficulty", "difficulty_bin", "label 2, {}"),
        ("by_type", "coarse", "label 2, {}"),
    ):
        shares = {(row["split"], row[key]): row["share"] for row in statistics[groups] if row["label"] == FULLY}
        for group in dict.fromkeys(row[key] for row in statistics[groups] if row["split"] == "all"):
            given = {row["split"] for row in statistics[groups] if row[key] == group}
            values = (percent(shares.get((split, group), 0.0) if split in given else None) for split in splits)
            rows.append((name.format(plain_name(str(group))), *values))
    return Table("", table.heads, rows)


_LISTS = {
    "added": "Questions added",
    "removed": "Questions removed",
    "moved": "Questions in another split",
    "reworded": "Questions with another text",
    "passages": "Questions with other passages",
    "labels": "Labels",
    "answers_added": "Valid answers added",
    "answers_removed": "Valid answers removed",
    "origins": "Made otherwise",
}


def changelog(changes: Difference, limit: int = 50) -> str:
    """Return a diff (:func:`quit.release.diff.diff`) as Markdown for a changelog; ``limit``: rows per list, 0 for
    all."""
    before, after = changes["before"], changes["after"]
    ids = f"Content id `{before['content_id']}` -> `{after['content_id']}`."
    pieces: list[Table | str] = [f"## {after['name']} (after {before['name']})", ids]
    if changes["same"]:
        return markdown([*pieces, "The content is the same."])
    counts = ", ".join(
        f"{split} {before['questions'][split]:,} -> {after['questions'][split]:,}" for split in before["questions"]
    )
    pieces += [
        f"Questions: {len(changes['added']):,} added, {len(changes['removed']):,} removed, {len(changes['moved']):,} "
        f"in another split ({counts}); {len(changes['passages']):,} with other passages.",
        f"Labels: {counted(changes['labels_up'], 'passage')} from 1 to 2, {changes['labels_down']:,} from 2 to 1, of "
        f"{counted(len(changes['labels']), 'question')}.",
        f"Valid answers: {len(changes['answers_added']):,} added, {len(changes['answers_removed']):,} removed.",
        f"Reviews: {before['reviews']:,} -> {after['reviews']:,}.",
    ]
    for key, title in _LISTS.items():
        if rows := cast(Mapping[str, list[Row]], changes)[key]:
            shown = [tuple(map(_cell, row.values())) for row in rows[: limit or None]]
            words = tuple(at for at, name in enumerate(rows[0]) if name not in ("up", "down"))
            pieces.append(Table(title, tuple(rows[0]), shown, words, more=len(rows) - len(shown)))
    return markdown(pieces)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(value)
    return "none" if value is None else str(value)
