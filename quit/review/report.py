"""The state of a review in sentences and tables."""

from __future__ import annotations

from dataclasses import replace

from quit.render import table
from quit.render.table import Table, interval, number, percent
from quit.review.audit import Audit
from quit.review.status import ReviewCounts, ReviewFigures, ReviewStatus
from quit.text.words import counted, first_names


def _set_aside(reviews: ReviewCounts) -> list[str]:
    """Return sentences on the annotations and flags that do not count, if there are any."""
    lines = []
    if reviews["set_aside_flags"]:
        flags_aside = counted(reviews["set_aside_flags"], "flag")
        lines = [f"Set aside: {flags_aside} on hints that have changed. They count again when these come back."]
    if not reviews["set_aside"]:
        return lines
    sentence = (
        f"Set aside: {counted(reviews['set_aside'], 'annotation')} of questions that had another text or other gold "
        "answers. They count again when these come back."
    )
    question_ids = reviews["set_aside_questions"]
    if question_ids:
        sentence += f" Or have {first_names(question_ids)} judged again: delete the annotations in Label Studio."
    return [sentence, *lines]


def described(status: ReviewFigures, max_rows: int = 0) -> list[Table | str]:
    """Return what people did, their agreement and its effects, as sentences and tables. ``max_rows``: per table, 0 for
    all."""
    reviews, agreement, applied = status["reviews"], status["agreement"], status["applied"]
    reviewed = [f"{split} {row['reviewed']:,} of {row['questions']:,}" for split, row in status["coverage"].items()]
    alpha = "No answer was judged by two people yet, so their agreement is not known."
    if agreement["items"]:
        alpha = (
            f"Krippendorff's alpha {number(agreement['alpha'])} over the {agreement['items']:,} answers that two or "
            "more people judged."
        )
    return [
        f"{counted(reviews['annotations'], 'annotation')} of {counted(reviews['questions'], 'question')} by "
        f"{counted(len(status['annotators']), 'person', 'people')}; {status['decided']:,} verdicts settled, "
        f"{status['open']:,} open.",
        f"Questions whose answers people have all judged: {', '.join(reviewed)}.",
        *_set_aside(reviews),
        alpha,
        f"Applied since the build: {applied['labels_up']:,} passages up to 2, {applied['labels_down']:,} down to 1; "
        f"{counted(applied['answers_added'], 'valid answer')} added, {applied['answers_removed']:,} removed; "
        f"{counted(sum(applied['questions_removed'].values()), 'question')} removed. "
        f"Pulls that wait for quit review apply: {applied['waiting']:,}.",
        *(
            replace(each, rows=each.rows[: max_rows or None], more=len(each.rows[max_rows:]) if max_rows else 0)
            for each in _tables(status)
            if each.rows
        ),
    ]


