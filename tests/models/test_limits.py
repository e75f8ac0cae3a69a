"""Notes on texts that the embedded instruments were not trained to read."""

from pathlib import Path

import pytest

from quit.models import question_type
from quit.models.equivalence import BemEquivalence, EmbeddedEquivalence
from quit.models.equivalence.bem import PAIR
from quit.models.judges import EquivalenceJudge, rule
from quit.models.limits import ENCODER, QUESTION_TYPE, not_english, note
from quit.models.minilm import encoder as minilm
from quit.models.protocols import JudgeItem
from quit.sources import parse_source, read_sources
from tests.paths import STARTER

FOREIGN = Path(__file__).with_name("foreign.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("question", FOREIGN)
def test_questions_in_other_languages_are_seen(question: str) -> None:
    assert not_english(question)


@pytest.mark.parametrize(
    "question", ["Which country is meant?", "Who?", "", "1984", "El Niño", "Who painted La Gioconda?", "What is π?"]
)
def test_english_and_what_is_too_short_to_tell_are_not(question: str) -> None:
    assert not not_english(question)


def _false_alarms(source: str) -> list[str]:
    questions = [record.question for record in read_sources([parse_source(source)]) if record.question]
    texts = [" ".join([question.question, *(hint.text for hint in question.hints)]) for question in questions]
    return [text for text in [*texts, *(question.question for question in questions)] if not_english(text)]


def test_no_question_of_the_starter_is_taken_for_another_language() -> None:
    assert _false_alarms(f"jsonl:{STARTER}") == []


@pytest.mark.parametrize("file", ["Copilot", "GPT_3.5", "LLaMA_7b_Finetuned", "test_first50"])
def test_no_question_of_the_real_files_is(data: Path, file: str) -> None:
    name = "wikihint" if file == "test_first50" else "triviahg"
    assert _false_alarms(f"{name}:{data}/{name}/{file}.json") == []


def test_the_windows_are_those_of_the_models() -> None:
    assert (QUESTION_TYPE, ENCODER) == (question_type.MAX_PIECES - 2, minilm.MAX_PIECES - 2)
    long = "word " * 1000
    assert len(question_type.pieces([long])[0]) - 2 == QUESTION_TYPE
    assert len(minilm.word_pieces(minilm.MAX_PIECES).encode(long).ids) - 2 == ENCODER


def test_a_text_is_cut_from_one_word_piece_more_than_the_window() -> None:
    assert note("", [("hint", "the " * 62, 62)]) is None
    assert note("", [("hint", "the " * 63, 62)]) == "hint cut to 62 word pieces"
    assert note("", [("hint", " ", 62)]) == "hint empty"
    assert note(FOREIGN[0], [("hint", "the " * 63, 62)]) == "not English; hint cut to 62 word pieces"


def test_of_a_pair_each_part_counts_and_of_answers_the_script_alone() -> None:
    question, pair_note = "Which river is the longest?", EmbeddedEquivalence.note
    assert pair_note(question, ["Nile"], "Gabriel García Márquez") is None  # a name is no language
    assert pair_note(question, ["Nile"], "ナイル川") == "not English"
    assert pair_note(question, ["Nile", "the " * 25, "of " * 25], "Nile") == "gold answer cut to 24 word pieces"
    both = "question cut to 32 word pieces; answer cut to 64 word pieces"
    assert pair_note("the " * 33, ["Nile"], "the " * 65) == both
    assert BemEquivalence.note(question, ["Nile"], "the " * 65) is None
    assert BemEquivalence.note(question, ["Nile"], "the " * PAIR) == "pair cut to 507 word pieces"


def test_a_verdict_of_the_equivalence_model_has_the_note() -> None:
    pairs = [("Which river is it?", "Nile", "River Nile"), (FOREIGN[0], "Paris", "Stadt Paris"), (FOREIGN[0], "a", "a")]
    items = [JudgeItem(str(n), question, (gold,), answer) for n, (question, gold, answer) in enumerate(pairs)]
    rulings = rule(items, EquivalenceJudge("equivalence", EmbeddedEquivalence(), 0.5))
    assert [ruling.verdict.note for ruling in rulings] == [None, "not English", None]  # equality takes no model
    assert rulings[1].verdict.raw.startswith(("p=0.", "p=1."))
