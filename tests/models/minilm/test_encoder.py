import numpy as np
import pytest

from quit.errors import MissingDependency
from quit.models import folders
from quit.models.minilm import encoder as minilm

TEXTS = ["Paris", "It is the capital of France.", "He was born in 1879 in Ulm.", "", "word " * 400, "Paris"]


@pytest.fixture(scope="module")
def model() -> minilm.MiniLM:
    return minilm.MiniLM()


def test_vectors_are_the_published_models(model: minilm.MiniLM) -> None:
    """The reference: transformers' own forward pass, one text at a time, without padding."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = folders.minilm_folder()
    tokenizer, reference = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    for text in TEXTS:
        batch = tokenizer(text, return_tensors="pt", truncation=True, max_length=256)
        with torch.inference_mode():
            expected = reference(**batch).last_hidden_state[0].mean(dim=0).numpy()
        assert np.allclose(model.encode([text])[0], expected / np.linalg.norm(expected), atol=2e-6)


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    folders.minilm_folder.cache_clear()
    monkeypatch.setattr(folders, "SHA256", "0" * 64)
    with pytest.raises(MissingDependency, match="force-reinstall"):
        folders.minilm_folder()
    folders.minilm_folder.cache_clear()
