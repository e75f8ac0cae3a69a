"""BEM reads ``[CLS] candidate [SEP] reference [SEP] question [SEP]`` and gives the probability of class 1."""

import shutil

import numpy as np
import pytest
import torch
from transformers import BertForSequenceClassification, BertTokenizerFast

from quit.common.cache import ContentStore
from quit.errors import InputError, MissingDependency
from quit.models.equivalence import CachedEquivalence, bem
from quit.models.equivalence.bem import BemEquivalence, checkpoint_identity
from quit.models.factory import Models
from quit.models.protocols import JudgeItem, Pair
from quit.settings import Settings, parse
from quit.stages.identities import equivalence_identity, judge_identity
from tests.qa.benchmark import tiny

PAIRS = [
    Pair("who wrote it ?", "paul simon", "paul"),
    Pair("who wrote it ?", "paul simon", "the man of the band john lennon"),
    Pair("who wrote it ?", "pauline", "paul"),
    Pair("who ?", "paris", "a"),
    Pair("who wrote it ?", "john lennon", "john lennon"),
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Weights are large, so that another order of the input gives quite another probability."""
    folder = tmp_path_factory.mktemp("bem")
    tiny.model(folder, "BertForSequenceClassification", max_position_embeddings=40, initializer_range=0.6)
    return folder


def _by_hand(folder, pair: Pair) -> float:
    """The probability as the published usage has it, from ids put together here, one pair at a time."""
    model = BertForSequenceClassification.from_pretrained(folder).eval()
    first = ["[CLS]", *pair.candidate.split(), "[SEP]"]
    second = [*pair.reference.split(), "[SEP]", *pair.question.split(), "[SEP]"]
    vocabulary = BertTokenizerFast.from_pretrained(folder).get_vocab()
    ids = torch.tensor([[vocabulary[word] for word in first + second]])
    types = torch.tensor([[0] * len(first) + [1] * len(second)])
    with torch.inference_mode():
        return float(model(input_ids=ids, token_type_ids=types).logits.softmax(-1)[0, 1])


@pytest.mark.parametrize("batch", [1, 2, 64])
def test_candidate_reference_and_question_are_read_in_this_order_whatever_the_batch(checkpoint, batch):
    bem = BemEquivalence(str(checkpoint), device="cpu", batch=batch)
    forwards = bem.probability(PAIRS + PAIRS[:2])
    backwards = bem.probability((PAIRS + PAIRS[:2])[::-1])[::-1]
    np.testing.assert_allclose(forwards, backwards, atol=1e-5)
    expected = [_by_hand(checkpoint, pair) for pair in PAIRS + PAIRS[:2]]
    np.testing.assert_allclose(forwards, expected, atol=1e-5)
    assert np.ptp(expected) > 0.05, "the toy checkpoint must tell the pairs apart, or the order is not tested"


def test_a_probability_is_the_same_to_the_bit_whatever_is_asked_beside(checkpoint):
    """So that shards and what is kept already change no byte."""
    bem = BemEquivalence(str(checkpoint), device="cpu")
    words = "paul simon the man of band john lennon who wrote it a paris".split()
    pairs = [
        Pair("who wrote it ?", " ".join(words[at % 5 : at % 5 + 1 + at % 7]), " ".join(words[: 1 + at % 11]))
        for at in range(90)
    ]
    alone = [bem.probability([pair])[0] for pair in pairs]
    assert bem.probability(pairs).tolist() == alone == [*bem.probability(pairs[:40]), *bem.probability(pairs[40:])]


def test_a_text_longer_than_the_model_is_cut_and_a_missing_checkpoint_says_what_to_do(checkpoint, tmp_path):
    long = Pair("who wrote it ?", "paul simon", " ".join(["paul"] * 300))
    assert 0.0 <= BemEquivalence(str(checkpoint), device="cpu").probability([long])[0] <= 1.0
    with pytest.raises(MissingDependency, match="hf download"):
        BemEquivalence(str(tmp_path / "nowhere"))


def _settings(checkpoint, **more) -> Settings:
    return parse({"models": {"equivalence": "bem", "bem_checkpoint": str(checkpoint), **more}})


def test_the_settings_choose_it_for_leakage_judge_and_probe(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path))
    models = Models(_settings(checkpoint))
    np.testing.assert_allclose(
        models.equivalence.probability(PAIRS), [_by_hand(checkpoint, pair) for pair in PAIRS], atol=1e-5
    )
    item = JudgeItem("q", "who wrote it ?", ("paul simon", "pauline"), "paul")
    best = max(_by_hand(checkpoint, Pair(item.question, gold, item.candidate)) for gold in item.gold_answers)
    [verdict] = models.judge.verdicts([item])
    assert verdict.probability == pytest.approx(best, abs=1e-5) and verdict.correct == (best >= 0.5)
    assert "bem" in models.judge.identity and (tmp_path / "equivalence.sqlite").is_file()


def test_the_identity_of_a_folder_is_its_content(checkpoint, tmp_path):
    copy = tmp_path / "elsewhere"
    shutil.copytree(checkpoint, copy)
    first = equivalence_identity(_settings(checkpoint))
    assert equivalence_identity(_settings(copy)) == first
    assert first != equivalence_identity(Settings()) and first in judge_identity(_settings(checkpoint))
    (copy / "tokenizer.json").write_text("{}")
    assert equivalence_identity(_settings(copy)) != first
    assert "kortukov/answer-equivalence-bem@0123abc" in checkpoint_identity(Settings().models.bem_checkpoint, "0123abc")


def test_kept_probabilities_do_not_outlive_a_change_of_the_computation(checkpoint, tmp_path, monkeypatch):
    folder, store = str(checkpoint), ContentStore(tmp_path / "kept.sqlite", "probabilities", "Probabilities")
    CachedEquivalence(BemEquivalence(folder, device="cpu"), store).probability(PAIRS[:1])
    same = BemEquivalence(folder, device="cpu")
    monkeypatch.setattr(bem, "VERSION", bem.VERSION + 1)
    newer = BemEquivalence(folder, device="cpu")
    for model, value in ((same, _by_hand(checkpoint, PAIRS[0])), (newer, 0.125)):
        model.probability = lambda pairs: np.full(len(pairs), 0.125)
        [kept] = CachedEquivalence(model, store).probability(PAIRS[:1])
        assert kept == pytest.approx(value, abs=1e-5)


def test_without_a_hub_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    models = Models(parse({"models": {"equivalence": "bem", "bem_checkpoint": "nobody/no-such-checkpoint"}}))
    with pytest.raises(MissingDependency, match="models.bem_checkpoint=FOLDER, or set models.equivalence=embedded"):
        models.equivalence  # noqa: B018


@pytest.mark.parametrize(
    ("wrong", "said"), [("no/such/folder", "no folder"), ("a b", "no folder"), (".", r"config\.json is missing")]
)
def test_what_is_neither_a_folder_of_a_checkpoint_nor_a_hub_name_is_refused(wrong, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        equivalence_identity(_settings(wrong))


def test_a_classifier_of_three_classes_is_no_bem(tmp_path):
    tiny.model(tmp_path, "BertForSequenceClassification", num_labels=3)
    with pytest.raises(InputError, match="3 classes"):
        BemEquivalence(str(tmp_path), device="cpu")
