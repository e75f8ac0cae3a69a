"""The report's sections on how the dataset was made: funnel, hints, questions, labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quit.report import plots
from quit.report.pieces import SPLITS, Facts, Plot, Section, Table, number, percent, share


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
    section.plots.extend(_leak_plots(leakage) if leakage else ())
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
        yield _histogram(
            "plot-leakage", "Probability of leaks", leakage["bars"], ["findings"], "probability", "findings"
        )
    per = [(str(row["leaking"]), row["questions"]) for row in leakage["by_question"]]
    drawn = plots.bars(
        "plot-leaking", [f"{name} leaking hints" for name, _ in per], {"questions": [n for _, n in per]}, "questions"
    )
    rows = [(name, f"{count:,}") for name, count in per]
    yield Plot("Leaking hints a question", ("leaking hints", "questions"), rows, name="plot-leaking", svg=drawn)


def _histogram(name: str, title: str, bars: list[Facts], groups: Sequence[str], across: str, up: str) -> Plot:
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
        section.said.append(
            f"The classifier agrees with the sources' own types on {share(agreed['coarse'], agreed['typed'])} "
            f"(coarse) and {share(agreed['fine'], agreed['typed'])} (fine) of {agreed['typed']:,} questions."
        )
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


_TABLE_1 = (
    ("questions", "questions", ",.0f"),
    ("passages", "passages", ",.0f"),
    ("question_words", "words a question", ",.2f"),
    ("passage_words", "words a passage", ",.2f"),
    ("answer_words", "words a valid answer", ",.2f"),
    ("gold_answer_words", "words a gold answer", ",.2f"),
    ("lexical_overlap", "lexical overlap of question and passage", ".3f"),
    ("answer_containment", "passages that hold an answer", ".3f"),
    ("semantic_similarity", "semantic similarity of question and passage", ".3f"),
)


def labels(facts: Facts) -> Section:
    """Labels and readers by number of hints, labels by type and difficulty, table 1."""
    section = Section("labels", "Labels and readers")
    figures = facts["statistics"]
    if figures:
        by: dict[str, dict[int, float]] = {row["split"]: {} for row in figures["summary"]}
        for row in figures["by_hints"]:
            by[row["split"]].setdefault(row["n_hints"], 0.0)
            if row["label"] == 2:
                by[row["split"]][row["n_hints"]] = row["share"]
        heads = ("hints", *by)
        sizes = sorted({size for points in by.values() for size in points})
        rows = [(str(size), *(percent(points.get(size)) for points in by.values())) for size in sizes]
        drawn = plots.lines("plot-by-hints", by, "hints in the passage", "fully relevant (label 2)")
        title = "Fully relevant passages by number of hints"
        section.plots.append(Plot(title, heads, rows, name="plot-by-hints", svg=drawn))
    section.plots.extend(_reader_plots(facts))
    if figures:
        for key, column, title in (("by_difficulty", "difficulty_bin", "difficulty"), ("by_type", "coarse", "type")):
            order = [row["bin"] for row in facts["difficulty"]["bins"]] if title == "difficulty" else []
            if figures[key]:
                section.plots.append(_shares(figures[key], column, title, order))
        summary = figures["summary"]
        rows = [
            (name, *(number(row[key], form) for row in summary))
            for key, name, form in _TABLE_1
            if any(row[key] is not None for row in summary)
        ]
        section.tables.append(
            Table("The dataset in figures (the paper's table 1)", ("", *(row["split"] for row in summary)), rows)
        )
    return section


def _reader_plots(facts: Facts) -> Iterable[Plot]:
    by: dict[str, dict[int, list[int]]] = {}
    for row in facts["readers_by_hints"]:
        counts = [row[name] for name in ("passages", "no_answer", "correct", "cut")]
        by.setdefault(row["reader"], {})[row["hints"]] = counts
    if not by:
        return
    role = {row["name"]: row["role"] for row in facts["readers"]}
    ordered = [row["name"] for row in facts["readers"] if row["name"] in by]
    points = {name: {size: right / count for size, (count, _, right, _) in by[name].items()} for name in ordered}
    sizes = sorted({size for some in by.values() for size in some})
    rows = []
    for name in ordered:
        total = [sum(values) for values in zip(*by[name].values(), strict=True)]
        shares = [percent(points[name].get(size)) for size in sizes]
        cut = "–" if facts["imported"] else share(total[3], total[0])
        of_all = (share(total[2], total[0]), share(total[1], total[0]), cut)
        rows.append((name, role[name], *shares, *of_all, f"{total[0]:,}"))
    heads = ("reader", "role", *(f"{size} hints" for size in sizes), "all", "no answer", "cut", "passages")
    drawn = plots.lines("plot-readers", points, "hints in the passage", "correct answers")
    yield Plot("Correct answers by reader and number of hints", heads, rows, (1,), name="plot-readers", svg=drawn)


def _shares(rows: list[Facts], column: str, title: str, order: Sequence[str]) -> Plot:
    """Share of label 2 in each group of all splits, those of ``order`` first."""
    groups: dict[str, list[int]] = {name: [0, 0] for name in order}
    for row in rows:
        if row["split"] == "all":
            counts = groups.setdefault(row[column], [0, 0])
            counts[0] += row["passages"]
            counts[1] += row["passages"] if row["label"] == 2 else 0
    values = [right / count if count else 0.0 for count, right in groups.values()]
    drawn = plots.bars(f"plot-by-{title}", list(groups), {"label 2": values}, "fully relevant (label 2)", share=True)
    table_rows = [(name, f"{count:,}", f"{right:,}", share(right, count)) for name, (count, right) in groups.items()]
    heads = (title, "passages", "label 2", "share")
    return Plot(f"Fully relevant passages by {title}", heads, table_rows, name=f"plot-by-{title}", svg=drawn)
