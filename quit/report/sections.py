"""The report's sections in their order: sentences, plots with the table behind each, and tables, from the figures of
:mod:`quit.report.data`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quit.evaluate.labels import SPLITS
from quit.release.show import differences
from quit.release.whatif import summary
from quit.render import plots
from quit.render.table import (
    Plot,
    Table,
    number,
    percent,
    plain_name,
    share,
    short_identity,
    table_1,
)
from quit.report.designs import design_pieces
from quit.report.given import given_pieces
from quit.report.validity import roles
from quit.review.audit import audit_pieces
from quit.review.report import described
from quit.status.asked import asked_tables
from quit.status.judges import JudgeAgreement, agreement_tables
from quit.status.summary import type_sentence
from quit.text.words import counted

Facts = dict[str, Any]
"""What :func:`quit.report.data.gather` returns, or a part of it."""
Pieces = Iterator[str | Table]


@dataclass(frozen=True)
class Section:
    """A section of the page; ``pieces``: sentences, plots and tables."""

    name: str
    title: str
    pieces: Sequence[str | Table]

    @property
    def sentences(self) -> list[str]:
        """Its sentences."""
        return [piece for piece in self.pieces if isinstance(piece, str)]

    @property
    def plots(self) -> list[Plot]:
        """Its plots."""
        return [piece for piece in self.pieces if isinstance(piece, Plot)]

    @property
    def tables(self) -> list[Table]:
        """Its tables, except those behind plots."""
        return [piece for piece in self.pieces if isinstance(piece, Table) and not isinstance(piece, Plot)]


def sections(facts: Facts, max_rows: int) -> list[Section]:
    """Return the sections that have anything to show; ``max_rows``: rows of a list."""
    sections = (Section(name, title, list(pieces(facts, max_rows))) for name, title, pieces in _SECTIONS)
    return [section for section in sections if section.pieces]


def _import(facts: Facts, max_rows: int) -> Pieces:
    yield from facts["imported"]


def _funnel(facts: Facts, max_rows: int) -> Pieces:
    """What is left after each stage, what was left out and why; nothing for a release."""
    steps = facts["funnel"]
    if not steps:
        return
    if facts["small_pool"]:
        yield facts["small_pool"]
    sources, records = facts["sources"], facts["counts"]["records"]
    total = sum(row["questions"] for row in sources)
    by_source = ", ".join(f"{row['source']}: {row['questions']:,}" for row in sources)
    parts = [f"{count:,} {step}" for step, count in steps if not step.startswith("after ")]
    collected = f"{total:,} collected ({by_source})"
    if records != total:
        collected += f" from {records:,} records"
    parts.insert(1, collected)
    yield f"Questions: {', '.join(parts)}."
    rejects = [
        (plain_name(row["reason"]), row["stage"], row["kind"], row["count"], row["example"]) for row in facts["rejects"]
    ]
    if rejects:
        yield Table("Left out, and why", ("reason", "stage", "what", "count", "for instance"), rejects, (1, 2, 4))
        if facts["ways_out"]:
            yield facts["ways_out"]
    else:
        yield "Nothing was left out."


def _hints(facts: Facts, max_rows: int) -> Pieces:
    """Convergence and leaks of the hints."""
    convergence, leakage = facts["convergence"], facts["leakage"]
    if facts["given"]:
        return
    if convergence["groups"]:
        rows = [
            (row["hints"], short_identity(row["producer"]), row["count"], row["mean"], row["median"])
            for row in convergence["producers"]
        ]
        bars, groups = convergence["bars"], convergence["groups"]
        plot = _histogram("convergence", "Convergence of hints", bars, groups, "convergence", "hints")
        yield replace(plot, heads=("hints", "producer", "count", "mean", "median"), rows=rows, text=(1,))
    if leakage:
        yield from _leaks(leakage)


def _leaks(leakage: Facts) -> Pieces:
    if leakage["losses"]:
        yield leakage["losses"]
    leaking = sum(row["leaking"] * row["questions"] for row in leakage["by_question"])
    owners = sum(row["questions"] for row in leakage["by_question"] if row["leaking"])
    methods = ", ".join(f"{plain_name(row['method'])} {row['findings']:,}" for row in leakage["methods"])
    sentence = f"{leaking:,} of {counted(leakage['hints'], 'hint')} leak an answer, in {counted(owners, 'question')}"
    yield f"{sentence}; findings by method: {methods}." if methods else f"{sentence}."
    rows = [
        (row["question_id"], row["question"], f"{row['leaking']:,} of {row['hints']:,}", row["words"], row["outcome"])
        for row in leakage["questions"]
    ]
    if rows:
        heads = ("id", "question", "leaking hints", "words", "outcome")
        yield Table("Leaks by question", heads, rows, (1, 3, 4), more=leakage["leaking"] - len(rows), fold=True)


def _questions(facts: Facts, max_rows: int) -> Pieces:
    """Types and difficulty; nothing before questions are described."""
    types, difficulty, agreement = facts["types"], facts["difficulty"], facts["type_agreement"]
    if not types:
        return
    if agreement["typed"]:
        yield type_sentence(**agreement)
    rows = [(plain_name(row["coarse"]), *(row[key] for key in (*SPLITS, "questions", "fine"))) for row in types]
    heads: tuple[str, ...] = ("type", *SPLITS, "all", "fine types")
    yield _bars("types", "Questions by type", heads, rows, "questions", (1, 2, 3))
    groups = [row["bin"] for row in difficulty["bins"]]
    rows = [tuple(row[key] for key in ("bin", *SPLITS, "questions", "mean")) for row in difficulty["bins"]]
    across = "difficulty, 0 easy to 1 hard"
    plot = _histogram("difficulty", "Difficulty", difficulty["bars"], groups, across, "questions")
    yield replace(plot, heads=("difficulty", *SPLITS, "all", "mean"), rows=rows)


def _labels(facts: Facts, max_rows: int) -> Pieces:
    """Labels by split with the bounds that follow, by number of hints, type and difficulty; table 1."""
    figures = facts["statistics"]
    if shares_by_split := {row["split"]: share(row["parametric"], row["questions"]) for row in facts["drawn_from_all"]}:
        shares = ", ".join(f"{shares_by_split[split]} of {split}" for split in SPLITS if split in shares_by_split)
        yield f"Splits are drawn from all questions (split.train = any). Answered without hints: {shares}."
    if figures:
        yield _by_hints(figures)
        for key, column, title in (("by_difficulty", "difficulty_bin", "difficulty"), ("by_type", "coarse", "type")):
            order = [row["bin"] for row in facts["difficulty"]["bins"]] if title == "difficulty" else []
            if figures[key]:
                yield _shares(figures[key], column, title, order)
    yield from (_shared_answers(row) for row in facts["splits"]["shared"] if row["answers"])
    if rows := facts["splits"]["labels"]:
        yield _labels_by_split(rows, figures)


def _labels_by_split(rows: Sequence[Facts], figures: Facts | None) -> Table:
    """Return labels by split, the bounds that follow, and the figures of table 1."""
    figure_rows = table_1(figures["summary"]).rows if figures else ()
    cells = {
        "questions": [row["questions"] for row in rows],
        "without label 2": [row["without_label_2"] for row in rows],
        "highest Hit, RR, Recall": [row["bound"] for row in rows],
        "passages": [row["passages"] for row in rows],
        "label 2": [row["label_2"] for row in rows],
        "share of label 2": [percent(row["share"]) for row in rows],
    }
    table = [*cells.items(), *((name, values) for name, *values in figure_rows if name not in cells)]
    note = (
        "A question without any passage of label 2 counts as 0 in the means of Hit, RR and Recall at label 2, whatever "
        "a system retrieves. So the share of the other questions is the highest mean that a system can reach. The rows "
        "after the labels are the paper's table 1."
    )
    heads = ("", *(row["split"] for row in rows))
    return Table("The dataset in figures", heads, [(name, *values) for name, values in table], note=note)


def _by_hints(figures: Facts) -> Plot:
    by_split: dict[str, dict[int, float]] = {row["split"]: {} for row in figures["summary"]}
    for row in figures["by_hints"]:
        by_split[row["split"]].setdefault(row["n_hints"], 0.0)
        if row["label"] == 2:
            by_split[row["split"]][row["n_hints"]] = row["share"]
    return _shares_by_hints("by-hints", by_split)


def _shares_by_hints(name: str, series: Mapping[str, Mapping[int, float]]) -> Plot:
    sizes = sorted({size for points in series.values() for size in points})
    rows = [(size, *(percent(points.get(size)) for points in series.values())) for size in sizes]
    svg = plots.lines(f"plot-{name}", series, "hints in the passage", "fully relevant (label 2)")
    title = "Fully relevant passages by number of hints"
    return Plot(title, ("hints", *series), rows, name=f"plot-{name}", svg=svg)


def _shares(rows: list[Facts], column: str, title: str, order: Sequence[str]) -> Plot:
    """Share of label 2 in each group of all splits, those of ``order`` first."""
    groups: dict[str, list[int]] = {name: [0, 0] for name in order}
    for row in rows:
        if row["split"] == "all":
            counts = groups.setdefault(row[column], [0, 0])
            counts[0] += row["passages"]
            counts[1] += row["passages"] if row["label"] == 2 else 0
    values = [right / count if count else 0.0 for count, right in groups.values()]
    names = [plain_name(name) for name in groups]
    svg = plots.bars(f"plot-by-{title}", names, {"label 2": values}, "fully relevant (label 2)", share=True)
    cells = [(name, *counts, share(counts[1], counts[0])) for name, counts in zip(names, groups.values(), strict=True)]
    heads = (title, "passages", "label 2", "share")
    return Plot(f"Fully relevant passages by {title}", heads, cells, name=f"plot-by-{title}", svg=svg)


def _shared_answers(row: Facts) -> str:
    answers = "; ".join(row["answers"][:5]) + (" …" if len(row["answers"]) > 5 else "")
    return (
        f"{row['first']} and {row['second']} share {counted(len(row['answers']), 'gold answer')} (of "
        f"{row['first_questions']:,} and {counted(row['second_questions'], 'question')}): {answers}."
    )


def _validity(facts: Facts, max_rows: int) -> Pieces:
    """What the labels rest on: hints, labelers, people."""
    yield from roles(facts["roles"])
    if facts["whatif"]:
        yield summary(facts["whatif"])
    if facts["designs"]:
        yield from design_pieces(facts["designs"])
    if facts["audit"]:
        yield from audit_pieces(facts["audit"])


def _readers(facts: Facts, max_rows: int) -> Pieces:
    """How often each reader is right with and without hints, and how far they agree."""
    yield from _by_reader(facts)
    yield from asked_tables(facts["asked"])
    everyone, labelers = facts["agreement"]["all"], facts["agreement"]["labelers"]
    if labelers and labelers["right"]:
        names = ["none", *(str(count) for count in range(1, len(labelers["readers"]) + 1))]
        rows = [
            (name, count, share(count, labelers["passages"]))
            for name, count in zip(names, labelers["right"], strict=True)
        ]
        note = "A passage with label 2 that one labeler alone answers correctly rests on it."
        heads = ("labelers", "passages", "share")
        yield _bars("right", "How many labelers answer correctly", heads, rows, "passages", note=note)
    if everyone:
        yield _agreement_sentence(facts["agreement"])
        if everyone["pairs"]:
            yield _kappas(everyone)


def _by_reader(facts: Facts) -> Iterable[Plot]:
    counts: dict[str, dict[int, list[int]]] = {}
    for row in facts["readers_by_hints"]:
        of_size = [row[name] for name in ("passages", "no_answer", "correct", "cut", "filtered")]
        counts.setdefault(row["reader"], {})[row["hints"]] = of_size
    if not counts:
        return
    roles = {row["name"]: row["role"] or "in no profile" for row in facts["readers"]}
    names = [name for name in roles if name in counts]
    points = {name: {size: right / total for size, (total, _, right, *_) in counts[name].items()} for name in names}
    sizes = sorted({size for by_size in counts.values() for size in by_size})
    without_hints = {row["reader"]: f"{row['known']:,} of {row['questions']:,}" for row in facts["probe"]}
    rows = []
    for name in names:
        passages, no_answer, correct, *ended = (sum(values) for values in zip(*counts[name].values(), strict=True))
        shares = [percent(points[name].get(size)) for size in sizes]
        shares += [share(correct, passages), share(no_answer, passages)]
        cells = (*(None if facts["imported"] else share(count, passages) for count in ended), passages)
        rows.append((name, roles[name], without_hints.get(name), *shares, *cells))
    hints = (counted(size, "hint") for size in sizes)
    heads = ("reader", "role", "known without hints", *hints, "all", "no answer", "cut", "withheld", "passages")
    svg = plots.lines("plot-readers", points, "hints in the passage", "correct answers")
    title = "Correct answers by reader and number of hints"
    yield Plot(title, heads, rows, (1,), name="plot-readers", svg=svg)


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
    rows = [
        (f"{pair['first']}, {pair['second']}", pair["kappa"], f"{pair['agreement']:.0%}") for pair in agreement["pairs"]
    ]
    note = "Cohen's kappa of every two readers, and the share of passages that both answer correctly or both do not."
    return Table("Agreement of every two readers", ("readers", "kappa", "alike"), rows, note=note, fold=True)


def _verdicts(facts: Facts, max_rows: int) -> Pieces:
    """The judge against people, and against other judges."""
    agreements = [JudgeAgreement(**row) for row in facts["judges"]["agreements"]]
    pages = [(row["blind"], JudgeAgreement(**row["agreement"])) for row in facts["judges"]["pages"]]
    if pages:
        people = agreements[0]
        yield (
            f"The judge ({people.second}) and people agree on {people.alike} of the {people.answers:,} answers that it "
            f"had to decide and people settled (Cohen's kappa {number(people.kappa)})."
        )
        for blind, row in pages:
            tasks = "Blind tasks only" if blind else "Only tasks on which the judge's verdicts were ticked"
            yield f"{tasks}: {row.alike} of {row.answers:,} answers (kappa {number(row.kappa)})."
        if not any(blind for blind, _ in pages):
            yield "People saw the judge's verdicts, so this agreement is not independent of them."
        if not people.both + people.only_second:
            rejection = share(people.neither, people.answers)
            yield f"The judge accepts none of these answers, and people reject {rejection}: the agreement says little."
    yield from agreement_tables(agreements)


def _review(facts: Facts, max_rows: int) -> Pieces:
    """How far the review is and how annotators agree."""
    progress = facts["review"]
    if not progress:
        return
    yield from described(progress, max_rows)


def _models(facts: Facts, max_rows: int) -> Pieces:
    """What language models cost."""
    usage = facts["usage"]
    if not usage["costs"]:
        return
    costs = [row["cost"] for row in usage["costs"] if row["cost"] is not None]
    if costs:
        yield f"Cost at the profile's prices: {sum(costs):,.2f}."
    note = (
        "Over all runs of the workspace. Kept: served by the generation cache; cached: prompt tokens from the "
        "server's prefix cache."
    )
    rows = [(*row, cost["cost"]) for row, cost in zip(usage["rows"], usage["costs"], strict=True)]
    yield Table("Language models", (*usage["heads"], "cost"), rows, note=note)


def _releases(facts: Facts, max_rows: int) -> Pieces:
    """Versions and their gates."""
    releases = facts["releases"]
    if not releases:
        return
    rows = [
        (row["name"], row["content_id"][:12], *(row["questions"].get(split, 0) for split in (*SPLITS, "all")),
         row["reviews"], row["annotators"]) for row in releases
    ]  # fmt: skip
    heads: tuple[str, ...] = ("release", "content id", *SPLITS, "all", "reviews", "annotators")
    yield Table("Versions", heads, rows, (1,))
    gates: dict[str, list[str | None]] = {}
    for position, release in enumerate(releases):
        for gate in release["gates"]:
            state = gate["state"] + (f": {gate['waiver']}" if gate["waiver"] else "")
            gates.setdefault(gate["gate"], [None] * len(releases))[position] = state
    if gates:
        heads = ("gate", *(release["name"] for release in releases))
        rows = [(name, *states) for name, states in gates.items()]
        yield Table("Quality gates", heads, rows, tuple(range(1, len(releases) + 1)))


def _difference(facts: Facts, max_rows: int) -> Pieces:
    """What changed between two releases."""
    changes = facts["difference"]
    if not changes:
        return
    yield f"From {changes['before']['name']} to {changes['after']['name']}."
    yield from differences(changes, max_rows)
    points = {name: {int(size): share for size, share in some.items()} for name, some in changes["by_hints"].items()}
    if not changes["same"] and len(points) == 2 and all(points.values()):
        yield _shares_by_hints("difference", points)


def _bars(
    name: str,
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    across: str,
    columns: Sequence[int] = (1,),
    note: str = "",
) -> Plot:
    """Return bars for the counts in some ``columns`` of a table, stacked."""
    series = {heads[column]: [row[column] for row in rows] for column in columns}
    svg = plots.bars(f"plot-{name}", [row[0] for row in rows], series, across)
    return Plot(title, heads, rows, note=note, name=f"plot-{name}", svg=svg)


def _histogram(name: str, title: str, bars: list[Facts], groups: Sequence[str], across: str, up: str) -> Plot:
    rows = [(f"{row['low']:.3g} to {row['high']:.3g}", *(row[group] for group in groups)) for row in bars]
    svg = plots.histogram(f"plot-{name}", bars, groups, across, up)
    return Plot(title, (across, *groups), rows, name=f"plot-{name}", svg=svg)


_SECTIONS: tuple[tuple[str, str, Callable[[Facts, int], Pieces]], ...] = (
    ("imported", "Imported files", _import),
    ("funnel", "From sources to releases", _funnel),
    ("hints", "Hints: convergence and leakage", _hints),
    ("questions", "Types and difficulty", _questions),
    ("labels", "Labels", _labels),
    ("given", "Given passages", lambda facts, _: given_pieces(facts["given"])),
    ("readers", "Readers", _readers),
    ("validity", "What the labels rest on", _validity),
    ("verdicts", "Judges and people", _verdicts),
    ("review", "Review by people", _review),
    ("models", "Costs and cache", _models),
    ("releases", "Releases", _releases),
    ("difference", "Difference of two releases", _difference),
)
