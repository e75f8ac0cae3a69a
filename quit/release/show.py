"""What a release says of itself, and what changed between two, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quit.dataset.dataset import FULLY
from quit.dataset.release import Release
from quit.release.diff import Diff
from quit.text.words import counted


def lines(release: Release) -> list[str]:
    """Return a release's description for a terminal."""
    facts, content = release.facts, release.content
    shown = [f"Release {release.name}  {release.path}", f"content id {release.content_id}", ""]
    shown += _table(facts["statistics"])
    shown.append("")
    shown += [
        f"source: {source['name']} {source['file']} ({source['licence'] or 'licence not stated'}), "
        f"{source['checksum'][:12]}"
        for source in content["sources"]
    ]
    shown += [f"{reader['role']}: {reader['name']} ({reader['identity']})" for reader in content["readers"]]
    shown += [f"prompt: {use}: {prompt['name']}@{prompt['sha256_12']}" for use, prompt in content["prompts"].items()]
    shown += imported_lines(release) if release.imported else [_reviews(content["reviews"])]
    shown.append("")
    for gate in facts["gates"]:
        shown.append(f"{gate['state']:7} {gate['gate']}" + (f": {gate['waiver']}" if gate["waiver"] else ""))
        shown += [f"        {example}" for example in gate.get("examples", [])[:1] if gate["waiver"]]
    return shown


def imported_lines(release: Release) -> list[str]:
    """Return what is known of the files that a release was imported from, for a terminal."""
    imported = release.imported or {}
    labels = imported["labels"]
    shown = [
        f"labels: as published ({labels['rule']}); {labels['differences']:,} of {labels['passages']:,} differ from our "
        "rule, which compares answers in normalised form"
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


def _reviews(reviews: Mapping[str, Any]) -> str:
    people = counted(len(reviews["annotators"]), "person", "people")
    return (
        f"reviews: {reviews['reviews']:,} by {people}; {reviews['coverage']['share']:.1%} of the answers in "
        f"{', '.join(reviews['coverage']['splits'])} judged by people"
    )


_ROWS = (
    ("questions", "questions", "{:,}"),
    ("passages", "passages", "{:,}"),
    ("question_words", "words a question", "{:.2f}"),
    ("passage_words", "words a passage", "{:.2f}"),
    ("answer_words", "words an answer", "{:.2f}"),
    ("lexical_overlap", "lexical overlap", "{:.2f}"),
    ("answer_containment", "answer containment", "{:.2f}"),
    ("semantic_similarity", "semantic similarity", "{:.2f}"),
)
"""The paper's table 1."""


def _table(statistics: Mapping[str, Any]) -> list[str]:
    """Return the paper's table 1 and the share of label 2 by hints, difficulty and type, a column a split."""
    summary = statistics["summary"]
    splits = [row["split"] for row in summary]
    shown = [_line("", splits)]
    for key, name, form in _ROWS:
        shown.append(_line(name, ["-" if row[key] is None else form.format(row[key]) for row in summary]))
    for rows, key, name in (
        ("by_hints", "n_hints", "label 2, hints: {}"),
        ("by_difficulty", "difficulty_bin", "label 2, {}"),
        ("by_type", "coarse", "label 2, {}"),
    ):
        shares = {(row["split"], row[key]): row["share"] for row in statistics[rows] if row["label"] == FULLY}
        for group in dict.fromkeys(row[key] for row in statistics[rows] if row["split"] == "all"):
            given = {row["split"] for row in statistics[rows] if row[key] == group}
            values = [f"{shares.get((split, group), 0.0):.1%}" if split in given else "-" for split in splits]
            shown.append(_line(name.format(group), values))
    return shown


def _line(name: str, values: Sequence[str]) -> str:
    return f"{name:26}" + "".join(f"{value:>11}" for value in values)


def changelog(made: Diff, limit: int = 50) -> str:
    """Return a diff as Markdown for a changelog; ``limit``: rows a list, 0 for all."""
    before, after = made.before, made.after
    shown = [
        f"## {after['name']} (after {before['name']})",
        "",
        f"Content id `{before['content_id']}` -> `{after['content_id']}`.",
        "",
    ]
    if made.same:
        return "\n".join([*shown, "The content is the same.", ""])
    counts = ", ".join(
        f"{split} {before['questions'][split]:,} -> {after['questions'][split]:,}" for split in before["questions"]
    )
    shown += [
        f"- Questions: {len(made.added):,} added, {len(made.removed):,} removed, {len(made.moved):,} in another split "
        f"({counts}).",
        f"- Labels: {counted(made.labels_up, 'passage')} from 1 to 2, {made.labels_down:,} from 2 to 1, of "
        f"{counted(len(made.labels), 'question')}.",
        f"- Valid answers: {len(made.answers_added):,} added, {len(made.answers_removed):,} removed.",
        f"- Reviews: {before['reviews']:,} -> {after['reviews']:,}.",
    ]
    for title, rows, line in (
        (
            "Questions added",
            made.added,
            lambda row: f"`{row['question_id']}` to {row['split']}: {row['question']} ({row['reason']})",
        ),
        (
            "Questions removed",
            made.removed,
            lambda row: f"`{row['question_id']}` from {row['split']}: {row['question']} ({row['reason']})",
        ),
        (
            "Questions in another split",
            made.moved,
            lambda row: (
                f"`{row['question_id']}` {row['before']} -> {row['after']}: {row['question']} ({row['reason']})"
            ),
        ),
        ("Questions with other passages", made.passages, lambda row: f"`{row['question_id']}`: {row['reason']}"),
        (
            "Labels",
            made.labels,
            lambda row: f"`{row['question_id']}`: {row['up']} up, {row['down']} down ({'; '.join(row['reasons'])})",
        ),
        ("Valid answers added", made.answers_added, _answer),
        ("Valid answers removed", made.answers_removed, _answer),
        (
            "Made otherwise",
            made.origins,
            lambda row: f"{row['what']} `{row['key']}`: {_shown(row['before'])} -> {_shown(row['after'])}",
        ),
    ):
        if rows:
            kept = rows[: limit or None]
            shown += ["", f"### {title}", "", *("- " + _one_line(line(row)) for row in kept)]
            if len(kept) < len(rows):
                shown.append(f"- and {len(rows) - len(kept):,} more")
    return "\n".join([*shown, ""])


def _answer(row: dict[str, Any]) -> str:
    return f"`{row['question_id']}`: {row['answer']!r} ({row['origin']}; {row['reason']})"


def _shown(value: Any) -> str:
    return "none" if value is None else f"`{value}`"


def _one_line(text: str) -> str:
    return " ".join(text.split())
