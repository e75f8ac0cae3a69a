"""The report's sections on what came of it: verdicts, reviews, costs, releases and their difference."""

from __future__ import annotations

from typing import Any

from quit.report import plots
from quit.report.pieces import SPLITS, Facts, Plot, Section, Table, number, percent, share


def verdicts(facts: Facts) -> Section:
    """The judge against people, and against a second judge."""
    made = Section("verdicts", "Judges and people")
    people, judges = facts["people"], facts["judges"]
    if people:
        made.said.append(
            f"The judge ({facts['judge']}) and people agree on {percent(people['agreement'])} of the {people['answers']:,} answers that it "
            f"had to decide and people settled (Cohen's kappa {number(people['kappa'])})."
        )
        rows = [
            ("judge: correct", f"{people['both_yes']:,}", f"{people['only_judge']:,}"),
            ("judge: wrong", f"{people['only_people']:,}", f"{people['both_no']:,}"),
        ]
        note = f"{people['unread']:,} more have no readable verdict." if people["unread"] else ""
        made.tables.append(
            Table("The judge against people", ("answers", "people: correct", "people: wrong"), rows, note=note)
        )
    if judges:
        made.said.append(
            f"{judges['judge']} and {judges['second']} agree on {share(judges['agree'], judges['answers'])} of {judges['answers']:,} "
            f"answers (Cohen's kappa {number(judges['kappa'])}); {judges['only_judge']:,} only the first accepts, "
            f"{judges['only_second']:,} only the second; {judges['unread']:,} have no readable verdict of the first."
        )
    return made


def review(facts: Facts, most: int) -> Section:
    """How far the review is and how annotators agree; ``most``: rows a list."""
    made = Section("review", "Review by people")
    told = facts["review"]
    if not told:
        made.said.append("No review has been pulled yet.")
        return made
    made.said.append(
        f"{told['annotations']:,} annotations of {told['questions']:,} questions by {len(told['people']):,} people; {told['decided']:,} "
        f"verdicts settled, {told['open']:,} disagreements open."
    )
    made.said.append(
        f"Krippendorff's alpha {number(told['alpha'])} over the {told['items']:,} answers that two or more people judged."
        if told["items"]
        else "No answer was judged by two people yet, so their agreement is not known."
    )
    applied = told["applied"]
    made.said.append(
        f"Applied to the labels: {applied['labels_up']:,} passages up to 2, {applied['labels_down']:,} down to 1; "
        f"{applied['answers_added']:,} valid answers added, {applied['answers_removed']:,} removed; "
        f"{sum(applied['questions_removed'].values()):,} questions removed. Pulls that wait: {applied['waiting']:,}."
    )
    splits = told["splits"]
    if splits:
        series = {
            "reviewed": [row["reviewed"] for row in splits],
            "to do": [row["asked"] - row["reviewed"] for row in splits],
        }
        drawn = plots.bars("plot-review", [row["split"] for row in splits], series, "questions")
        rows = [
            (row["split"], f"{row['asked']:,}", f"{row['reviewed']:,}", share(row["reviewed"], row["asked"]))
            for row in splits
        ]
        made.plots.append(
            Plot("Progress", ("split", "asked", "reviewed", "share"), rows, name="plot-review", svg=drawn)
        )
    rows = [
        (row["annotator"], f"{row['questions']:,}", f"{row['answers']:,}", f"{row['minutes']:,.0f}", number(row["kappa"]),
         f"{row['controls_right']} of {row['controls']}" if row["controls"] else "–")
        for row in told["people"]
    ]  # fmt: skip
    heads = ("annotator", "questions", "answers", "minutes", "kappa with others", "control questions right")
    made.tables.append(Table("Annotators", heads, rows[:most], more=max(0, len(rows) - most)))
    if told["pairs"]:
        rows = [
            (f"{row['first']}, {row['second']}", f"{row['items']:,}", percent(row["agreement"]), number(row["kappa"]))
            for row in told["pairs"]
        ]
        heads = ("pair", "answers", "alike", "Cohen's kappa")
        made.tables.append(Table("Pairs of annotators", heads, rows[:most], more=max(0, len(rows) - most)))
    return made


