"""Judges against people."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quit.errors import InputError
from quit.operations import instruments
from tests.answers import Rules
from tests.rows import write_lines


@pytest.mark.parametrize("answers", [None, 5, {"Rome": 1}, [], [None]])
def test_answers_that_are_no_texts_are_said_with_their_line(tmp_path: Path, answers: Any) -> None:
    row = {"question": "Which?", "answers": answers, "candidate": "Rome", "label": True}
    with pytest.raises(InputError, match="line 1: answers must be texts"):
        list(instruments.judged_pairs(write_lines(tmp_path / "pairs.jsonl", [row])))


def test_a_judge_is_held_against_people_by_hand(tmp_path: Path) -> None:
    """It agrees with people on two of three replies that can be read: it accepts one wrong answer."""
    asked = {"question": "Which?", "answers": ["Rome"]}
    people = {"Roma": True, "Rom": True, "Oslo": False, "Bonn": False}
    judge = Rules({"Roma": True, "Rom": None, "Oslo": False, "Bonn": True}, "judge")
    rows = [{**asked, "candidate": text, "label": label} for text, label in people.items()]
    models = SimpleNamespace(judge=judge, second_judge=Rules(dict.fromkeys(people, False), "equivalence"))
    figures = instruments.judge(write_lines(tmp_path / "pairs.jsonl", rows), models)
    expected = {"n": 4, "questions": 1, "readable": 0.75, "yes": 2 / 3, "accuracy": 2 / 3, "accuracy_of_all": 0.5}
    expected |= {"precision": 0.5, "recall": 1.0, "equivalence_accuracy": 2 / 3, "agreement": 1 / 3}
    assert {name: figures[name] for name in expected} == pytest.approx(expected)
    assert figures["kappa"] == pytest.approx(0.4) and len(figures["unreadable"]) == 1
    assert json.dumps(figures)
