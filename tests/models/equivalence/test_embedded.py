"""The embedded equivalence against what a person would say of short pairs, and against its own promises."""

import hashlib
import json

import numpy as np
import pytest

from quit.models.equivalence.embedded import WEIGHTS, EmbeddedEquivalence
from quit.models.protocols import Pair
from tests.rows import cases

CASES = cases(__file__, "pairs.tsv")
"""Whether they are the same, question, reference, candidate: said by hand before the model was tried."""
PAIRS = [Pair(*case[1:]) for case in CASES]


@pytest.fixture(scope="module")
def model() -> EmbeddedEquivalence:
    return EmbeddedEquivalence()


@pytest.mark.parametrize("case", CASES, ids=" | ".join)
def test_short_answers_that_mean_the_same_and_that_do_not(model, case):
    same, *pair = case
    assert (model.probability([Pair(*pair)])[0] >= 0.5) == (same == "yes")


def test_broken_encodings_are_repaired(model):
    broken, whole = (Pair("Who became king?", name, "Dáin Ironfoot") for name in ("DÃ¡in", "Dáin"))
    assert model.probability([broken])[0] == model.probability([whole])[0] >= 0.5


def test_equal_after_normalisation_is_nearly_certain_and_a_word_of_a_hint_no_answer(model):
    equal = [("Paris", "PARIS"), ("The Beatles", "the beatles"), ("seven", "Seven.")]
    assert model.probability([Pair("Which is it?", *pair) for pair in equal]).min() > 0.95
    hint = "port Seine named Celtic tribe famous iron tower museums"
    words = [Pair("Which city is the capital of France?", "Paris", word) for word in hint.split()]
    assert model.probability(words).max() < 0.5


def test_company_and_order_do_not_change_a_bit(model):
    together = EmbeddedEquivalence().probability(PAIRS)
    fresh = EmbeddedEquivalence()
    alone = np.array([fresh.probability([pair])[0] for pair in PAIRS[:6]])
    backwards = fresh.probability(PAIRS[::-1] + PAIRS)[: len(PAIRS)][::-1]
    assert together[:6].tobytes() == alone.tobytes()
    assert together.tobytes() == np.ascontiguousarray(backwards).tobytes()
    assert model.probability(PAIRS).tobytes() == together.tobytes()


def test_strange_texts_are_answered_not_refused(model):
    texts = ["", " ", "?", "العربية", "東京", "x" * 5000, "word " * 3000, "\u0000", "1e999", "٣", "½", "9" * 400]
    p = model.probability([Pair("", a, b) for a in texts for b in texts])
    assert np.isfinite(p).all() and p.min() >= 0 and p.max() <= 1
    assert model.probability([Pair("Where?", "東京", "東京")])[0] > 0.9 and model.probability([]).shape == (0,)


def test_identity_is_that_of_the_weights(tmp_path):
    copy = tmp_path / "other.npz"
    copy.write_bytes(WEIGHTS.read_bytes())
    assert EmbeddedEquivalence(weights=copy).identity == EmbeddedEquivalence().identity
    copy.write_bytes(WEIGHTS.read_bytes() + b"\0")
    assert EmbeddedEquivalence(weights=copy).identity != EmbeddedEquivalence().identity


@pytest.mark.slow
def test_agrees_with_people_on_questions_it_was_not_trained_on(model, data):
    """The figure of the model card, on the part of EVOUNA (Apache-2.0) that training leaves out."""
    verdicts, pairs = [], []
    for record in json.loads((data / "evouna" / "NQ.json").read_text(encoding="utf-8")):
        flat = " ".join(record["question"].lower().split())
        if record["improper"] or int.from_bytes(hashlib.blake2b(flat.encode(), digest_size=8).digest(), "big") % 10:
            continue
        golds = [gold.strip() for gold in record["golden_answer"].split("/") if gold.strip()]
        for system in ("fid", "gpt35"):
            verdict, answer = record[f"judge_{system}"], record[f"answer_{system}"]
            if isinstance(verdict, bool) and isinstance(answer, str):
                verdicts.append((verdict, len(golds)))
                pairs += [Pair(record["question"], gold, answer) for gold in golds]
    chances = iter(model.probability(pairs).tolist())  # all at once: many times faster
    right = sum((max(next(chances) for _ in range(golds)) >= 0.5) == verdict for verdict, golds in verdicts)
    assert len(verdicts) > 500
    assert right / len(verdicts) > 0.92
