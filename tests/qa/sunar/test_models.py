"""Scorers and entailment models: late interaction by hand, cross-encoder and NLI model against transformers, on tiny
checkpoints."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from quit.errors import InputError
from quit.qa.indexes.scorers import CrossEncoderScorer, LateScorer
from quit.qa.sunar.entailment import NaturalLanguageInference
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


def _tiny(folder: Path, labels: dict[int, str]) -> Path:
    numbers = {name: number for number, name in labels.items()}
    more = {"hidden_size": 32, "initializer_range": 0.5, "id2label": labels, "label2id": numbers}
    tiny.model(folder, "BertForSequenceClassification", seed=5, **more)
    return folder


def _logits(folder: Path, pairs: list[tuple[str, str]]) -> np.ndarray:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        return np.concatenate([model(**tokenizer(*pair, return_tensors="pt")).logits.numpy() for pair in pairs])


def test_a_cross_encoder_gives_its_raw_logits(tmp_path: Path) -> None:
    folder = _tiny(tmp_path / "ce", {0: "LABEL_0"})
    scorer = CrossEncoderScorer(str(folder), batch=2)
    expected = _logits(folder, [("capital?", text) for text in TEXTS])[:, 0]
    assert (expected < 0).any() or (expected > 1).any(), "logits, which a sigmoid would hide"
    assert scorer.score("capital?", TEXTS) == pytest.approx(expected, abs=1e-5)
    assert scorer.score("capital?", []).shape == (0,)
    scorer._model.model.classifier.bias.data[:] = np.nan
    with pytest.raises(InputError, match=f"NaN or infinity for {TEXTS[0]!r}"):
        scorer.score("capital?", TEXTS)
    assert scorer.identity.startswith("cross-encoder/ce#") and str(tmp_path) not in scorer.identity


def test_a_classifier_is_no_scorer_and_a_missing_folder_is_said(tmp_path: Path) -> None:
    three = str(_tiny(tmp_path / "three", {0: "a", 1: "b", 2: "c"}))
    for name, score, entail in (
        (three, "3 values per pair", "no label 'entailment'"),
        ("nowhere/nothing", "cannot be loaded", "cannot be loaded"),
    ):
        with pytest.raises(InputError, match=score):
            CrossEncoderScorer(name).score("q", ["t"])
        with pytest.raises(InputError, match=entail):
            NaturalLanguageInference(name).mutual("q", "a", "b")


def test_entailment_must_hold_both_ways_contradiction_one_way(tmp_path: Path) -> None:
    folder = _tiny(tmp_path / "nli", {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"})
    model = NaturalLanguageInference(str(folder))
    answers = ["Paris", "Paris, France", "Lyon", "a cat", "1990", "the year 1990", "nobody", "Rome in Italy"]
    pairs = [(f"Where? {one}", f"Where? {other}") for one in answers for other in answers]
    label = _logits(folder, pairs).argmax(axis=1).reshape(len(answers), len(answers))
    says, denies = label == 2, label == 0
    assert [[model.mutual("Where?", one, other) for other in answers] for one in answers] == (says & says.T).tolist()
    assert [[model.contradicts("Where?", one, other) for other in answers] for one in answers] == (
        denies | denies.T
    ).tolist()
    assert 0 < (says & says.T).sum() < (says | says.T).sum(), "some pairs must hold in one direction only"
