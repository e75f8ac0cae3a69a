"""Convergence of a source against published values, and judges against people."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quit.errors import InputError
from quit.models.factory import Models
from quit.operations import instruments
from quit.settings import Settings
from quit.sources import parse_source
from tests.answers import Rules
from tests.rows import write_lines


def test_convergence_of_a_source_without_candidates_is_measured_with_drawn_ones(tmp_path: Path) -> None:
    landmarks = {"Paris": "Eiffel Tower", "Berlin": "Reichstag", "Rome": "Colosseum"}
    weak = [{"hint": f"It is a city {n}.", "convergence": 0.1} for n in range(4)]
    rows = [
        {"id": city, "question": f"Which city is number {n}?", "answers": [city],
         "hints": [{"hint": f"The {landmark} is there.", "convergence": 1.0}, *weak]}
        for n, (city, landmark) in enumerate(landmarks.items())
    ]  # fmt: skip
    path = write_lines(tmp_path / "some.jsonl", rows)
    figures = instruments.convergence_agreement(parse_source(f"jsonl:{path}"), Models(Settings()), Settings())
    assert (figures["n"], figures["scored"], figures["exact_match"]) == (15, 0, None)
    assert figures["spearman"] > 0


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
