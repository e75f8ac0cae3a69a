"""The report's sections: which figures are said, which are drawn, and the table behind each plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from quit.report import plots

SPLITS = ("train", "dev", "test")
Facts = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table. ``text``: columns (from 0) that hold words and are set flush left, as the first one always is; ``more``: rows left out."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    text: tuple[int, ...] = ()
    note: str = ""
    more: int = 0


@dataclass(frozen=True)
class Plot(Table):
    """A plot (``svg``, trusted markup of :mod:`quit.report.plots`) with the table behind it; ``name`` is unique on the page."""

    name: str = ""
    svg: str = ""


@dataclass(frozen=True)
class Section:
    """``said``: sentences; then plots, then tables."""

    name: str
    title: str
    said: list[str] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def sections(facts: Facts, rows: int) -> list[Section]:
    """Return the sections that have anything to show; ``rows``: of a list at most."""
    made = (_funnel(facts), _hints(facts), _questions(facts), _labels(facts), _verdicts(facts), _review(facts, rows), _models(facts),
            _releases(facts), _difference(facts, rows))  # fmt: skip
    return [one for one in made if one is not None and (one.said or one.plots or one.tables)]


def percent(value: float | None) -> str:
    """Return a share of 1 as a percentage; a dash for None."""
    return "–" if value is None else f"{value:.1%}"


def number(value: float | None, form: str = ",.2f") -> str:
    """Return a number; a dash for None."""
    return "–" if value is None else format(value, form)


def _share(part: float, whole: float) -> str:
    return percent(part / whole if whole else None)


def _funnel(facts: Facts) -> Section:
    steps = facts["funnel"]
    first = steps[0][1]
    rows = [(name, f"{count:,}", _share(count, first)) for name, count in steps]
    drawn = plots.bars("plot-funnel", [name for name, _ in steps], {"questions": [count for _, count in steps]}, "questions")
    made = Section("funnel", "From collected to released")
    made.plots.append(Plot("What is left after each stage", ("step", "questions", "of the records"), rows, name="plot-funnel", svg=drawn))
    made.tables.append(Table("Sources", ("source", "questions"), [(row["source"], f"{row['questions']:,}") for row in facts["sources"]]))
    if facts["rejects"]:
        rows = [(row["stage"], row["kind"], row["reason"], f"{row['count']:,}", row["example"]) for row in facts["rejects"]]
        heads = ("stage", "what", "reason", "count", "for instance")
        made.tables.append(Table("Left out, and why", heads, rows, (1, 2, 4)))
    else:
        made.said.append("Nothing was left out.")
    return made  # fmt: skip


def _hints(facts: Facts) -> Section:
    made = Section("hints", "Hints: convergence and leakage")
    convergence, leakage = facts["convergence"], facts["leakage"]
    if convergence["groups"]:
        made.plots.append(
            _histogram("plot-convergence", "Convergence of hints", convergence["bars"], convergence["groups"], "convergence", "hints")
        )  # fmt: skip
    if leakage["methods"]:
        names = [row["method"] for row in leakage["methods"]]
        rows = [
            (row["method"], *(f"{row[key]:,}" for key in ("findings", "hints", "questions", "overridden")))
            for row in leakage["methods"]
        ]
        drawn = plots.bars("plot-leaks", names, {"findings": [row["findings"] for row in leakage["methods"]]}, "findings")
        heads = ("method", "findings", "hints", "questions", "overridden by people")
        made.plots.append(Plot("How leaks were found", heads, rows, name="plot-leaks", svg=drawn))
        made.plots.append(
            _histogram("plot-leakage", "Probability of leaks", leakage["bars"], ["findings"], "probability", "findings")
        )
    per = [(str(row["leaking"]), row["questions"]) for row in leakage["by_question"]]
    drawn = plots.bars("plot-leaking", [f"{name} leaking hints" for name, _ in per], {"questions": [n for _, n in per]}, "questions")
    rows = [(name, f"{count:,}") for name, count in per]
    made.plots.append(
        Plot("Leaking hints a question", ("leaking hints", "questions"), rows, name="plot-leaking", svg=drawn)
    )
    if convergence["producers"]:
        rows = [
            (row["producer"], row["hints"], f"{row['count']:,}", number(row["mean"]), number(row["median"]))
            for row in convergence["producers"]
        ]
        made.tables.append(Table("Who scored convergence", ("producer", "hints", "count", "mean", "median"), rows, (1,)))
    return made  # fmt: skip


def _histogram(name: str, title: str, bars: list[Facts], groups: Sequence[str], across: str, up: str) -> Plot:
    rows = [(f"{row['low']:.3g} to {row['high']:.3g}", *(f"{row[group]:,}" for group in groups)) for row in bars]
    drawn = plots.histogram(name, bars, groups, across, up)
    return Plot(title, (across, *groups), rows, name=name, svg=drawn)


def _questions(facts: Facts) -> Section | None:
    made = Section("questions", "Types and difficulty")
    types, difficulty, agreed = facts["types"], facts["difficulty"], facts["type_agreement"]
    if not types:
        return None
    if agreed["typed"]:
        made.said.append(
            f"The classifier agrees with the sources' own types on {_share(agreed['coarse'], agreed['typed'])} (coarse) and "
            f"{_share(agreed['fine'], agreed['typed'])} (fine) of {agreed['typed']:,} questions."
        )
    drawn = plots.bars(
        "plot-types", [row["coarse"] for row in types], {split: [row[split] for row in types] for split in SPLITS}, "questions"
    )  # fmt: skip
    rows = [(row["coarse"], *(f"{row[key]:,}" for key in (*SPLITS, "questions", "fine"))) for row in types]
    made.plots.append(
        Plot("Questions by type", ("type", *SPLITS, "all", "fine types"), rows, name="plot-types", svg=drawn)
    )
    groups = [row["bin"] for row in difficulty["bins"]]
    made.plots.append(
        _histogram("plot-difficulty", "Difficulty", difficulty["bars"], groups, "difficulty, 0 easy to 1 hard", "questions")
    )  # fmt: skip
    rows = [
        (row["bin"], *(f"{row[key]:,}" for key in (*SPLITS, "questions")), number(row["mean"]))
        for row in difficulty["bins"]
    ]
    made.tables.append(Table("Difficulty by split", ("difficulty", *SPLITS, "all", "mean"), rows))
    return made


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


def _labels(facts: Facts) -> Section:
    made = Section("labels", "Labels and readers")
    told = facts["statistics"]
    if told:
        by = {row["split"]: {} for row in told["summary"]}
        for row in told["by_hints"]:
            by[row["split"]].setdefault(row["n_hints"], 0.0)
            if row["label"] == 2:
                by[row["split"]][row["n_hints"]] = row["share"]
        heads = ("hints", *by)
        sizes = sorted({size for points in by.values() for size in points})
        rows = [(str(size), *(percent(points.get(size)) for points in by.values())) for size in sizes]
        drawn = plots.lines("plot-by-hints", by, "hints in the passage", "fully relevant (label 2)")
        title = "Fully relevant passages by number of hints (the paper's figure 6)"
        made.plots.append(Plot(title, heads, rows, name="plot-by-hints", svg=drawn))
    made.plots.extend(_reader_plots(facts))
    if told:
        for key, column, title in (("by_difficulty", "difficulty_bin", "difficulty"), ("by_type", "coarse", "type")):
            order = [row["bin"] for row in facts["difficulty"]["bins"]] if title == "difficulty" else []
            made.plots.append(_shares(told[key], column, title, order))
        summary = told["summary"]
        rows = [
            (name, *(number(row[key], form) for row in summary))
            for key, name, form in _TABLE_1
            if any(row[key] is not None for row in summary)
        ]
        made.tables.append(Table("The dataset in figures (the paper's table 1)", ("", *(row["split"] for row in summary)), rows))
    return made  # fmt: skip


def _reader_plots(facts: Facts) -> Iterable[Plot]:
    by: dict[str, dict[int, tuple[int, int, int]]] = {}
    for row in facts["readers_by_hints"]:
        by.setdefault(row["reader"], {})[row["hints"]] = (row["passages"], row["no_answer"], row["correct"])
    if not by:
        return
    role = {row["name"]: row["role"] for row in facts["readers"]}
    ordered = [row["name"] for row in facts["readers"] if row["name"] in by]
    points = {name: {size: right / count for size, (count, _, right) in by[name].items()} for name in ordered}
    sizes = sorted({size for some in by.values() for size in some})
    rows = []
    for name in ordered:
        total = [sum(values) for values in zip(*by[name].values(), strict=True)]
        shares = [percent(points[name].get(size)) for size in sizes]
        rows.append((name, role[name], *shares, _share(total[2], total[0]), _share(total[1], total[0]), f"{total[0]:,}"))
    heads = ("reader", "role", *(f"{size} hints" for size in sizes), "all", "no answer", "passages")
    drawn = plots.lines("plot-readers", points, "hints in the passage", "correct answers")
    yield Plot("Correct answers by reader and number of hints", heads, rows, (1,), name="plot-readers", svg=drawn)  # fmt: skip


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
    made = [
        (name, f"{count:,}", f"{right:,}", _share(right, count)) for name, (count, right) in groups.items()
    ]
    heads = (title, "passages", "label 2", "share")
    return Plot(f"Fully relevant passages by {title}", heads, made, name=f"plot-by-{title}", svg=drawn)  # fmt: skip


def _verdicts(facts: Facts) -> Section:
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
            f"{judges['judge']} and {judges['second']} agree on {_share(judges['agree'], judges['answers'])} of {judges['answers']:,} "
            f"answers (Cohen's kappa {number(judges['kappa'])}); {judges['only_judge']:,} only the first accepts, "
            f"{judges['only_second']:,} only the second; {judges['unread']:,} have no readable verdict of the first."
        )
    return made


def _review(facts: Facts, most: int) -> Section:
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
            (row["split"], f"{row['asked']:,}", f"{row['reviewed']:,}", _share(row["reviewed"], row["asked"]))
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


def _models(facts: Facts) -> Section:
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


def _releases(facts: Facts) -> Section | None:
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


def _difference(facts: Facts, most: int) -> Section | None:
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
    ("Questions in another split", "moved", ("id", "question", "before", "after", "reason"),
     ("question_id", "question", "before", "after", "reason")),
    ("Questions with other passages", "passages", ("id", "reason"), ("question_id", "reason")),
    ("Labels", "labels", ("id", "up", "down", "reasons"), ("question_id", "up", "down", "reasons")),
    ("Valid answers added", "answers_added", ("id", "answer", "origin", "reason"), ("question_id", "answer", "origin", "reason")),
    ("Valid answers removed", "answers_removed", ("id", "answer", "origin", "reason"), ("question_id", "answer", "origin", "reason")),
    ("Made otherwise", "origins", ("what", "key", "before", "after"), ("what", "key", "before", "after")),
)  # fmt: skip


def _cell(value: Any) -> str:
    return "none" if value is None else "; ".join(value) if isinstance(value, list) else str(value)
