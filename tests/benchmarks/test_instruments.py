"""The instruments as shipped against independent truth."""

from pathlib import Path

import pytest

from benchmarks import instruments
from quit.errors import InputError, SettingsError
from quit.models.factory import Models
from quit.models.readers import EMBEDDED_READERS
from quit.settings import Settings
from quit.sources import SourceRef, parse_source
from tests.report import tiny
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


@pytest.mark.slow
def test_readers_do_better_with_hints(models: Models, data: Path) -> None:
    source = parse_source(f"wikihint:{data / 'wikihint' / 'test_first50.json'}")
    figures = [instruments.reader(source, name, models) for name in EMBEDDED_READERS]
    assert {of_reader["n"] for of_reader in figures} == {50}
    for closed, least, best in (("candidates", 0.5, 0.6), ("pool", 0.3, 0.4)):
        shares = [of_reader[f"{closed}_with_hints"] for of_reader in figures]
        assert min(shares) >= least and max(shares) >= best
        assert all(of_reader[f"{closed}_question_only"] < share for of_reader, share in zip(figures, shares))


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
        ("", "holds nothing"),
    ],
)
def test_bad_cases_are_named_by_line(models: Models, tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=message):
        instruments.leakage(path, models, Settings())


def _paris(path: Path, **fields: object) -> SourceRef:
    row = {"id": "1", "question": "Which city is the capital of France?", "answers": ["Paris"], **fields}
    return parse_source(f"jsonl:{write_lines(path, [row])}")


def test_leakage_counts_by_hand_and_names_what_is_wrong(models: Models, tmp_path: Path) -> None:
    leak = {"hint": "Paris lies on the Seine.", "answer": "Paris", "leaks": True}
    cases = [leak, {**leak, "hint": "It was besieged.", "leaks": False}, {**leak, "leaks": False}]
    figures = instruments.leakage(write_lines(tmp_path / "cases", cases), models, Settings())
    assert (figures["n"], figures["precision"], figures["recall"]) == (3, 0.5, 1.0)
    assert [(row["line"], row["answers"]) for row in figures["wrong"]] == [(3, ["Paris"])]


def test_question_types_of_a_file_in_latin_1(models: Models, tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.write_bytes(b"LOC:city What city hosts the Caf\xe9 Central ?\nNUM:date Where is Rome ?\n")
    figures = instruments.question_type(labels, models)
    assert figures == {"n": 2, "coarse_accuracy": 0.5, "fine_accuracy": 0.5}


def test_a_reader_picks_the_candidate_that_every_hint_names(models: Models, tmp_path: Path) -> None:
    hints = ["Paris it is, surely Paris."] * 5
    source = _paris(tmp_path / "s.jsonl", hints=hints, candidates=["Paris", "Mount Everest"])
    figures = instruments.reader(source, "minilm-vector", models)
    assert (figures["reader"], figures["n"], figures["candidates_with_hints"]) == ("minilm-vector", 1, 1.0)
    with pytest.raises(SettingsError, match="Did you mean 'minilm-vector'"):
        instruments.reader(source, "minilm-vectors", models)


def test_convergence_against_published_values(models, tmp_path: Path) -> None:
    """A hint that fits the gold answer alone has 1.0, one that fits both candidates 1 - 1/2; the third is published
    wrongly."""
    alone, shared = {"Rome": 0, "Paris": 1}, {"Rome": 1, "Paris": 1}
    hints = [
        {"hint": "It lies on the Seine.", "scores": alone, "convergence": 1.0},
        {"hint": "It is a capital.", "scores": shared, "convergence": 0.5},
        {"hint": "It is a city.", "scores": shared, "convergence": 0.4},
    ]
    record = {"id": "1", "question": "Which city?", "answers": ["Paris"], "hints": hints, "candidates": [*alone]}
    source = write_lines(tmp_path / "s.jsonl", [record])
    figures = instruments.convergence_agreement(parse_source(f"jsonl:{source}"), models, Settings())
    assert (figures["n"], figures["scored"], figures["exact_match"]) == (3, 3, pytest.approx(2 / 3))


def test_convergence_of_a_source_without_candidates_is_measured_with_drawn_ones(models, tmp_path: Path) -> None:
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


def test_difficulty_beside_labels(tmp_path) -> None:
    """Label 2 by hand: three of four passages of q1 (0.1, easy), two of q2 (0.2, easy) and two of q3 (0.9, hard)."""
    tiny.workspace(tmp_path)
    figures = instruments.difficulty(tmp_path)
    assert (figures["questions"], figures["fully_relevant"]) == (3, {"easy": 0.625, "hard": 0.5})
    assert figures["spearman"] == pytest.approx(0.75**0.5)  # of 1, 2, 3 and 1, 2.5, 2.5
