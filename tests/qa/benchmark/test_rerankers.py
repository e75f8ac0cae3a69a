"""Rerankers: tiny random checkpoints against transformers itself."""

from pathlib import Path

import numpy as np
import pytest
import torch

from quit.errors import InputError, QuitError, SettingsError
from quit.models.folders import minilm_folder
from quit.qa.benchmark.plugins import make_reranker
from quit.retrieval.protocols import Scorer
from tests.qa.benchmark import tiny

TEXTS = ["it flows north", "he came from malaga", "it is very long"]


WORDS = "who flows it north is long he malaga"
QUESTION = "who flows north"


@pytest.fixture
def t5(tmp_path: Path):
    return tiny.t5(tmp_path / "t5", f"<extra_id_10> {WORDS}")


def _monot5(model, tokenizer, text: str) -> float:
    """The first token's probability of true against false."""
    inputs = tokenizer(f"Query: {QUESTION} Document: {text} Relevant:", return_tensors="pt")["input_ids"]
    logits = model(input_ids=inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
    true, false = (float(logits[tokenizer.convert_tokens_to_ids(word)]) for word in ("true", "false"))
    return true - np.logaddexp(true, false)


def _rankt5(model, tokenizer, text: str) -> float:
    """The first token's logit of the sentinel."""
    inputs = tokenizer(f"Query: {QUESTION} Document: {text}", return_tensors="pt")["input_ids"]
    logits = model(input_ids=inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
    return float(logits[tokenizer.convert_tokens_to_ids("<extra_id_10>")])


def _upr(model, tokenizer, text: str) -> float:
    """The loss of transformers itself: T5's mean cross-entropy over question and end."""
    labels = torch.tensor([[*tokenizer(QUESTION)["input_ids"], tokenizer.eos_token_id]])
    inputs = tokenizer(f"{text} is", return_tensors="pt", return_token_type_ids=False)
    return -float(model(**inputs, labels=labels).loss)


@pytest.mark.parametrize(("kind", "expected"), [("monot5", _monot5), ("rankt5", _rankt5), ("upr", _upr)])
def test_scores_are_those_of_transformers_one_text_at_a_time(world, t5, kind: str, expected) -> None:
    folder, model, tokenizer = t5
    context = world.context("benchmark.batch=2", "benchmark.upr_prompt={passage} is")
    reranker = make_reranker(f"{kind}:{folder}", context)
    assert isinstance(reranker, Scorer)
    with torch.inference_mode():
        scores = [expected(model, tokenizer, text) for text in TEXTS]
    assert reranker.score(QUESTION, TEXTS) == pytest.approx(scores, abs=1e-5)
    assert len(reranker.score(QUESTION, [])) == 0


def test_upr_ranks_by_another_prompt_under_another_identity(world, t5) -> None:
    inputs = ([], ["benchmark.upr_prompt={passage}"])
    ours, other = (make_reranker(f"upr:{t5[0]}", world.context(*overrides)) for overrides in inputs)
    assert ours.identity != other.identity
    with pytest.raises(SettingsError, match="upr_prompt"):
        world.context("benchmark.upr_prompt=no passage in it")


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("monot5", "Query: Document: Relevant: true", "no single pieces for 'true' and 'false'"),
        ("rankt5", "Query: Document: true false", "no single pieces for '<extra_id_10>': it is no model for rankt5"),
    ],
)
def test_a_model_without_the_words_of_its_kind_is_refused(world, t5, name: str, words: str, message: str) -> None:
    folder = t5[0]
    tiny.tokenizer(folder, words)
    with pytest.raises(InputError, match=message):
        make_reranker(f"{name}:{folder}", world.context()).score("who", TEXTS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cross-encoder:MINILM", "no trained head"),
        *((f"{name}:MINILM", "cannot be loaded") for name in ("monot5", "upr")),
        ("late:MINILM", "not a multi-vector model"),
        ("listwise:minilm-late", "must name a reader or judge"),
        *((name, "Name the model") for name in ("cross-encoder", "monot5", "upr")),
        ("cross-encoder:/absent", "There is no model folder"),
    ],
)
def test_models_that_cannot_rerank_are_refused(world, name: str, message: str) -> None:
    with pytest.raises(QuitError, match=message):
        make_reranker(name.replace("MINILM", str(minilm_folder())), world.context()).score("who", TEXTS)
