"""Blind pages and others apart, and flags."""

from pathlib import Path

from quit import contracts
from quit.review.figures import flags
from quit.review.people import verification
from quit.settings import Review
from quit.stages.labelling.verdicts import decide, live_reviews
from tests.stages.labelling.test_verdicts import said


def _by(annotator: str, number: int, question: str, seconds: float | None, blind: bool | None, **answers: bool) -> list:
    rows = said(annotator, number, question=question, **answers)
    return [{**row, "blind": blind, "lead_seconds": seconds} for row in rows]


def live_rows():
    """Two people on two blind questions, one more on a third with the judge shown (pages of before say nothing)."""
    rows = [
        *_by("ada", 1, "q1", 10.0, True, x=True, y=False),
        *_by("ben", 2, "q1", 30.0, True, x=True, y=True),
        *_by("ada", 3, "q2", 20.0, True, x=False, y=False),
        *_by("cy", 4, "q3", 4.0, None, x=True),
        *_by("cy", 5, "q4", None, False, x=True),
    ]
    return live_reviews(contracts.table("reviews").from_rows(rows))


def test_blind_and_other_verdicts_are_counted_apart(tmp_path: Path) -> None:
    controls = tmp_path / "controls.jsonl"
    controls.write_text('{"question_id": "q1", "correct": ["x"], "incorrect": ["y"]}\n', encoding="utf-8")
    facts = verification(live_rows(), Review(controls=str(controls)))
    assert (facts["annotators"], facts["annotations"], facts["questions"], facts["people"]) == (3, 5, 4, [])
    blind, shown = facts["kinds"]
    # Worked out by hand. Alpha: of four values (x: yes yes, y: no yes) three are yes; observed disagreement 1/2,
    # expected 1/2.
    counts = {"annotators": 2, "annotations": 3, "questions": 2, "twice": 1, "answers": 6, "items": 2}
    agreement = {"seconds": 20.0, "alike": 0.5, "alpha": 0.0, "controls": 4, "controls_right": 3}
    assert blind == {"blind": True, **counts, **agreement}
    assert (shown["blind"], shown["annotators"], shown["annotations"], shown["seconds"]) == (False, 1, 2, 4.0)
    assert (shown["alike"], shown["alpha"], shown["items"], shown["controls"]) == (None, None, 0, 0)


def test_flags_are_counted_by_question_and_by_the_rule() -> None:
    """Of three reviewed questions two people flag q1, one of two flags q2 (a tie stays open); nobody flags q3."""
    rows = [
        *said("ada", 1, question="q1", flag_hint_false=True),
        *said("ben", 2, question="q1", flag_hint_false=True),
        *said("ada", 3, question="q2", flag_hint_false=True, flag_leak=True),
        *said("ben", 4, question="q2", flag_leak=True),
        *said("cy", 5, question="q3", x=True),
    ]
    live = live_reviews(contracts.table("reviews").from_rows(rows))
    decisions = decide(live, Review())
    counts = {row["flag"]: (row["questions"], row["agreed"], row["share"]) for row in flags(live, decisions)}
    none = (0, 0, 0.0)
    assert counts == {
        **{"leak": (1, 1, 1 / 3), "hint_false": (2, 1, 2 / 3)},
        **{"gold_wrong": none, "ambiguous": none, "offensive": none},
    }
    assert flags(live.slice(0, 0), decisions.slice(0, 0)) == []
