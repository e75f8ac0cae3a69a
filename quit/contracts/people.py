"""Arrow schemas of what people did: overrides, reviews, and the changes that these made."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from quit.contracts.columns import ANSWER_KEY, COUNT, FLAG, KEYED, QUESTION, REAL, SMALL, TEXT, TEXTS
from quit.contracts.contract import Column, Nullable, TableContract

OverrideDecision = Literal["leak", "no_leak", "withdrawn"]
ReviewKind = Literal["annotation", "answer", "missing", "flag", "note", "unknown"]
ReviewState = Literal["submitted", "empty", "skipped", "withdrawn", "overwritten", "copied"]
Change = Literal["label", "answer_added", "answer_removed", "question_removed"]

PEOPLE = (
    TableContract(
        "overrides",
        stage="people",
        key=("override_id",),
        doc="Decisions of people against an instrument, oldest first, never changed. Of the rows with the same kind, "
        "question and hint the last one counts.",
        columns=(
            Column("override_id", TEXT, "Id of the row: `ov-` and ten hexadecimal digits."),
            Column("kind", TEXT, "The overridden instrument: `leak`.", values=("leak",)),
            QUESTION,
            Nullable("hint_id", TEXT, "The hint's id when it was decided, where one is meant."),
            Nullable("hint", TEXT, "The hint's text: the decision follows it, whatever its id is later."),
            Column(
                "decision",
                TEXT,
                "`leak`, `no_leak`, or `withdrawn`: the instrument decides again.",
                values=get_args(OverrideDecision),
            ),
            Column("by", TEXT, "The person who decided."),
            Column("reason", TEXT, "Why, in words."),
            Column("created_at", TEXT, "When, ISO 8601, UTC."),
        ),
        log=True,
    ),
    TableContract(
        "reviews",
        stage="review",
        log=True,
        key=("review_id", "kind", "answer_key", "text"),
        doc="Annotations of people, append-only: one row per (version of an annotation, answer), and rows for added "
        "answers, flags and notes. A later version of an annotation, or its withdrawal, supersedes the earlier "
        "ones; none is ever changed.",
        columns=(
            Column("review_id", TEXT, "Id of this version of the annotation: what `changes` refers to."),
            QUESTION,
            Column(
                "kind",
                TEXT,
                "`annotation` (one row per version), `answer`, `missing`, `flag`, `note`, or `unknown` (a choice "
                "that the task lacks).",
                values=get_args(ReviewKind),
            ),
            Column(
                "state",
                TEXT,
                "`submitted`, `empty` (submitted with nothing ticked: no verdict), `skipped`, `withdrawn` "
                "(deleted), `overwritten` (changed by someone who is not its annotator), or `copied` (made by a "
                "button, an import or another program: no verdict).",
                values=get_args(ReviewState),
            ),
            replace(ANSWER_KEY, nullable=True),
            Nullable("answer", TEXT, "The answer as it was shown or typed."),
            Nullable(
                "correct",
                FLAG,
                "Whether the person accepts the answer; null: they have to be asked, so there is no verdict.",
            ),
            Nullable("suggested", FLAG, "Whether it was ticked beforehand."),
            Nullable(
                "text",
                TEXT,
                "The flag, the note, or the unknown choice. Of an `annotation`: what its annotator has to be "
                "asked: `empty` (nothing ticked), `both` (an answer and *None is correct*) or `gold` (a gold "
                "answer neither ticked nor flagged as wrong).",
            ),
            Column("annotator", TEXT, "The annotator: the account's e-mail."),
            Nullable("editor", TEXT, "The person who changed it last, if another."),
            Column("created", TEXT, "When the annotation was made (UTC, ISO 8601)."),
            Column("updated", TEXT, "When this version was made (UTC, ISO 8601)."),
            Nullable("lead_seconds", REAL, "Time spent on the annotation so far, in seconds."),
            Column("project", TEXT, "Key of the review project."),
            Column("task", COUNT, "Number of the task on the server."),
            Column("annotation", COUNT, "Number of the annotation on the server."),
            Column("version", SMALL, "Version of the annotation, from 1, as far as pulls have seen them."),
            Nullable("shown", SMALL, "Version of the task that the annotator saw."),
            Nullable("blind", FLAG, "Whether the page had no ticks and no judge's verdict; null for a withdrawal."),
            Column("digest", TEXT, "Hash of what this version says."),
            Nullable("content", TEXT, "Hash of the question and gold answers shown: it counts for these."),
            Nullable("content_with_hints", TEXT, "The same with the hints, for flags that concern them."),
            Column("sync", COUNT, "Number of the pull that brought it, from 1."),
        ),
    ),
    TableContract(
        "changes",
        stage="update",
        key=("question_id", "change", "permutation", "answer"),
        doc="The changelog of a label update: what people's verdicts changed, by which reviews and why.",
        columns=(
            QUESTION,
            Column(
                "change",
                TEXT,
                "`label`, `answer_added`, `answer_removed` or `question_removed`.",
                values=get_args(Change),
            ),
            Nullable("permutation", TEXT, "The passage whose label changed."),
            Nullable("before", SMALL, "Its label before."),
            Nullable("after", SMALL, "Its label now."),
            Nullable("answer", TEXT, "The answer that caused it."),
            Nullable("answer_key", TEXT, "Its key: texts that are the same answer have one."),
            Column("reviews", TEXTS, "The reviews that caused it."),
            Column("reason", TEXT, "Why, in words."),
        ),
        follows={
            **KEYED,
            "change": "CASE WHEN permutation IS NOT NULL THEN 'label' WHEN (question_id, answer) IN (SELECT "
            "(question_id, answer) FROM valid_answers) THEN 'answer_added' WHEN answer IS NOT NULL THEN "
            "'answer_removed' END",
            "before": "3 - after",
            "after": "label",
        },
        released=True,
    ),
)
