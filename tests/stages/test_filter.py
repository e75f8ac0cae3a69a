"""Which questions and hints stay. The rules decide; without an equivalence model."""

import pytest

from quit.settings import Leakage
from quit.stages.filter import filter_leaks
from tests.rows import table_of, tuples

QUESTION = "Which river flows through Khartoum?"


def _filtered(mode: str, keep: int, *leaking: int) -> tuple[list[str], list[tuple]]:
    """Return the usable hints of a question of four, those at ``leaking`` with its answer in them, and the rejects."""
    texts = [f"The Nile, seen from side {n}." if n in leaking else f"It floods in month {n}." for n in range(4)]
    questions = table_of("questions", [{"question_id": "q", "question": QUESTION, "answers": ["Nile"]}])
    hints = [{"hint_id": f"q-h0{n}", "question_id": "q", "position": n, "hint": text} for n, text in enumerate(texts)]
    hints = table_of("hints", hints)
    tables = filter_leaks(questions, hints, None, None, Leakage(mode=mode), keep)
    assert tables["leak_findings"]["hint_id"].to_pylist() == [f"q-h0{n}" for n in leaking]
    return tables["usable_hints"]["hint_id"].to_pylist(), tuples(tables["rejects"], "kind", "reason", "hint_id")


HINTS = ["q-h00", "q-h01", "q-h02", "q-h03"]
HINT_1, HINT_3 = ("hint", "answer_leak", "q-h01"), ("hint", "answer_leak", "q-h03")


@pytest.mark.parametrize(
    ("mode", "keep", "leaking", "usable", "rejects"),
    [
        ("question", 3, [1], [], [("question", "answer_leak", None)]),
        ("question", 3, [], HINTS, []),
        ("hint", 3, [1], ["q-h00", "q-h02", "q-h03"], [HINT_1]),
        ("hint", 2, [1, 3], ["q-h00", "q-h02"], [HINT_1, HINT_3]),
        ("hint", 3, [1, 3], [], [HINT_1, HINT_3, ("question", "too_few_hints_left", None)]),
        ("hint", 5, [], HINTS, []),  # too few from the start: not this rule's
    ],
)
def test_a_leaking_hint_takes_the_question_or_goes_alone(mode, keep, leaking, usable, rejects) -> None:
    assert _filtered(mode, keep, *leaking) == (usable, rejects)
