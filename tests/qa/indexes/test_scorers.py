"""Scorers: late interaction by hand, a cross-encoder against transformers on a tiny checkpoint."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from quit.errors import InputError
from quit.qa.indexes.scorers import CrossEncoderScorer, LateScorer
from tests.qa.benchmark import tiny

AXES = SimpleNamespace(  # tokens are letters: one dimension per letter
    identity="axes",
    dimension=26,
    encode_tokens=lambda texts: [np.eye(26)[[ord(c) - 97 for c in text]] for text in texts],
)
TEXTS = ["Paris is the capital of France.", "The cat sat.", "Lyon lies in France."]


def test_late_interaction_by_hand() -> None:
    scorer = LateScorer(AXES)
    # "ab": both letters in "ba", one in "bcd", none in "xyz"; a text without tokens has none.
    expected = [24.27 * (share - 0.63) for share in (1.0, 0.5, 0.0, 0.0)]
    assert scorer.score("ab", ["ba", "bcd", "xyz", ""]) == pytest.approx(expected)
    assert scorer.score("", ["ba"]) == pytest.approx(expected[-1:])
    assert scorer.score("ab", []).shape == (0,)


def test_a_cross_encoder_gives_its_raw_logits(tmp_path: Path) -> None:
    folder = tiny.classifier(tmp_path / "ce", {0: "LABEL_0"})
    scorer = CrossEncoderScorer(str(folder), batch=2)
    expected = tiny.logits(folder, [("capital?", text) for text in TEXTS])[:, 0]
    assert (expected < 0).any() or (expected > 1).any(), "logits, which a sigmoid would hide"
    assert scorer.score("capital?", TEXTS) == pytest.approx(expected, abs=1e-5)
    assert scorer.score("capital?", []).shape == (0,)
    scorer._model.model.classifier.bias.data[:] = np.nan
    with pytest.raises(InputError, match=f"NaN or infinity for {TEXTS[0]!r}"):
        scorer.score("capital?", TEXTS)
    assert scorer.identity.startswith("cross-encoder/ce#") and str(tmp_path) not in scorer.identity


def test_a_classifier_is_no_scorer_and_a_missing_folder_is_said(tmp_path: Path) -> None:
    three = str(tiny.classifier(tmp_path / "three", {0: "a", 1: "b", 2: "c"}))
    for name, fault in ((three, "3 values per pair"), ("nowhere/nothing", "cannot be loaded")):
        with pytest.raises(InputError, match=fault):
            CrossEncoderScorer(name).score("q", ["t"])
