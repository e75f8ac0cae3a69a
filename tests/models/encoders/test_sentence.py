"""How checkpoints become encoders of one vector a text: against transformers itself."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertModel

from quit.errors import InputError
from quit.models.encoders.sentence import load_encoder
from tests.qa.benchmark import tiny

WORDS = "red blue green sky grass"
TEXTS = ["red sky", "blue", "green grass red blue"]


def _tokens(folder: Path, text: str) -> Any:
    return AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")


@pytest.mark.parametrize("architecture", ["DPRQuestionEncoder", "DPRContextEncoder"])
def test_both_checkpoints_of_dpr_take_the_first_token_and_inner_products(architecture: str, tmp_path: Path) -> None:
    folder = tmp_path / "dpr"
    theirs, _ = tiny.model(folder, architecture, WORDS)
    encoder = load_encoder(str(folder), device="cpu")
    with torch.inference_mode():
        expected = [theirs(_tokens(folder, text)["input_ids"]).pooler_output[0].numpy() for text in TEXTS]
    assert encoder.encode(TEXTS) == pytest.approx(np.stack(expected), abs=1e-5)
    assert encoder.similarity_fn_name == "dot"


@pytest.mark.parametrize(
    ("architecture", "pooling", "similarity", "pooled", "compared"),
    [
        ("BertModel", "auto", "cosine", "mean", "cosine"),
        ("BertModel", "cls", "dot", "cls", "dot"),
        ("BertModel", "last", "cosine", "last", "cosine"),
        ("Contriever", "cls", "cosine", "mean", "dot"),  # its own way, whatever the setting
    ],
)
def test_a_plain_checkpoint_is_pooled_as_set(architecture, pooling, similarity, pooled, compared, tmp_path) -> None:
    folder = tiny.encoder(tmp_path, WORDS, "cosine").parent / "bert"
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": [architecture]}))
    encoder = load_encoder(str(folder), device="cpu", pooling=pooling, similarity=similarity)
    bert = BertModel.from_pretrained(folder).eval()
    for text in TEXTS:
        with torch.inference_mode():
            states = bert(_tokens(folder, text)["input_ids"]).last_hidden_state[0].numpy()
        vector = {"cls": states[0], "mean": states.mean(axis=0), "last": states[-1]}[pooled]
        assert encoder.encode(text) == pytest.approx(vector, abs=1e-5)
    assert encoder.similarity_fn_name == compared


@pytest.mark.parametrize("architecture", ["LlamaForCausalLM", "GPT2LMHeadModel"])
def test_auto_takes_the_last_token_of_a_class_for_causal_lm_alone(architecture: str, tmp_path: Path) -> None:
    theirs, _ = tiny.model(tmp_path / "lm", architecture, WORDS)
    encoder = load_encoder(str(tmp_path / "lm"), device="cpu")
    for text in TEXTS:
        with torch.inference_mode():
            states = theirs.base_model(_tokens(tmp_path / "lm", text)["input_ids"]).last_hidden_state[0].numpy()
        expected = states[-1] if architecture.endswith("ForCausalLM") else states.mean(axis=0)
        assert encoder.encode(text) == pytest.approx(expected, abs=1e-5)


def test_a_model_of_sentence_transformers_says_itself_how(tmp_path: Path) -> None:
    folder = tiny.encoder(tmp_path, WORDS, "dot")
    encoder = load_encoder(str(folder), device="cpu", pooling="cls", similarity="cosine")
    assert encoder.similarity_fn_name == "dot" and encoder[1].pooling_mode == "mean"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: tiny.model(folder, "DPRReader", WORDS), "it is a DPRReader"),
        (lambda folder: tiny.model(folder, "DPRContextEncoder", WORDS, projection_dim=8), "projected to 8 numbers"),
        (lambda folder: folder.mkdir(), "cannot be loaded"),
    ],
)
def test_what_is_no_encoder_is_refused_in_one_line(make: Any, words: str, tmp_path: Path) -> None:
    make(tmp_path / "model")
    with pytest.raises(InputError, match=words) as refused:
        load_encoder(str(tmp_path / "model"), device="cpu")
    assert "\n" not in str(refused.value)
