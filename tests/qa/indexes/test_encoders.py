"""Encoders by name, over real sentence-transformers models made or found here."""

import sys
from pathlib import Path

import numpy as np
import pytest
import sentence_transformers

from quit.errors import SettingsError
from quit.models.folders import minilm_folder
from quit.qa.indexes import encoders
from quit.qa.settings import FirstStages
from tests.qa.benchmark import tiny
from tests.running import run_process

SETTINGS = FirstStages(batch=4, device="cpu")
TEXTS = ["The Nile flows through Cairo.", "Lima is a capital.", "a", "It lies on the Pacific " * 60]


def test_a_folder_of_sentence_transformers_is_the_model_it_is() -> None:
    """The published MiniLM through sentence-transformers against our own reading of the same weights."""
    ours, theirs = encoders.dense_encoder("minilm", SETTINGS), encoders.dense_encoder(str(minilm_folder()), SETTINGS)
    assert ours.dimension == theirs.dimension == 384
    vectors = theirs.documents(TEXTS)
    assert vectors.dtype == np.float32
    assert ((ours.documents(TEXTS) * vectors).sum(axis=1) > 0.995).all()  # ours are of whole numbers
    assert "#" in theirs.identity and str(minilm_folder()) not in theirs.identity
    assert theirs.documents([]).shape == (0, 384)


def test_bf16_is_near_and_another_identity() -> None:
    bf16 = FirstStages(precision="bf16", device="cpu")
    full, half = (encoders.dense_encoder("minilm", settings) for settings in (SETTINGS, bf16))
    assert full.identity != half.identity
    cosine = (full.documents(TEXTS) * half.documents(TEXTS)).sum(axis=1)
    assert (cosine > 0.995).all()
    assert np.array_equal(half.documents(TEXTS)[:1], half.documents(TEXTS[:1]))  # no text knows its batch


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random masked language model of 2 small layers with MiniLM's vocabulary."""
    folder = tmp_path_factory.mktemp("tiny")
    tiny.model(folder, "BertForMaskedLM", hidden_size=32, num_hidden_layers=2)
    return folder


def test_a_sparse_encoder_gives_the_entries_of_its_dense_rows(masked: Path) -> None:
    encoder = encoders.sparse_encoder(f"sparse:{masked}", SETTINGS)
    documents = encoder.documents(TEXTS)
    whole = sentence_transformers.SparseEncoder(str(masked), device="cpu").encode(TEXTS, convert_to_sparse_tensor=False)
    for (entries, weights), row in zip(documents, whole.numpy(), strict=True):
        vectors = np.zeros(encoder.dimension, dtype=np.float32)
        vectors[entries] = weights
        assert np.allclose(vectors, row, atol=1e-5) and (np.diff(entries) > 0).all() and len(entries)
    unit = encoders.sparse_encoder(f"sparse:{masked}", SETTINGS.model_copy(update={"sparse_similarity": "cosine"}))
    assert unit.identity != encoder.identity
    for (entries, weights), (of_unit, unit_weights) in zip(documents, unit.documents(TEXTS), strict=True):
        assert (entries == of_unit).all()
        assert unit_weights == pytest.approx(weights / np.linalg.norm(weights), abs=1e-5)


def test_late_interaction_models_and_minilms_tokens(masked: Path, tmp_path: Path) -> None:
    tiny.late(tmp_path / "late", masked)
    for name in (f"late:{tmp_path / 'late'}", "late:minilm"):
        encoder = encoders.late_encoder(name, SETTINGS)
        vectors = encoder.documents(TEXTS)
        assert len(vectors) == 4 and {one.shape[1] for one in vectors} == {encoder.dimension}
        assert len(vectors[0]) > len(vectors[2])
        for one in vectors:
            assert np.allclose(np.linalg.norm(one, axis=1), 1.0, atol=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"settings": SETTINGS.model_copy(update={"precision": "bf16"})},
        {"prompt": "query: "},
        {"pooling": "cls"},
        {"similarity": "dot"},
    ],
)
def test_each_option_of_an_encoder_is_in_its_identity(options: dict, masked: Path) -> None:
    """Except the texts per batch, with which indexes may be built and searched as memory allows."""
    plain = encoders.SentenceEncoder(str(masked), SETTINGS).identity
    assert encoders.SentenceEncoder(str(masked), **{"settings": SETTINGS, **options}).identity != plain
    more = SETTINGS.model_copy(update={"batch": 9})
    assert encoders.SentenceEncoder(str(masked), more).identity == plain


def test_a_hubs_model_is_known_by_its_commit(tmp_path: Path) -> None:
    """Run in a child process, because ``huggingface_hub`` reads the path of its cache on import."""
    commit = "0123456789abcdef" * 2 + "01234567"
    folder = tmp_path / "models--a--b"
    (folder / "snapshots" / commit).mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    (folder / "snapshots" / commit / "config.json").write_text('{"model_type": "bert"}')
    code = """
from quit.models.loading import model_identity
from quit.qa.indexes.scorers import CrossEncoderScorer
from quit.qa.sunar.entailment import NaturalLanguageInference
print(model_identity("a/b", ""), model_identity("a/c"))
print(model_identity("a/b"), CrossEncoderScorer("a/b").identity, NaturalLanguageInference("a/b").identity)
"""
    known = f"a/b@{commit[:12]}"
    environment = {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    names = f"a/b a/c\n{known} cross-encoder/{known} nli/{known}\n"
    assert run_process(sys.executable, "-c", code, **environment).out == names


def test_a_name_asks_for_one_kind_of_encoder() -> None:
    kinds = {"bm25": "bm25", "minilm": "dense", "org/late": "dense", "sparse:a/b": "sparse", "late:minilm": "late"}
    for name, kind in kinds.items():
        assert encoders.encoder_kind(name) == kind
        if kind != "dense":
            with pytest.raises(SettingsError, match="is not a dense encoder"):
                encoders.dense_encoder(name, SETTINGS)