def _tables(status: ReviewFigures) -> tuple[Table, ...]:
    """Return kinds of pages, annotators, pairs of them, and flags."""
    kinds = [
        ("yes" if row["blind"] else "no", row["annotators"], row["annotations"], row["questions"], row["twice"],
         number(row["seconds"], ",.0f"), percent(row["alike"]), row["alpha"],
         _right(row["controls_right"], row["controls"]))
        for row in status["kinds"]
    ]  # fmt: skip
    agreements = {row["annotator"]: row for row in status["agreement"]["annotators"]}
    scores = {row["annotator"]: (row["right"], row["asked"]) for row in status["controls"]}
    people = [
        (name, row["questions"], agreements[name]["answers"] if name in agreements else 0,
         f"{row['seconds'] / 60:,.0f}", agreements[name]["kappa_with_others"] if name in agreements else None,
         _right(*scores.get(name, (0, 0))))
        for row in status["annotators"] if (name := row["annotator"])
    ]  # fmt: skip
    pairs = [
        (f"{row['first']}, {row['second']}", row["items"], percent(row["agreement"]), row["kappa"])
        for row in status["agreement"]["pairs"]
    ]
    flagged = [
        (row["flag"].replace("_", " "), row["questions"], percent(row["share"]), row["agreed"])
        for row in status["flags"]
    ]
    controls = "Controls: control questions answered right."
    of_kinds = (
        "On a blind task nothing is ticked and no judge is shown; on the others the judge's verdicts are ticked. "
        f"Twice: questions that two or more people judged. Seconds: the median of an annotation. {controls}"
    )
    of_people = f"Kappa: Cohen's, with all others. {controls}"
    of_flags = "Questions that somebody flagged, of all annotated ones; agreed: the rule settles that the flag holds."
    kind_heads = "blind,people,annotations,questions,twice,seconds,alike,alpha,controls".split(",")
    people_heads = "annotator,questions,answers,minutes,kappa,controls".split(",")
    return (
        Table("Blind tasks and others", kind_heads, kinds, note=of_kinds),
        Table("Annotators", people_heads, people, note=of_people),
        Table("Pairs of annotators", ("pair", "answers", "alike", "Cohen's kappa"), pairs, text=(0,)),
        Table("Flags", ("flag", "questions", "share", "agreed"), flagged, note=of_flags),
    )


def _right(right: int, total: int) -> str:
    return f"{right:,} of {total:,}" if total else "–"


def audit_pieces(figures: Audit) -> list[Table | str]:
    """Return what the audit says (:func:`quit.review.audit.audit_figures`) as a paragraph and a table."""
    text = f"Audit: people have judged {figures['judged']:,} of {counted(figures['drawn'], 'passage')} drawn at random."
    if figures["judged"] < figures["drawn"]:
        text += " Until all are judged, no estimate stands, and the intervals count each open passage both ways."
    if figures["stale"]:
        text += " Labels or splits were made anew since: the figures are of the draw. Another review.audit draws anew."
    for subject, row in zip(("The judge's label", "Its verdict on each answer"), figures["accuracy"].values()):
        share = f"{interval(row)} (95% interval)"
        if row["estimate"] is not None:
            share = f"{percent(row['estimate'])} (95% interval {interval(row)})"
        text += f" {subject} agrees with people's on {share} of the passages not decided at the draw."
    note = (
        "Judge: share of label 2 by its verdicts alone. People: as decided at the draw; for the other passages, the "
        "judge's labels corrected by its errors in the audited ones. Interval: 95%. By number of hints, each split and "
        "label is taken to have one error rate. On pages that are not blind, people may follow the judge. Passages "
        "that no labeler was asked about do not count."
    )
    heads = ("", "passages", "judge", "people", "interval", "audited", "judge wrong")
    rows = [
        (row["of"], row["passages"], percent(row["judge"]), percent(row["estimate"]), interval(row),
         row["audited"], row["wrong"]) for row in figures["shares"]
    ]  # fmt: skip
    return [text, Table("Share of label 2, judge and people", heads, rows, note=note)]


def pieces(status: ReviewStatus) -> list[Table | str]:
    """Return a review's state: the project, done, open, agreement, label changes, problems."""
    project, tasks, done = status["project"], status["project"]["tasks"], status["project"]["done"]
    control_count = project["controls"]
    return [
        f"Project {project['id']} at {project['url']}: {done:,} of {tasks:,} tasks done, {tasks - done:,} open"
        + (f" (among them {counted(control_count, 'control question')}, open to everyone)" if control_count else "")
        + ", as of the last push or pull."
        if project["url"]
        else "Which project is the workspace's, the next quit review push or pull finds out."
        if status["reviews"]["pulls"]
        else "Nothing has been pushed yet. Run: quit review push",
        *described(status),
        *(audit_pieces(status["audit"]) if "audit" in status else ()),
        *(f"Attention: {problem}" for problem in status["problems"]),
    ]


def markdown(status: ReviewStatus) -> str:
    """Return a review's state as Markdown."""
    return table.markdown(["# Review", *pieces(status)])
