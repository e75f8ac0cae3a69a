"""Convergence of a source against published values, and judges against people."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quit.errors import InputError
from quit.models.factory import Models
from quit.models.judges import Jury
from quit.operations import instruments
from quit.settings import Settings
from quit.sources import parse_source
from tests.answers import Rules
from tests.models.test_judges import voters
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


def test_each_judge_of_a_jury_is_held_against_people_and_the_others(tmp_path: Path) -> None:
    """Judge a agrees with people on 3 of 4 (kappa: chance 0.5), b could read 2 and is right, c always says yes."""
    candidates = [("YYY", True), ("N?Y", False), ("YYY", True), ("Y?Y", False)]
    asked = {"question": "Which?", "answers": ["Rome"]}
    rows = [{**asked, "candidate": text, "label": label} for text, label in candidates]
    models = SimpleNamespace(judge=Jury(voters(dict(candidates))), second_judge=Rules({}, "equivalence"))
    figures = instruments.judge(write_lines(tmp_path / "pairs.jsonl", rows), models)
    assert (figures["readable"], figures["accuracy"]) == (0.75, 2 / 3)  # N?Y is a tie, and Y?Y a wrong yes
    judges = {row["judge"]: row for row in figures["judges"]}
    columns = ("readable", "accuracy", "kappa", "yes")
    assert {name: tuple(row[column] for column in columns) for name, row in judges.items()} == {
        "a": (1.0, 0.75, 0.5, 0.75), "b": (0.5, 1.0, None, 1.0), "c": (1.0, 0.5, 0.0, 1.0),
    }  # fmt: skip
    assert judges["a"]["with"] == {"b": None, "c": 0.0}
    assert json.dumps(figures)
