"""The report's sections on labels and readers: what bounds the scores, who is right how often, who agrees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quit.render import plots
from quit.render.table import Plot, Table, number, percent, share, table_1
from quit.report.pieces import Facts, Section
from quit.status.asked import asked_tables
from quit.text.words import counted


def labels(facts: Facts) -> Section:
    """Labels by split with the bounds that follow, by number of hints, type and difficulty; table 1."""
    section = Section("labels", "Labels")
    rows = facts["splits"]["labels"]
    if rows:
        section.plots.append(_bounds(rows))
        section.tables.append(_labels_by_split(rows))
    figures = facts["statistics"]
    if figures:
        section.plots.append(_by_hints(figures))
        for key, column, title in (("by_difficulty", "difficulty_bin", "difficulty"), ("by_type", "coarse", "type")):
            order = [row["bin"] for row in facts["difficulty"]["bins"]] if title == "difficulty" else []
            if figures[key]:
                section.plots.append(_shares(figures[key], column, title, order))
    shared = facts["splits"]["shared"]
    if shared:
        section.tables.append(_shared(shared))
    if figures:
        section.tables.append(table_1(figures["summary"]))
    return section


def _bounds(rows: Sequence[Facts]) -> Plot:
    splits = [row for row in rows if row["split"] != "all"]
    series = {
        "some passage has label 2": [row["with_label_2"] for row in splits],
        "none has": [row["without_label_2"] for row in splits],
    }
    drawn = plots.bars("plot-bounds", [row["split"] for row in splits], series, "questions")
    heads = ("split", *series)
    cells = [(row["split"], f"{row['with_label_2']:,}", f"{row['without_label_2']:,}") for row in rows]
    return Plot("Questions with and without label 2", heads, cells, name="plot-bounds", svg=drawn)


def _labels_by_split(rows: Sequence[Facts]) -> Table:
    predicted = any(row["predicted"] for row in rows)
    heads = ("split", "questions", "without label 2", "share", "highest Hit, RR, Recall", "passages", "label 1",
             "label 2", "share", *(["predicted"] if predicted else []))  # fmt: skip
    cells = [
        (row["split"], f"{row['questions']:,}", f"{row['without_label_2']:,}",
         share(row["without_label_2"], row["questions"]), number(row["bound"]), f"{row['passages']:,}",
         f"{row['passages'] - row['label_2']:,}", f"{row['label_2']:,}", percent(row["share"]),
         *([f"{row['predicted']:,}"] if predicted else [])) for row in rows
    ]  # fmt: skip
    note = (
        "A question without any passage of label 2 counts as 0 in the means of Hit, RR and Recall at label 2, whatever "
        "a system retrieves. So the share of the other questions is the highest mean that a system can reach."
    )
    return Table("Labels by split, and the highest scores", heads, cells, note=note)


def _by_hints(figures: Facts) -> Plot:
    by_split: dict[str, dict[int, float]] = {row["split"]: {} for row in figures["summary"]}
    for row in figures["by_hints"]:
        by_split[row["split"]].setdefault(row["n_hints"], 0.0)
        if row["label"] == 2:
            by_split[row["split"]][row["n_hints"]] = row["share"]
    sizes = sorted({size for points in by_split.values() for size in points})
    rows = [(str(size), *(percent(points.get(size)) for points in by_split.values())) for size in sizes]
    drawn = plots.lines("plot-by-hints", by_split, "hints in the passage", "fully relevant (label 2)")
    title = "Fully relevant passages by number of hints"
    return Plot(title, ("hints", *by_split), rows, name="plot-by-hints", svg=drawn)


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


def _shared(rows: Sequence[Facts]) -> Table:
    cells = [
        (f"{row['first']} and {row['second']}", f"{len(row['answers']):,}", f"{row['first_questions']:,}",
         f"{row['second_questions']:,}", "; ".join(row["answers"][:5]) + (" …" if len(row["answers"]) > 5 else ""))
        for row in rows
    ]  # fmt: skip
    heads = ("splits", "answers", "questions of the first", "of the second", "for instance")
    note = (
        "Gold answers, compared without case, articles and punctuation. A model trained on the one split can have "
        "learnt answers of the other."
    )
    return Table("Answers shared by splits", heads, cells, (4,), note)


def readers(facts: Facts) -> Section:
    """Who reads, how often each is right with and without hints, and how far they agree."""
    section = Section("readers", "Readers")
    section.plots.extend(_by_reader(facts))
    section.tables.extend(asked_tables(facts["asked"]))
    section.plots.extend(_labelers_right(facts["agreement"]["labelers"]))
    agreement = facts["agreement"]["all"]
    if agreement and agreement["pairs"]:
        section.tables.append(_kappas(agreement))
    if agreement:
        section.said.append(_agreement_sentence(facts["agreement"]))
    if facts["probe"]:
        section.tables.append(_probe(facts))
    names = [(row["name"], row["role"] or "in no profile", row["kind"] or "–") for row in facts["readers"]]
    section.tables.append(Table("Roles", ("reader", "role", "kind"), names, (1, 2)))
    return section


def _role(facts: Facts) -> dict[str, str]:
    return {row["name"]: row["role"] for row in facts["readers"]}


def _by_reader(facts: Facts) -> Iterable[Plot]:
    counts: dict[str, dict[int, list[int]]] = {}
    for row in facts["readers_by_hints"]:
        of_size = [row[name] for name in ("passages", "no_answer", "correct", "cut")]
        counts.setdefault(row["reader"], {})[row["hints"]] = of_size
    if not counts:
        return
    role = _role(facts)
    ordered = [name for name in role if name in counts]
    points = {name: {size: right / total for size, (total, _, right, _) in counts[name].items()} for name in ordered}
    sizes = sorted({size for by_size in counts.values() for size in by_size})
    rows = []
    for name in ordered:
        passages, no_answer, correct, cut = (sum(values) for values in zip(*counts[name].values(), strict=True))
        shares = [percent(points[name].get(size)) for size in sizes]
        of_all = (share(correct, passages), share(no_answer, passages))
        rows.append(
            (name, role[name], *shares, *of_all, "–" if facts["imported"] else share(cut, passages), f"{passages:,}")
        )
    heads = ("reader", "role", *(counted(size, "hint") for size in sizes), "all", "no answer", "cut", "passages")
    drawn = plots.lines("plot-readers", points, "hints in the passage", "correct answers")
    yield Plot("Correct answers by reader and number of hints", heads, rows, (1,), name="plot-readers", svg=drawn)


def _labelers_right(agreement: Facts | None) -> Iterable[Plot]:
    if agreement is None or agreement["right"] is None:
        return
    names = ["none", *(str(count) for count in range(1, len(agreement["readers"]) + 1))]
    drawn = plots.bars("plot-right", names, {"passages": agreement["right"]}, "passages")
    rows = [
        (name, f"{count:,}", share(count, agreement["passages"]))
        for name, count in zip(names, agreement["right"], strict=True)
    ]
    note = "A passage with label 2 that one labeler alone answers correctly rests on that one."
    heads = ("labelers", "passages", "share")
    yield Plot("How many labelers answer correctly", heads, rows, note=note, name="plot-right", svg=drawn)


def _agreement_sentence(agreement: Facts) -> str:
    everyone, labelers = agreement["all"], agreement["labelers"]
    passages = counted(everyone["passages"], "passage")
    if len(everyone["compared"]) < len(everyone["readers"]):
        text = (
            "A labeler that is asked only about what earlier ones got wrong (labels.partial) cannot be compared with "
            "other readers, and its share of correct answers is of harder passages."
        )
        if not everyone["pairs"]:
            return text
        return f"{text} Krippendorff's alpha of the other readers over {passages}: {number(everyone['alpha'])}."
    text = f"Krippendorff's alpha of all readers over {passages}: {number(everyone['alpha'])}"
    return text + (f"; of the {len(labelers['readers'])} labelers: {number(labelers['alpha'])}." if labelers else ".")


def _kappas(agreement: Facts) -> Table:
    names = agreement["compared"]
    cells = {(pair["first"], pair["second"]): pair for pair in agreement["pairs"]}
    rows = []
    for row, first in enumerate(names):
        pairs = [cells[first, second] for second in names[row + 1 :]]
        alike = [f"{number(pair['kappa'])} ({pair['agreement']:.0%})" for pair in pairs]
        rows.append((first, *[""] * row, *alike)[: len(names)])
    note = "Cohen's kappa of every two readers, and the share of passages that both answer correctly or both do not."
    return Table("Agreement of readers", ("", *names[1:]), rows[:-1], note=note)


def _probe(facts: Facts) -> Table:
    role = _role(facts)
    by_reader = {row["reader"]: row for row in facts["probe"]}
    rows = [
        (name, role.get(name, ""), f"{row['questions']:,}", f"{row['known']:,}", share(row["known"], row["questions"]),
         f"{row['answers']:,}", share(row["correct"], row["answers"]), share(row["no_answer"], row["answers"]))
        for name in dict.fromkeys([*role, *sorted(by_reader)])
        if (row := by_reader.get(name))
    ]  # fmt: skip
    heads = ("reader", "role", "questions", "known", "share", "answers", "correct", "no answer")
    note = "Known: answered correctly at least once, in any repetition."
    return Table("Answers without hints, by reader", heads, rows, (1,), note)
