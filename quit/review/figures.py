"""Figures of a review: agreement of annotators on answers, blind pages and others, flags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import asdict
from statistics import median
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from quit.common.arithmetic import sum_in_order
from quit.common.rows import Row, tuples
from quit.evaluate.agreement import alpha_of, cohen_kappa, pair_agreements
from quit.review.controls import Controls, control_scores
from quit.stages.labelling.verdicts import FLAGS, annotations_of, rows_of_pages, votes


class AnnotatorAgreement(TypedDict):
    """``answers``: verdicts; ``shared``: pairs of these with others' on the same answer, ``kappa_with_others``: over
    these pairs."""

    annotator: str
    answers: int
    shared: int
    kappa_with_others: float | None


class AnswerAgreement(TypedDict):
    """``items``: answers judged by two or more; ``alpha``: Krippendorff's; ``pairs``: rows of
    :class:`quit.evaluate.agreement.PairAgreement`."""

    items: int
    alpha: float | None
    pairs: list[Row]
    annotators: list[AnnotatorAgreement]


class KindRow(TypedDict):
    """``twice``: questions that two or more people did; ``seconds``: median of an annotation (None: unknown);
    ``answers``: verdicts; ``items``: answers with two or more; ``alike``: share of pairs of verdicts on one answer that
    agree (None: no pair); ``alpha``: Krippendorff's (None: not defined); ``controls`` and ``controls_right``: verdicts
    on control questions."""

    blind: bool
    annotators: int
    annotations: int
    questions: int
    twice: int
    seconds: float | None
    answers: int
    items: int
    alike: float | None
    alpha: float | None
    controls: int
    controls_right: int


class FlagRow(TypedDict):
    """``questions``: with the flag by at least one person; ``agreed``: on which the owner's rule settles that it holds;
    ``share``: ``questions`` of all annotated ones."""

    flag: str
    questions: int
    agreed: int
    share: float


def agreement(live: pa.Table) -> AnswerAgreement:
    """Return agreement on answers (an item is a question's answer): alpha, kappa of every pair, and of each annotator
    with the others."""
    judged: dict[str, dict[Hashable, Hashable]] = {}
    for kind, question, key, annotator, yes in tuples(votes(live), "kind", "question_id", "key", "annotator", "yes"):
        if kind == "answer":
            judged.setdefault(annotator, {})[question, key] = yes
    counts = Counter(item for verdicts in judged.values() for item in verdicts)
    people: list[AnnotatorAgreement] = []
    for annotator, verdicts in sorted(judged.items()):
        shared = Counter[tuple[Hashable, Hashable]]()
        for other, theirs in judged.items():
            if other != annotator:
                shared.update((verdicts[item], theirs[item]) for item in verdicts.keys() & theirs.keys())
        people.append({
            "annotator": annotator, "answers": len(verdicts), "shared": shared.total(),
            "kappa_with_others": cohen_kappa(shared),
        })  # fmt: skip
    return {
        "items": sum(count > 1 for count in counts.values()),
        "alpha": alpha_of(judged),
        "pairs": [asdict(pair) for pair in pair_agreements(judged)],
        "annotators": people,
    }


def kinds(live: pa.Table, controls: Controls | None) -> list[KindRow]:
    """Return what people did on blind pages and on others: a row for each kind that occurs, blind first."""
    rows: list[KindRow] = []
    for blind in (True, False):
        page_rows = rows_of_pages(live, blind)
        headers = annotations_of(page_rows).to_pylist()
        if not headers:
            continue
        questions = [row["question_id"] for row in headers]
        seconds = [row["lead_seconds"] for row in headers if row["lead_seconds"] is not None]
        figures, scores = agreement(page_rows), control_scores(page_rows, controls)
        pairs = sum(pair["items"] for pair in figures["pairs"])
        alike = sum_in_order(pair["items"] * pair["agreement"] for pair in figures["pairs"])
        rows.append(
            {
                "blind": blind,
                "annotators": len({row["annotator"] for row in headers}),
                "annotations": len(headers),
                "questions": len(set(questions)),
                "twice": sum(count > 1 for count in Counter(questions).values()),
                "seconds": round(median(seconds), 1) if seconds else None,
                "answers": sum(person["answers"] for person in figures["annotators"]),
                "items": figures["items"],
                "alike": alike / pairs if pairs else None,
                "alpha": figures["alpha"],
                "controls": sum(person["asked"] for person in scores),
                "controls_right": sum(person["right"] for person in scores),
            }
        )
    return rows


def flags(live: pa.Table, decisions: pa.Table) -> list[FlagRow]:
    """Return how often each flag was set in the reviews that count, on which ``decisions`` rest; nothing without
    annotations."""
    rows = decisions.filter(pc.equal(decisions.column("kind"), "flag")).to_pylist()
    by_anyone = Counter(flag for flag, _ in {(row["key"], row["question_id"]) for row in rows})
    agreed = Counter(flag for flag, _ in {(row["key"], row["question_id"]) for row in rows if row["decision"]})
    annotated = len(live["question_id"].unique())
    return [
        {"flag": flag, "questions": by_anyone[flag], "agreed": agreed[flag], "share": by_anyone[flag] / annotated}
        for flag in FLAGS
        if annotated
    ]
