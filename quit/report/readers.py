"""The chapter *Readers*: how often each is right with and without hints, and how far they agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import cast

from quit.common.rows import grouped
from quit.evaluate.labels import Patterns, of_readers, reader_agreement
from quit.render import plots
from quit.render.table import Plot, Table, number, percent, share
from quit.report.charts import Pieces, bars
from quit.report.facts import Agreement, Alike, Facts
from quit.status.partial import asked_tables
from quit.text.words import counted

PROBE = """
    SELECT reader, count(DISTINCT question_id) AS questions, count(*) AS answers,
           count(*) FILTER (answer = 'NO ANSWER') AS no_answer, count(*) FILTER (correct) AS correct,
           count(DISTINCT question_id) FILTER (correct) AS known
    FROM probe_answers GROUP BY 1 ORDER BY 1
"""
"""Answers without hints, by reader. ``known``: questions that the reader answers correctly in any repetition."""


def agreement_figures(readers: Sequence[Mapping[str, str]], patterns: Patterns) -> Agreement:
    """Return how far readers are right on the same passages; ``readers``: name and role of those with answers;
    ``patterns``: of these, in their order."""
    names = [reader["name"] for reader in readers]
    labelers = {reader["name"] for reader in readers if reader["role"] == "labeler"}
    if len(names) < 2 or not patterns:
        return {"all": None, "labelers": None}
    places = [position for position, name in enumerate(names) if name in labelers]
    of_labelers = of_readers(patterns, places)
    return {
        "all": _agreement(names, patterns),
        "labelers": _agreement([names[position] for position in places], of_labelers) if len(places) > 1 else None,
    }


def _agreement(names: Sequence[str], patterns: Patterns) -> Alike:
    agreement = reader_agreement(names, patterns)
    right = [0] * (len(names) + 1)
    for (_, bits), passages in patterns.items():
        right[bits.bit_count()] += passages
    complete = len(agreement.compared) == len(names)
    return cast(Alike, {"readers": list(names), **asdict(agreement), "right": right if complete else None})


def reader_pieces(facts: Facts) -> Pieces:
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
        yield bars("right", "How many labelers answer correctly", heads, rows, "passages", note=note)
    if everyone:
        yield _agreement_sentence(everyone, labelers)
        if everyone["pairs"]:
            yield _kappas(everyone)


def _by_reader(facts: Facts) -> Iterable[Plot]:
    counts = grouped((row["reader"], row) for row in facts["readers_by_hints"])
    if not counts:
        return
    roles = {row["name"]: row["role"] or "in no profile" for row in facts["readers"] if row["name"] in counts}
    points = {name: {row["hints"]: row["correct"] / row["passages"] for row in counts[name]} for name in roles}
    sizes = sorted({row["hints"] for row in facts["readers_by_hints"]})
    without_hints = {row["reader"]: f"{row['known']:,} of {row['questions']:,}" for row in facts["probe"]}
    kinds = ("correct", "no_answer") if facts["imported"] else ("correct", "no_answer", "cut", "filtered")
    rows = []
    for name, role in roles.items():
        passages = sum(row["passages"] for row in counts[name])
        of_size = [percent(points[name].get(size)) for size in sizes]
        of_kind = [share(sum(row[kind] for row in counts[name]), passages) for kind in kinds]
        unknown = [None] * (4 - len(kinds))
        rows.append((name, role, without_hints.get(name), *of_size, *of_kind, *unknown, passages))
    hints = (counted(size, "hint") for size in sizes)
    heads = ("reader", "role", "known without hints", *hints, "all", "no answer", "cut", "withheld", "passages")
    svg = plots.lines("plot-readers", points, "hints in the passage", "correct answers")
    title = "Correct answers by reader and number of hints"
    yield Plot(title, heads, rows, (1,), name="plot-readers", svg=svg)


def _agreement_sentence(everyone: Alike, labelers: Alike | None) -> str:
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


def _kappas(agreement: Alike) -> Table:
    rows = [
        (f"{pair['first']}, {pair['second']}", pair["kappa"], f"{pair['agreement']:.0%}") for pair in agreement["pairs"]
    ]
    note = "Cohen's kappa of every two readers, and the share of passages that both answer correctly or both do not."
    return Table("Agreement of every two readers", ("readers", "kappa", "alike"), rows, note=note, fold=True)
