"""Encoders by name, over real sentence-transformers models made or found here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from quit.models.minilm_weights import model_folder
from quit.retrieval.encoders import (
    DenseEncoder,
    LateEncoder,
    SparseEncoder,
    dense_encoder,
    late_encoder,
    sparse_encoder,
)
from quit.settings import FirstStages

SETTINGS = FirstStages(batch=4, device="cpu")
TEXTS = ["The Nile flows through Cairo.", "Lima is a capital.", "a", "It lies on the Pacific " * 60]


def test_a_folder_of_sentence_transformers_is_the_model_it_is() -> None:
    """The published MiniLM through sentence-transformers against our own reading of the same weights."""
    pytest.importorskip("sentence_transformers")
    ours, theirs = dense_encoder("minilm", SETTINGS), dense_encoder(str(model_folder()), SETTINGS)
    assert isinstance(ours, DenseEncoder) and isinstance(theirs, DenseEncoder)
    assert ours.dimension == theirs.dimension == 384
    made = theirs.documents(TEXTS)
    assert made.dtype == np.float32
    assert np.allclose((ours.documents(TEXTS) * made).sum(axis=1), 1.0, atol=1e-4)
    assert "@" in theirs.identity and str(model_folder()) not in theirs.identity
    assert theirs.documents([]).shape == (0, 384)


def test_bf16_is_near_and_another_identity() -> None:
    full, half = dense_encoder("minilm", SETTINGS), dense_encoder("minilm", FirstStages(precision="bf16", device="cpu"))
    assert full.identity != half.identity
    cosine = (full.documents(TEXTS) * half.documents(TEXTS)).sum(axis=1)
    assert (cosine > 0.999).all()
    assert np.array_equal(half.documents(TEXTS)[:1], half.documents(TEXTS[:1]))  # no text knows its batch


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random masked language model of 2 small layers with MiniLM's vocabulary."""
    torch = pytest.importorskip("torch")
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = AutoTokenizer.from_pretrained(model_folder())
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_sparse_encoder_gives_the_entries_of_its_dense_rows(tiny: Path) -> None:
    models = pytest.importorskip("sentence_transformers")
    encoder = sparse_encoder(f"sparse:{tiny}", SETTINGS)
    assert isinstance(encoder, SparseEncoder)
    found = encoder.documents(TEXTS)
    whole = models.SparseEncoder(str(tiny), device="cpu").encode(TEXTS, convert_to_sparse_tensor=False)
    for (entries, weights), row in zip(found, whole.numpy(), strict=True):
        made = np.zeros(encoder.dimension, dtype=np.float32)
        made[entries] = weights
        assert np.allclose(made, row, atol=1e-5) and (np.diff(entries) > 0).all() and len(entries)


def test_late_interaction_models_and_minilms_tokens(tiny: Path, tmp_path: Path) -> None:
    models = pytest.importorskip("sentence_transformers")
    if not hasattr(models, "MultiVectorEncoder"):
        pytest.skip("this sentence-transformers has no multi-vector models")
    models.MultiVectorEncoder(str(tiny), device="cpu").save_pretrained(str(tmp_path / "late"))
    for name in (f"late:{tmp_path / 'late'}", "late:minilm"):
        encoder = late_encoder(name, SETTINGS)
        assert isinstance(encoder, LateEncoder)
        made = encoder.documents(TEXTS)
        assert len(made) == 4 and {one.shape[1] for one in made} == {encoder.dimension}
        assert len(made[0]) > len(made[2])
        for one in made:
            assert np.allclose(np.linalg.norm(one, axis=1), 1.0, atol=1e-3)
