"""What a release says of itself, and what changed between two, in words."""

from __future__ import annotations

from typing import Any

from quit.release.diff import Diff
from quit.release.release import Release


def lines(release: Release) -> list[str]:
    """Return a release's description for a terminal."""
    facts, content = release.facts, release.content
    counts = facts["counts"]
    told = [f"Release {release.name}  {release.path}", f"content id {release.content_id}", ""]
    told.append("questions: " + ", ".join(f"{count:,} {split}" for split, count in counts["questions"].items()))
    told.append(f"passages: {counts['passages']:,}")
    total = facts["statistics"]["summary"][-1]
    for name in (
        "question_words",
        "passage_words",
        "answer_words",
        "lexical_overlap",
        "answer_containment",
        "semantic_similarity",
    ):
        if total[name] is not None:
            told.append(f"{name.replace('_', ' ')}: {total[name]:.2f}")
    told.append("")
    told += [
        f"source: {one['name']} {one['file']} ({one['licence'] or 'licence not stated'}), {one['checksum'][:12]}"
        for one in content["sources"]
    ]
    told += [f"{one['role']}: {one['name']} ({one['identity']})" for one in content["readers"]]
    told += [f"prompt: {use}: {one['name']}@{one['sha256_12']}" for use, one in content["prompts"].items()]
    reviews = content["reviews"]
    told.append(
        f"reviews: {reviews['reviews']:,} by {len(reviews['annotators'])} people; "
        f"{reviews['coverage']['share']:.1%} of the answers in {', '.join(reviews['coverage']['splits'])} judged by people"
    )
    told.append("")
    for gate in facts["gates"]:
        told.append(f"{gate['state']:7} {gate['gate']}" + (f": {gate['waiver']}" if gate["waiver"] else ""))
    return told


def changelog(made: Diff, limit: int = 50) -> str:
    """Return a diff as Markdown for a changelog; ``limit``: rows a list, 0 for all."""
    before, after = made.before, made.after
    told = [
        f"## {after['name']} (after {before['name']})",
        "",
        f"Content id `{before['content_id']}` -> `{after['content_id']}`.",
        "",
    ]
    if made.same:
        return "\n".join([*told, "The content is the same.", ""])
    counts = ", ".join(
        f"{split} {before['questions'][split]:,} -> {after['questions'][split]:,}" for split in before["questions"]
    )
    told += [
        f"- Questions: {len(made.added):,} added, {len(made.removed):,} removed, {len(made.moved):,} in another split ({counts}).",
        f"- Labels: {made.labels_up:,} passages from 1 to 2, {made.labels_down:,} from 2 to 1, of {len(made.labels):,} questions.",
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
            told += ["", f"### {title}", "", *("- " + _one_line(line(row)) for row in kept)]
            if len(kept) < len(rows):
                told.append(f"- and {len(rows) - len(kept):,} more")
    return "\n".join([*told, ""])


def _answer(row: dict[str, Any]) -> str:
    return f"`{row['question_id']}`: {row['answer']!r} ({row['origin']}; {row['reason']})"


def _shown(value: Any) -> str:
    return "none" if value is None else f"`{value}`"


def _one_line(text: str) -> str:
    return " ".join(text.split())
