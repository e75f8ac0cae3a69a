"""Convergence of a source against published values."""

from pathlib import Path

from quit.models.factory import Models
from quit.operations import instruments
from quit.settings import Settings
from quit.sources import parse_source
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
