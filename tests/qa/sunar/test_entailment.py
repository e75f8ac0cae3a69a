"""The NLI model against transformers, on a tiny checkpoint."""

from pathlib import Path

import pytest

from quit.errors import InputError
from quit.qa.sunar.entailment import NaturalLanguageInference
from tests.qa.benchmark import tiny


def test_entailment_must_hold_both_ways_contradiction_one_way(tmp_path: Path) -> None:
    folder = tiny.classifier(tmp_path / "nli", {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"})
    model = NaturalLanguageInference(str(folder))
    answers = ["Paris", "Paris, France", "Lyon", "a cat", "1990", "the year 1990", "nobody", "Rome in Italy"]
    pairs = [(f"Where? {one}", f"Where? {other}") for one in answers for other in answers]
    label = tiny.logits(folder, pairs).argmax(axis=1).reshape(len(answers), len(answers))
    says, denies = label == 2, label == 0
    assert [[model.mutual("Where?", one, other) for other in answers] for one in answers] == (says & says.T).tolist()
    assert [[model.contradicts("Where?", one, other) for other in answers] for one in answers] == (
        denies | denies.T
    ).tolist()
    assert 0 < (says & says.T).sum() < (says | says.T).sum(), "some pairs must hold in one direction only"


def test_a_classifier_of_something_else_and_a_missing_folder_are_said(tmp_path: Path) -> None:
    three = str(tiny.classifier(tmp_path / "three", {0: "a", 1: "b", 2: "c"}))
    for name, fault in ((three, "no label 'entailment'"), ("nowhere/nothing", "cannot be loaded")):
        with pytest.raises(InputError, match=fault):
            NaturalLanguageInference(name).mutual("q", "a", "b")
