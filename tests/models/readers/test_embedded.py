"""Embedded readers over the real MiniLM: what they must do on any data, and how good they are on real questions."""

import random
from itertools import permutations

import pytest

from quit.errors import SettingsError
from quit.models.protocols import NO_ANSWER, Prompt
from quit.models.readers import EMBEDDED_READERS, AnswerPool, embedded_reader

NAMES = tuple(EMBEDDED_READERS)
QUESTIONS = {
    "Which country has Lima as its capital?": ("It borders Brazil, Chile and Ecuador.",
        "The ruins of Machu Picchu are found there.", "Its people once were ruled by the Incas."),
    "Who developed the theory of relativity?": ("He was a physicist born in Ulm.",
        "He was given the Nobel Prize for the photoelectric effect.", "His hair was famously untidy."),
    "Which planet is known for its rings?": ("It is a gas giant.", "Its largest moon is Titan.",
        "The Cassini spacecraft studied it."),
}  # fmt: skip
PLACES = "Peru Bolivia Ecuador Chile Brazil Spain Germany France Japan Saturn Jupiter Mars Venus Neptune Uranus Mercury"
PEOPLE = ("Albert Einstein", "Isaac Newton", "Marie Curie", "Niels Bohr", "Galileo Galilei", "Charles Darwin")
ANSWERS = (*PLACES.split(), *PEOPLE)
BOLD = {"no_answer_margin": 0.0, "thin_evidence": 0.0}


@pytest.fixture(scope="module")
def pool():
    return AnswerPool.build([(answer, None, None) for answer in ANSWERS], [h for hs in QUESTIONS.values() for h in hs])


@pytest.fixture(scope="module")
def prompts():
    return [
        Prompt(question, question, tuple(hints))
        for question, all_hints in QUESTIONS.items()
        for size in range(len(all_hints) + 1)
        for hints in permutations(all_hints, size)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_replies_do_not_depend_on_what_else_is_asked(encoder, pool, prompts, name):
    """Neither on its order, nor on that of the pool."""
    first = embedded_reader(name, encoder, pool)
    turned = AnswerPool.build([(answer, None, None) for answer in reversed(ANSWERS)], reversed(pool.background))
    reader = embedded_reader(name, encoder, turned)
    shuffled = random.Random(7).sample(range(len(prompts)), len(prompts))
    alone = {row: reader.answer([prompts[row]])[0] for row in shuffled}
    assert [alone[row] for row in range(len(prompts))] == first.answer(prompts)
    assert reader.identity == first.identity


@pytest.mark.parametrize("name", NAMES)
def test_a_right_answer_is_found_and_never_when_it_is_not_in_the_pool(encoder, pool, name):
    question = "Which country has Lima as its capital?"
    prompt = Prompt("peru", question, QUESTIONS[question])
    assert embedded_reader(name, encoder, pool).answer([prompt])[0].answer == "Peru"
    without = AnswerPool.build([(answer, None, None) for answer in ANSWERS if answer != "Peru"], pool.background)
    assert "Peru" not in embedded_reader(name, encoder, without).answer([prompt])[0].raw


@pytest.mark.parametrize("name", NAMES)
def test_a_small_lead_is_no_answer_and_the_guess_stays_in_raw(encoder, pool, prompts, name):
    shy = embedded_reader(name, encoder, pool, no_answer_margin=1e6).answer(prompts)
    bold = embedded_reader(name, encoder, pool, **BOLD).answer(prompts)
    for timid, sure in zip(shy, bold, strict=True):
        assert timid.answer == NO_ANSWER
        assert timid.raw.startswith(f"{NO_ANSWER} (best guess: {sure.answer}, margin ")


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_the_passage_names_is_set_back(encoder, pool, name):
    question = "Which planet comes to mind?"
    named = Prompt("q", question, ("Saturn is not the answer, whatever Saturn has to do with it.",))
    careless = embedded_reader(name, encoder, pool, named_penalty=0.0, **BOLD)
    careful = embedded_reader(name, encoder, pool, named_penalty=50.0, **BOLD)
    assert careless.answer([named])[0].answer == "Saturn"
    assert careful.answer([named])[0].answer != "Saturn"


def test_identity_follows_method_settings_encoder_and_pool(encoder, pool):
    readers = [embedded_reader(name, encoder, pool) for name in NAMES]
    assert len({reader.identity for reader in readers}) == len(NAMES)
    first = readers[0]
    assert encoder.identity in first.identity and pool.identity in first.identity
    assert embedded_reader(NAMES[0], encoder, pool, no_answer_margin=0.5).identity != first.identity
    assert embedded_reader(NAMES[0], encoder, pool).identity == first.identity
    with pytest.raises(SettingsError, match="minilm-vector"):
        embedded_reader("minilm-vectr", encoder, pool)
