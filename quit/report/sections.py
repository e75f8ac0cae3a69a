"""The report's sections in their order: sentences, plots with the table behind each, and tables, from the figures of
:mod:`quit.report.data`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from quit.evaluate.labels import SPLITS
from quit.render.table import Plot, Table, number, plain_name, share, short_identity
from quit.report.charts import MAX_ROWS, Pieces, bars, histogram
from quit.report.facts import Facts, Leakage
from quit.report.given import given_pieces
from quit.report.labels import label_pieces
from quit.report.readers import reader_pieces
from quit.review.report import audit_pieces, described
from quit.status.judges import JudgeAgreement, agreement_tables
from quit.status.notes import type_sentence
from quit.text.words import counted


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


def sections(facts: Facts) -> list[Section]:
    """Return the sections that have anything to show."""
    sections = (Section(name, title, list(pieces(facts))) for name, title, pieces in _SECTIONS)
    return [section for section in sections if section.pieces]


def _import(facts: Facts) -> Pieces:
    yield from facts["imported"]


def _funnel(facts: Facts) -> Pieces:
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


def _hints(facts: Facts) -> Pieces:
    """Convergence and leaks of the hints."""
    convergence, leakage = facts["convergence"], facts["leakage"]
    if facts["given"]:
        return
    if convergence["groups"]:
        rows = [
            (row["hints"], short_identity(row["producer"]), row["count"], row["mean"], row["median"])
            for row in convergence["producers"]
        ]
        title, groups = "Convergence of hints", convergence["groups"]
        plot = histogram("convergence", title, convergence["bars"], groups, "convergence", "hints")
        yield replace(plot, heads=("hints", "producer", "count", "mean", "median"), rows=rows, text=(1,))
    if leakage:
        yield from _leaks(leakage)


def _leaks(leakage: Leakage) -> Pieces:
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


def _questions(facts: Facts) -> Pieces:
    """Types and difficulty; nothing before questions are described."""
    types, difficulty, agreement = facts["types"], facts["difficulty"], facts["type_agreement"]
    if not types:
        return
    if agreement["typed"]:
        yield type_sentence(**agreement)
    rows = [(plain_name(row["coarse"]), *(row[key] for key in (*SPLITS, "questions", "fine"))) for row in types]
    heads: tuple[str, ...] = ("type", *SPLITS, "all", "fine types")
    yield bars("types", "Questions by type", heads, rows, "questions", (1, 2, 3))
    groups = [row["bin"] for row in difficulty["bins"]]
    rows = [tuple(row[key] for key in ("bin", *SPLITS, "questions", "mean")) for row in difficulty["bins"]]
    across = "difficulty, 0 easy to 1 hard"
    plot = histogram("difficulty", "Difficulty", difficulty["bars"], groups, across, "questions")
    yield replace(plot, heads=("difficulty", *SPLITS, "all", "mean"), rows=rows)


def _verdicts(facts: Facts) -> Pieces:
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


def _review(facts: Facts) -> Pieces:
    """How far the review is, how annotators agree, and what the audit says of all labels."""
    if facts["review"]:
        yield from described(facts["review"], MAX_ROWS)
    if facts["audit"]:
        yield from audit_pieces(facts["audit"])


def _models(facts: Facts) -> Pieces:
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


def _releases(facts: Facts) -> Pieces:
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


_SECTIONS: tuple[tuple[str, str, Callable[[Facts], Pieces]], ...] = (
    ("imported", "Imported files", _import),
    ("funnel", "From sources to releases", _funnel),
    ("hints", "Hints: convergence and leakage", _hints),
    ("questions", "Types and difficulty", _questions),
    ("labels", "Labels", label_pieces),
    ("given", "Given passages", lambda facts: given_pieces(facts["given"])),
    ("readers", "Readers", reader_pieces),
    ("verdicts", "Judges and people", _verdicts),
    ("review", "Review by people", _review),
    ("models", "Costs and cache", _models),
    ("releases", "Releases", _releases),
)