def models(facts: Facts) -> Section:
    """Readers, and what language models cost."""
    made = Section("models", "Readers, costs and cache")
    rows = [(row["name"], row["role"] or "in no profile", row["kind"] or "–") for row in facts["readers"]]
    made.tables.append(Table("Readers", ("reader", "role", "kind"), rows, (1, 2)))
    usage = facts["usage"]
    if not usage["costs"]:
        made.said.append("No language model was asked: nothing was spent.")
        return made
    priced = [row["cost"] for row in usage["costs"] if row["cost"] is not None]
    if priced:
        made.said.append(f"Cost at the profile's prices: {sum(priced):,.2f}.")
    note = "Over all runs of the workspace. Kept: served by the generation cache; cached: prompt tokens from the server's prefix cache."
    made.tables.append(Table("Language models", usage["heads"], usage["rows"], note=note))
    rows = [
        (row["model"], f"{row['replies']:,}", f"{row['asked']:,}", f"{row['kept']:,}", percent(row["kept_share"]), number(row["cost"]))
        for row in usage["costs"]
    ]  # fmt: skip
    heads = ("language model", "replies", "paid for", "from the cache", "cache hits", "cost")
    made.tables.append(Table("Costs and cache hits", heads, rows))
    return made


def releases(facts: Facts) -> Section | None:
    """Versions and their gates, or None."""
    releases = facts["releases"]
    if not releases:
        return None
    made = Section("releases", "Releases")
    rows = [
        (row["name"], row["content_id"], *(f"{row['questions'].get(split, 0):,}" for split in (*SPLITS, "all")),
         f"{row['reviews']:,}", f"{row['annotators']:,}") for row in releases
    ]  # fmt: skip
    heads = ("release", "content id", *SPLITS, "all", "reviews", "annotators")
    made.tables.append(Table("Versions", heads, rows, (1,)))
    gates: dict[str, list[str]] = {}
    for place, one in enumerate(releases):
        for gate in one["gates"]:
            state = gate["state"] + (f": {gate['waiver']}" if gate["waiver"] else "")
            gates.setdefault(gate["gate"], ["–"] * len(releases))[place] = state
    if gates:
        heads = ("gate", *(one["name"] for one in releases))
        rows = [(name, *states) for name, states in gates.items()]
        made.tables.append(Table("Quality gates", heads, rows, tuple(range(1, len(releases) + 1))))
    return made


def difference(facts: Facts, most: int) -> Section | None:
    """What changed between two releases, or None; ``most``: rows a list."""
    told = facts["difference"]
    if not told:
        return None
    before, after = told["before"], told["after"]
    made = Section("difference", f"From {before['name']} to {after['name']}")
    if told["same"]:
        made.said.append("The content is the same.")
        return made
    made.said.extend(
        [
            f"Questions: {len(told['added']):,} added, {len(told['removed']):,} removed, {len(told['moved']):,} in another split, "
            f"{len(told['passages']):,} with other passages.",
            f"Labels: {told['labels_up']:,} passages from 1 to 2, {told['labels_down']:,} from 2 to 1, of {len(told['labels']):,} questions.",
            f"Valid answers: {len(told['answers_added']):,} added, {len(told['answers_removed']):,} removed. "
            f"Reviews: {before['reviews']:,} before, {after['reviews']:,} after.",
        ]
    )
    points = {name: {int(size): share for size, share in some.items()} for name, some in told["by_hints"].items()}
    if len(points) == 2 and all(points.values()):
        sizes = sorted(set().union(*points.values()))
        rows = [(str(size), *(percent(some.get(size)) for some in points.values())) for size in sizes]
        drawn = plots.lines("plot-difference", points, "hints in the passage", "fully relevant (label 2)")
        title = "Fully relevant passages by number of hints"
        made.plots.append(Plot(title, ("hints", *points), rows, name="plot-difference", svg=drawn))
    for title, key, heads, columns in _LISTS:
        rows = [tuple(_cell(row[column]) for column in columns) for row in told[key]]
        if rows:
            text = tuple(at for at, name in enumerate(columns) if name not in ("up", "down"))
            made.tables.append(Table(title, heads, rows[:most], text, more=max(0, len(rows) - most)))
    return made


_ASKED = ("question_id", "question", "split", "reason")
_LISTS = (
    ("Questions added", "added", ("id", "question", "split", "reason"), _ASKED),
    ("Questions removed", "removed", ("id", "question", "split", "reason"), _ASKED),
    (
        "Questions in another split",
        "moved",
        ("id", "question", "before", "after", "reason"),
        ("question_id", "question", "before", "after", "reason"),
    ),
    ("Questions with other passages", "passages", ("id", "reason"), ("question_id", "reason")),
    ("Labels", "labels", ("id", "up", "down", "reasons"), ("question_id", "up", "down", "reasons")),
    (
        "Valid answers added",
        "answers_added",
        ("id", "answer", "origin", "reason"),
        ("question_id", "answer", "origin", "reason"),
    ),
    (
        "Valid answers removed",
        "answers_removed",
        ("id", "answer", "origin", "reason"),
        ("question_id", "answer", "origin", "reason"),
    ),
    ("Made otherwise", "origins", ("what", "key", "before", "after"), ("what", "key", "before", "after")),
)


def _cell(value: Any) -> str:
    return "none" if value is None else "; ".join(value) if isinstance(value, list) else str(value)
