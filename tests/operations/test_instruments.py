"""The instruments against independent truth, through the functions behind ``quit evaluate``."""

from pathlib import Path

import numpy as np
import pytest

from quit.errors import InputError
from quit.models.factory import Models
from quit.operations import instruments
from quit.settings import Settings
from quit.sources import SourceRef, parse_source
from tests.rows import write_lines

CASES = Path(__file__).parents[1] / "stages" / "leaks"


@pytest.fixture(scope="module")
def models() -> Models:
    return Models(Settings())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "precision", "recall"),
    [("cases", 320, 0.95, 0.95), ("cases_2", 100, 0.95, 0.95), ("cases_3", 287, 0.95, 0.90),
     ("cases_sealed", 220, 0.95, 0.84)],
)  # fmt: skip
def test_leakage_on_adversarial_cases_written_by_hand(models, name, n, precision, recall) -> None:
    """Rules were chosen with sight of the first three files; only the last says something of unseen cases."""
    figures = instruments.leakage(CASES / f"{name}.jsonl", models, Settings())
    assert figures["n"] == n
    assert figures["precision"] >= precision
    assert figures["recall"] >= recall
    if name == "cases":
        plain = [figures["by_kind"][kind] for kind in ("exact", "surname", "common_noun", "given_name", "innocent")]
        assert all(kind["right"] == kind["n"] for kind in plain)


def test_convergence_of_a_source_without_candidates_is_measured_with_drawn_ones(models: Models, tmp_path: Path) -> None:
    landmarks = {"Paris": "Eiffel Tower", "Berlin": "Reichstag", "Rome": "Colosseum"}
    weak = [{"hint": f"It is a city {n}.", "convergence": 0.1} for n in range(4)]
    rows = [
        {"id": city, "question": f"Which city is number {n}?", "answers": [city],
         "hints": [{"hint": f"The {landmark} is there.", "convergence": 1.0}, *weak]}
        for n, (city, landmark) in enumerate(landmarks.items())
    ]  # fmt: skip
    path = write_lines(tmp_path / "some.jsonl", rows)
    figures = instruments.convergence_agreement(parse_source(f"jsonl:{path}"), models, Settings())
    assert (figures["n"], figures["scored"], figures["exact_match"]) == (15, 0, None)
    assert figures["spearman"] > 0


@pytest.mark.slow
def test_a_reader_does_better_with_hints(models: Models, data: Path) -> None:
    source = parse_source(f"wikihint:{data / 'wikihint' / 'test_first50.json'}")
    figures = instruments.reader(source, "minilm-statement", models)
    assert figures["n"] == 50
    assert figures["candidates_with_hints"] >= 0.6 and figures["pool_with_hints"] >= 0.4
    assert figures["candidates_with_hints"] > figures["candidates_question_only"]
    assert figures["pool_with_hints"] > figures["pool_question_only"]


def _pairs(path: Path, *pairs: tuple[list[str] | str, str, int]) -> Path:
    columns = ("answers", "candidate", "label")
    return write_lines(path, ({"question": "Which?", **dict(zip(columns, pair))} for pair in pairs))


def test_equivalence_takes_the_best_gold_answer(models: Models, tmp_path: Path) -> None:
    usa, mexico = (["Canada", "United States"], "USA", True), (["Canada"], "Mexico", 0)
    figures = instruments.equivalence(_pairs(tmp_path / "p", usa, mexico, ("Ada Lovelace", "Ada Lovelace", 1)), models)
    assert (figures["n"], figures["accuracy"], figures["f1"]) == (3, 1.0, 1.0)
    assert 0 <= figures["calibration_error"] < 0.2
    # Counted by hand: without a model, USA is missed; the rest is right.
    assert (figures["exact_match_accuracy"], figures["containment_accuracy"]) == (pytest.approx(2 / 3),) * 2


def test_containment_is_of_whole_words(models: Models, tmp_path: Path) -> None:
    replies = [("It was Paul Anka, surely.", 1), ("Pauline", 0), ("paul anka's band", 0), ("", 0)]
    figures = instruments.equivalence(_pairs(tmp_path / "p", *((["Paul Anka"], *row) for row in replies)), models)
    assert (figures["exact_match_accuracy"], figures["containment_accuracy"]) == (0.75, 1.0)


def _typed_source(path: Path, *types: tuple[str, str, str]) -> SourceRef:
    rows = [
        {"id": str(number), "question": question, "answers": ["x"], "hints": [f"hint {n}" for n in range(5)]}
        | ({"question_type": {"coarse": coarse, "fine": fine}} if coarse else {})
        for number, (question, coarse, fine) in enumerate(types)
    ]
    return parse_source(f"jsonl:{write_lines(path, rows)}")


def test_agreement_with_a_sources_own_types(models: Models, tmp_path: Path) -> None:
    when, untyped = "When was Mozart born ?", ("Who wrote it ?", "", "")
    count = ("NUM:NUMERIC", "count:Count")
    central = ("What city hosts the Central Station ?", "LOC:LOCATION", "city:City")
    others = ((when, *count), ("When was Bach born ?", *count), ("When was Liszt born ?", "OTH:OTHER", "date:Date"))
    source = _typed_source(tmp_path / "typed.jsonl", central, *others, untyped)
    figures = instruments.question_type_agreement(source, models)
    assert (figures["n"], figures["coarse_agreement"], figures["fine_agreement"]) == (4, 0.75, 0.5)
    assert (figures["outside_taxonomy"], figures["coarse_agreement_in_taxonomy"]) == (1, 1.0)
    first = {"source": "NUM:NUMERIC / count:Count", "classifier": "NUM:NUMERIC / date:Date", "n": 2, "example": when}
    assert figures["confusion"][0] == first and len(figures["confusion"]) == 2
    with pytest.raises(InputError, match="names no question types"):
        instruments.question_type_agreement(_typed_source(tmp_path / "none.jsonl", untyped), models)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"hint": "x", "answer": "y"}', "'leaks' is missing"),
        ('{"hint": "x", "leaks": true}', "line 1: expected answer"),
        ('{"hint": "x", "answer": "y", "leaks": "maybe"}', "true or false"),
        ("", "is empty"),
    ],
)
def test_bad_cases_are_named_by_line(models: Models, tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=message):
        instruments.leakage(path, models, Settings())


def test_spearman_against_a_worked_example() -> None:
    # Ranks 1 2.5 2.5 4 against 1 3 2 4: 1 - 6 * 0.5 / 60 without ties; with mean ranks 0.9487 (scipy 1.16 gives the
    # same).
    assert instruments.spearman([1, 2, 2, 3], [10, 30, 20, 40]) == pytest.approx(0.9486832980505138)
    assert instruments.spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert np.isnan(instruments.spearman([1, 1], [1, 2]))
