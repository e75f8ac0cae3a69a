"""The report's sections on what came of it: verdicts, reviews, costs, releases and their difference."""

from __future__ import annotations

from quit.release.show import differences
from quit.render import plots
from quit.render.table import Plot, Table, number, percent, share
from quit.report.pieces import SPLITS, Facts, Section
from quit.review.report import described
from quit.status.summary import JudgeAgreement


def verdicts(facts: Facts) -> Section:
    """The judge against people, and against a second judge."""
    section = Section("verdicts", "Judges and people")
    people, judges = facts["people"], facts["judges"]
    if people:
        section.said.append(
            f"The judge ({facts['judge']}) and people agree on {percent(people['agreement'])} of the "
            f"{people['answers']:,} answers that it had to decide and people settled (Cohen's kappa "
            f"{number(people['kappa'])})."
        )
        section.said.extend(
            f"{'Blind tasks alone' if kind['blind'] else 'Tasks on which the judge ticked its verdicts, alone'}: "
            f"{percent(kind['agreement'])} of {kind['answers']:,} answers (kappa {number(kind['kappa'])})."
            for kind in people["kinds"]
        )
        if not any(kind["blind"] for kind in people["kinds"]):
            section.said.append("People saw the judge's verdicts, so this agreement is not independent of them.")
        if not people["both_yes"] + people["only_judge"]:
            rejected = share(people["both_no"], people["answers"])
            section.said.append(
                f"The judge accepts none of these answers, and people reject {rejected}: the agreement says little."
            )
        rows = [
            ("judge: correct", f"{people['both_yes']:,}", f"{people['only_judge']:,}"),
            ("judge: wrong", f"{people['only_people']:,}", f"{people['both_no']:,}"),
        ]
        note = f"{people['unread']:,} more have no readable verdict." if people["unread"] else ""
        section.tables.append(
            Table("The judge against people", ("answers", "people: correct", "people: wrong"), rows, note=note)
        )
    if judges:
        section.said.append(JudgeAgreement(**judges).sentence())
    return section


def review(facts: Facts, most: int) -> Section:
    """How far the review is and how annotators agree; ``most``: rows a list."""
    section = Section("review", "Review by people")
    progress = facts["review"]
    if not progress:
        if not facts["release"]:  # that has no rows of reviews, whoever reviewed it
            section.said.append("No review has been pulled yet.")
        return section
    _fill(section, described(progress, most))
    splits = progress["splits"]
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
        section.plots.append(
            Plot("Progress", ("split", "asked", "reviewed", "share"), rows, name="plot-review", svg=drawn)
        )
    return section


def models(facts: Facts) -> Section:
    """What language models cost."""
    section = Section("models", "Costs and cache")
    usage = facts["usage"]
    if not usage["costs"]:
        if not facts["release"]:  # that does not know what it cost
            section.said.append("No language model was asked: nothing was spent.")
        return section
    priced = [row["cost"] for row in usage["costs"] if row["cost"] is not None]
    if priced:
        section.said.append(f"Cost at the profile's prices: {sum(priced):,.2f}.")
    note = (
        "Over all runs of the workspace. Kept: served by the generation cache; cached: prompt tokens from the "
        "server's prefix cache."
    )
    section.tables.append(Table("Language models", usage["heads"], usage["rows"], note=note))
    costs = [
        (row["model"], f"{row['replies']:,}", f"{row['asked']:,}", f"{row['kept']:,}", percent(row["kept_share"]),
         number(row["cost"]))
        for row in usage["costs"]
    ]  # fmt: skip
    heads = ("language model", "replies", "paid for", "from the cache", "cache hits", "cost")
    section.tables.append(Table("Costs and cache hits", heads, costs))
    return section


def releases(facts: Facts) -> Section | None:
    """Versions and their gates, or None."""
    releases = facts["releases"]
    if not releases:
        return None
    section = Section("releases", "Releases")
    rows = [
        (row["name"], row["content_id"], *(f"{row['questions'].get(split, 0):,}" for split in (*SPLITS, "all")),
         f"{row['reviews']:,}", f"{row['annotators']:,}") for row in releases
    ]  # fmt: skip
    heads = ("release", "content id", *SPLITS, "all", "reviews", "annotators")
    section.tables.append(Table("Versions", heads, rows, (1,)))
    gates: dict[str, list[str]] = {}
    for position, release in enumerate(releases):
        for gate in release["gates"]:
            state = gate["state"] + (f": {gate['waiver']}" if gate["waiver"] else "")
            gates.setdefault(gate["gate"], ["–"] * len(releases))[position] = state
    if gates:
        heads = ("gate", *(release["name"] for release in releases))
        rows = [(name, *states) for name, states in gates.items()]
        section.tables.append(Table("Quality gates", heads, rows, tuple(range(1, len(releases) + 1))))
    return section


def difference(facts: Facts, most: int) -> Section | None:
    """What changed between two releases, or None; ``most``: rows a list."""
    changes = facts["difference"]
    if not changes:
        return None
    section = Section("difference", f"From {changes['before']['name']} to {changes['after']['name']}")
    _fill(section, differences(changes, most))
    if changes["same"]:
        return section
    points = {name: {int(size): share for size, share in some.items()} for name, some in changes["by_hints"].items()}
    if len(points) == 2 and all(points.values()):
        sizes = sorted(set().union(*points.values()))
        rows = [(str(size), *(percent(some.get(size)) for some in points.values())) for size in sizes]
        drawn = plots.lines("plot-difference", points, "hints in the passage", "fully relevant (label 2)")
        title = "Fully relevant passages by number of hints"
        section.plots.append(Plot(title, ("hints", *points), rows, name="plot-difference", svg=drawn))
    return section


def _fill(section: Section, pieces: list[Table | str]) -> None:
    for piece in pieces:
        section.tables.append(piece) if isinstance(piece, Table) else section.said.append(piece)
