"""Retrieval complexity: the numbers against the formulas, and what a corpus does to them."""

from pathlib import Path

import numpy as np
import pytest

from quit.errors import InputError
from quit.models.question_type import QuestionTypeClassifier
from quit.settings import Difficulty, QuestionTypeSettings, Settings
from quit.stages.describe import describe
from quit.stages.identities import difficulty_identity
from quit.stages.questions.difficulty import RetrievalComplexity
from quit.text.answers import answer_key
from tests.rows import table_of, tuples, write_lines

PASSAGES = [
    "Lesotho lies inside South Africa.",
    "Its people wear blankets and a hat with a knot.",
    "A bicycle has two wheels.",
    "Bread is made of flour and water.",
]
QUESTION, ANSWERS = "Which country lies inside South Africa?", ["Lesotho"]


def test_an_answer_that_stands_there_is_easier_than_one_that_does_not(encoder) -> None:
    complexity = RetrievalComplexity.over_hints(PASSAGES, encoder, Difficulty(top_k=2))
    there, absent = complexity.of([QUESTION, "How many strings has a violin?"], [ANSWERS, ["four"]])
    assert there.answerability == 1.0 and there.answer_share >= 0.5
    assert absent.answerability < 0.5 and absent.answer_share == 0.0
    assert there.difficulty < absent.difficulty and (there.difficulty_bin, absent.difficulty_bin) == ("easy", "hard")
    [none] = RetrievalComplexity.over_hints([], encoder, Difficulty()).of([QUESTION], [ANSWERS])
    assert (none.difficulty, none.answerability, none.completeness, none.difficulty_bin) == (1.0, 0.0, 0.0, "hard")


def test_values_follow_from_their_formulas(encoder) -> None:
    """Completeness is tested in tests/retrieval/test_complexity.py."""
    settings = Difficulty(top_k=4)
    [values] = RetrievalComplexity.over_hints(PASSAGES, encoder, settings).of([QUESTION], [ANSWERS])
    vectors, question, answer = encoder.encode(PASSAGES), encoder.encode([QUESTION])[0], encoder.encode(ANSWERS)[0]
    near = np.clip((vectors @ answer - 0.1) / (0.6 - 0.1), 0, 1)
    holds = [1.0 if "lesotho" in answer_key(text) else score for text, score in zip(PASSAGES, near, strict=True)]
    assert values.answerability == pytest.approx(max(holds))
    assert values.answer_share == 0.25  # one of four contains it
    assert values.near_share == pytest.approx(np.mean([score >= settings.answer_threshold for score in holds]))
    assert values.similarity == pytest.approx(float((vectors @ question).mean()), abs=1e-6)
    expected = 1 - (values.answerability + values.near_share + values.similarity) / 3
    assert values.difficulty == pytest.approx(expected)


def test_by_containment_a_passage_near_the_answer_does_not_hold_it(encoder) -> None:
    """By hand: two of four passages contain it as a word, one within another word, one is about nothing else."""
    passages = ["Lesotho is high.", "Maseru is in Lesotho.", "Lesothosaurus was small.", "Its people are the Basotho."]
    settings = Difficulty(top_k=4, counts="containment", answer_threshold=0.2)
    for texts, (answerability, share) in ((passages, (1.0, 0.5)), (passages[2:], (0.0, 0.0))):
        [values] = RetrievalComplexity.over_hints(texts, encoder, settings).of([QUESTION], [["lesotho"]])
        assert (values.answerability, values.answer_share) == (answerability, share) and values.near_share > share
        assert values.difficulty == pytest.approx(1 - (answerability + share + values.similarity) / 3)


def _describe(encoder, settings: Difficulty, question: str = QUESTION, hints: list[str] = PASSAGES):
    row = {"question_id": "q", "question": question, "answers": ANSWERS, "coarse": "LOC:LOCATION", "fine": "c:C"}
    ranked = [{"question_id": "q", "rank": n, "hint_id": f"q-h{n:02d}", "hint": text} for n, text in enumerate(hints)]
    tables = table_of("questions", [row]), table_of("ranked_hints", ranked)
    return describe(*tables, QuestionTypeClassifier(encoder), encoder, QuestionTypeSettings(), settings)


def test_a_question_that_the_classifier_cannot_read_has_a_note(encoder) -> None:
    """The language is that of question and hints together: an English one may be short."""
    [plain] = _describe(encoder, Difficulty())["descriptions"].to_pylist()
    assert plain["note"] is None
    german = ["Sein tiefster Punkt liegt hoch.", "Es hat einen König.", "Dort wohnen Basotho.", "Es ist bergig."]
    tables = _describe(encoder, Difficulty(), "Welches Land " * 40, german)
    assert tables["descriptions"]["note"].to_pylist() == ["not English; question cut to 62 word pieces"]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "corpus.jsonl"
    rows = [{"id": str(number), "text": text} for number, text in enumerate(PASSAGES)] + [{"id": "0", "text": "else"}]
    write_lines(path, rows)
    return path


def test_the_same_passages_as_a_corpus_give_the_same_values(encoder, corpus: Path) -> None:
    own, named = _describe(encoder, Difficulty()), _describe(encoder, Difficulty(corpus=str(corpus)))
    [one], [other] = own["descriptions"].to_pylist(), named["descriptions"].to_pylist()
    assert "hints" in one.pop("difficulty_producer") and "corpus@" in other.pop("difficulty_producer")
    assert {key: pytest.approx(value) for key, value in one.items()} == other
    assert len(own["rejects"]) == 0
    place = ("document", "duplicate_id", "corpus.jsonl", 4)
    assert tuples(named["rejects"], "kind", "reason", "file", "position") == [place]
    assert len(list((corpus.parent / "cache" / "encodings").glob("*.npy"))) == 1


def test_the_fingerprint_knows_the_corpus_by_its_content(corpus: Path) -> None:
    def identity(path: Path) -> str:
        return difficulty_identity(Settings(difficulty=Difficulty(corpus=str(path))))

    before = identity(corpus)
    moved = corpus.parent / "moved.jsonl"
    moved.write_bytes(corpus.read_bytes())
    assert identity(moved) == before != difficulty_identity(Settings())
    with corpus.open("a") as file:
        file.write('{"id": "9", "text": "One more."}\n')
    assert identity(corpus) != before
    with pytest.raises(InputError, match="no corpus"):
        identity(corpus.parent / "nowhere")
