"""The report's sections on how the dataset was made: funnel, hints, questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quit.render import plots
from quit.render.table import Plot, Table, number, share
from quit.report.pieces import SPLITS, Facts, Section
from quit.status.summary import type_sentence
from quit.text.words import counted


def imported(facts: Facts) -> Section:
    """What is known of published files that a release was imported from."""
    return Section("imported", "Imported files", said=list(facts["imported"]))


def funnel(facts: Facts) -> Section | None:
    """What is left after each stage, and what was left out and why; None for a release."""
    if facts["release"]:
        return None
    steps = facts["funnel"]
    first = steps[0][1]
    rows = [(name, f"{count:,}", share(count, first)) for name, count in steps]
    drawn = plots.bars(
        "plot-funnel", [name for name, _ in steps], {"questions": [count for _, count in steps]}, "questions"
    )
    section = Section("funnel", "From collected to released")
    collected = dict(steps)["questions collected"]
    section.said.append(
        f"{first:,} questions in the sources; {collected:,} have enough hints, from {facts['counts']['records']:,} "
        "source records."
    )
    section.plots.append(
        Plot(
            "What is left after each stage",
            ("step", "questions", "of the first"),
            rows,
            name="plot-funnel",
            svg=drawn,
        )
    )
    section.tables.append(
        Table(
            "Sources", ("source", "questions"), [(row["source"], f"{row['questions']:,}") for row in facts["sources"]]
        )
    )
    if facts["rejects"]:
        rejects = [
            (row["stage"], row["kind"], row["reason"], f"{row['count']:,}", row["example"]) for row in facts["rejects"]
        ]
        heads = ("stage", "what", "reason", "count", "for instance")
        section.tables.append(Table("Left out, and why", heads, rejects, (1, 2, 4)))
    else:
        section.said.append("Nothing was left out.")
    return section


def hints(facts: Facts) -> Section:
    """Convergence and leaks of the hints."""
    section = Section("hints", "Hints: convergence and leakage")
    convergence, leakage = facts["convergence"], facts["leakage"]
    if convergence["groups"]:
        section.plots.append(
            _histogram(
                "plot-convergence",
                "Convergence of hints",
                convergence["bars"],
                convergence["groups"],
                "convergence",
                "hints",
            )
        )
    if leakage:
        section.plots.extend(_leak_plots(leakage))
        section.tables.extend(_leaks_by_question(leakage))
    if convergence["producers"]:
        rows = [
            (row["producer"], row["hints"], f"{row['count']:,}", number(row["mean"]), number(row["median"]))
            for row in convergence["producers"]
        ]
        section.tables.append(
            Table("Who scored convergence", ("producer", "hints", "count", "mean", "median"), rows, (1,))
        )
    return section


def _leak_plots(leakage: Facts) -> Iterable[Plot]:
    if leakage["methods"]:
        names = [row["method"] for row in leakage["methods"]]
        rows = [
            (row["method"], *(f"{row[key]:,}" for key in ("findings", "hints", "questions", "overridden")))
            for row in leakage["methods"]
        ]
        drawn = plots.bars(
            "plot-leaks", names, {"findings": [row["findings"] for row in leakage["methods"]]}, "findings"
        )
        heads = ("method", "findings", "hints", "questions", "overridden by people")
        yield Plot("How leaks were found", heads, rows, name="plot-leaks", svg=drawn)
        if sum(row["findings"] > 0 for row in leakage["bars"]) > 1:  # rules alone: all have probability 1
            title = "Probability of leaks"
            yield _histogram("plot-leakage", title, leakage["bars"], ["findings"], "probability", "findings")
    by_question = [(str(row["leaking"]), row["questions"]) for row in leakage["by_question"]]
    names = [counted(row["leaking"], "leaking hint") for row in leakage["by_question"]]
    drawn = plots.bars("plot-leaking", names, {"questions": [count for _, count in by_question]}, "questions")
    rows = [(name, f"{count:,}") for name, count in by_question]
    yield Plot("Leaking hints a question", ("leaking hints", "questions"), rows, name="plot-leaking", svg=drawn)


def _leaks_by_question(leakage: Facts) -> Iterable[Table]:
    rows = [
        (row["question_id"], row["question"], f"{row['leaking']:,} of {row['hints']:,}", row["words"], row["outcome"])
        for row in leakage["questions"]
    ]
    if rows:
        heads = ("id", "question", "leaking hints", "words", "outcome")
        yield Table("Leaks by question", heads, rows, (1, 3, 4), more=leakage["leaking"] - len(rows))


def _histogram(name: str, title: str, bars: list[Facts], groups: Sequence[str], across: str, up: str) -> Plot:
    filled = [at for at, row in enumerate(bars) if any(row[group] for group in groups)]
    bars = bars[filled[0] : filled[-1] + 1] if filled else bars  # the width is for what there is
    rows = [(f"{row['low']:.3g} to {row['high']:.3g}", *(f"{row[group]:,}" for group in groups)) for row in bars]
    drawn = plots.histogram(name, bars, groups, across, up)
    return Plot(title, (across, *groups), rows, name=name, svg=drawn)


def questions(facts: Facts) -> Section | None:
    """Types and difficulty; None before questions are described."""
    section = Section("questions", "Types and difficulty")
    types, difficulty, agreed = facts["types"], facts["difficulty"], facts["type_agreement"]
    if not types:
        return None
    if agreed["typed"]:
        section.said.append(type_sentence(**agreed))
    drawn = plots.bars(
        "plot-types",
        [row["coarse"] for row in types],
        {split: [row[split] for row in types] for split in SPLITS},
        "questions",
    )
    rows = [(row["coarse"], *(f"{row[key]:,}" for key in (*SPLITS, "questions", "fine"))) for row in types]
    section.plots.append(
        Plot("Questions by type", ("type", *SPLITS, "all", "fine types"), rows, name="plot-types", svg=drawn)
    )
    groups = [row["bin"] for row in difficulty["bins"]]
    section.plots.append(
        _histogram(
            "plot-difficulty", "Difficulty", difficulty["bars"], groups, "difficulty, 0 easy to 1 hard", "questions"
        )
    )
    rows = [
        (row["bin"], *(f"{row[key]:,}" for key in (*SPLITS, "questions")), number(row["mean"]))
        for row in difficulty["bins"]
    ]
    section.tables.append(Table("Difficulty by split", ("difficulty", *SPLITS, "all", "mean"), rows))
    return section
