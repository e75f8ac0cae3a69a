import numpy as np
import pytest

from quit.errors import MissingDependency
from quit.models import folders
from quit.models.encoders.published import PublishedMiniLM
from quit.models.factory import Models
from quit.models.minilm import encoder as minilm
from quit.qa.indexes.encoders import dense_encoder
from quit.qa.settings import FirstStages
from quit.settings import Settings

TEXTS = ["Paris", "It is the capital of France.", "He was born in 1879 in Ulm.", "", "word " * 400, "Paris"]


@pytest.fixture(scope="module")
def model() -> minilm.MiniLM:
    return minilm.MiniLM()


@pytest.mark.parametrize(("encoder", "cosine"), [(minilm.MiniLM, 0.985), (PublishedMiniLM, 1 - 1e-6)])
def test_vectors_are_near_the_published_models(encoder: type, cosine: float) -> None:
    """The reference: transformers' own forward pass, one text at a time, without padding."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = folders.minilm_folder()
    tokenizer, reference = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    model = encoder()
    for text, vector, tokens in zip(TEXTS, model.encode(TEXTS), model.encode_tokens(TEXTS), strict=True):
        batch = tokenizer(text, return_tensors="pt", truncation=True, max_length=256)
        with torch.inference_mode():
            states = reference(**batch).last_hidden_state[0].numpy()
        mean = states.mean(axis=0)
        assert vector @ mean >= cosine * np.linalg.norm(mean)
        assert len(tokens) == len(states) - 2
        similarities = (tokens * states[1:-1]).sum(axis=1) / np.linalg.norm(states[1:-1], axis=1)
        assert (similarities >= cosine - 0.003).all()


def test_settings_name_the_published_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    expected = PublishedMiniLM().encode(TEXTS)
    assert dense_encoder("all-MiniLM-L6-v2", FirstStages()).documents(TEXTS) == pytest.approx(expected, abs=1e-6)
    models = Models(Settings(difficulty={"encoder": "all-MiniLM-L6-v2"}))
    assert models.difficulty_encoder.identity == PublishedMiniLM.identity != models.encoder.identity
    assert Models(Settings()).difficulty_encoder.identity == models.encoder.identity


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    folders.minilm_folder.cache_clear()
    monkeypatch.setattr(folders, "SHA256", "0" * 64)
    with pytest.raises(MissingDependency, match="force-reinstall"):
        folders.minilm_folder()
    folders.minilm_folder.cache_clear()
